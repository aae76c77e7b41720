package available

import (
	"cmp"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Constants of PacketTick, from the estimation seed.
const (
	tickTrain  = 500 // K of procedure 2
	firstGap   = 20 * time.Microsecond
	epsilon    = 0.1
	lambda     = 1.5
	confidence = 0.9 // pi
	tickSize   = 500 // 5.7.3
	// probeTrain is K: the number of probes of a pathload train (procedure 2).
	probeTrain = 500
)

// Constants chosen by Headgate.
const (
	// minJudged is the minimum number of gaps that decide about a tick interval.
	minJudged = 50
	// maxGap is the longest tick interval: beyond it a train that covers enough ticks is
	// too long (5.5.2).
	maxGap      = 500 * time.Microsecond
	defaultLead = 5 * time.Millisecond
	// late: a sender that sends at less than this fraction of the requested rate is too
	// slow. After maxSlow such trains the measurement ends.
	late, maxSlow = 0.97, 4
	// tickStreams is the number of trains of one rate. With trains of 500 packets, three
	// are the seed's 10 to 20 MB per measurement (table 5.2).
	tickStreams = 1
)

// PacketTick is the method of the estimation seed (procedures 1 to 3). Sender 0 sends
// trains of probes. Sender 1 sends the ticks that time the probes where both paths meet.
type PacketTick struct {
	// Highest is the highest rate that is tried, in bit/s of layer 2: the capacity, if it
	// is known; 0 is 1 Gbit/s.
	Highest float64
	// Gap is the tick interval; 0 measures it.
	Gap time.Duration
	// Lead is the time by which ticks start before and stop after the probes; 0 is 5 ms.
	Lead time.Duration
	// Budget bounds the bytes that are sent; 0 is 50 MB.
	Budget unit.Bytes
}

const tickBudget = 50_000_000

// gap returns the tick interval, and the number of samples that were used to find it. It
// returns 0 if the interval is not known yet; next is then the interval to try.
func (m PacketTick) gap(samples []probe.JointSample) (gap, next time.Duration, used int) {
	if m.Gap > 0 {
		return m.Gap, 0, 0
	}
	next = firstGap
	for i := range samples {
		if !whole(&samples[i]) {
			continue
		}
		s := samples[i].Sender(1)
		part, judged := steady(&s, next)
		if judged >= minJudged && part >= confidence || next >= maxGap {
			return next, 0, i + 1
		}
		next = time.Duration(lambda * float64(next))
	}
	return 0, next, len(samples)
}

// whole reports whether a sample has two senders.
func whole(s *probe.JointSample) bool {
	return len(s.Trains) == 2 && len(s.Sent) == 2
}

func (m PacketTick) ticks(gap time.Duration, count int) probe.Train {
	p := probe.Part{Count: count, Size: tickSize}
	p.Rate = unit.Rate(float64(p.Frame()) * 8e9 / float64(gap))
	return probe.Train{Purpose: "available/ticks", Parts: []probe.Part{p}}
}

// replay repeats the search with the fleets in samples; a fleet is tickStreams samples of
// one rate. inside is the number of samples of an incomplete fleet, slow the number of
// last fleets that were sent slower than requested.
func (m PacketTick) replay(samples []probe.JointSample) (s search, inside, slow int) {
	top := cmp.Or(m.Highest, 1e9)
	s = search{high: top, top: top}
	var f fleet
	for i := range samples {
		if !whole(&samples[i]) || len(samples[i].Trains[0].Parts) == 0 {
			continue
		}
		own := samples[i].Sender(0)
		f.add(trendOf(TickDelays(&samples[i], 0, 1)), float64(own.Lost())/float64(max(own.Count(), 1)))
		if f.size < tickStreams && !f.lost {
			continue
		}
		// A late sender's actual rate counts, not the requested one.
		rate := float64(own.Parts[0].Rate)
		if sent := own.SendingRate(); sent > 0 && sent < late*rate {
			rate = sent
			slow++
		} else {
			slow = 0
		}
		s.take(rate, f)
		f = fleet{}
	}
	return s, f.size, slow
}

// Next returns a train of ticks while the tick interval is unknown, and then a train of
// probes between ticks.
func (m PacketTick) Next(samples []probe.JointSample) (j probe.Joint, ok bool) {
	left := cmp.Or(m.Budget, tickBudget)
	for i := range samples {
		left -= unit.Bytes(samples[i].Bytes())
	}
	gap, next, used := m.gap(samples)
	if gap == 0 {
		j = probe.Joint{Purpose: "available/tick-gap", Trains: []probe.Train{{}, m.ticks(next, tickTrain)}}
		return j, unit.Bytes(j.Bytes()) <= left
	}
	s, inside, slow := m.replay(samples[used:])
	if slow >= maxSlow {
		return j, false
	}
	rate, ok := s.next()
	if inside > 0 {
		rate, ok = float64(samples[len(samples)-1].Trains[0].Parts[0].Rate), true
	}
	if !ok {
		return j, false
	}
	p := probe.Part{Size: mtu, Rate: unit.Rate(rate)}
	p.Count = probeTrain
	lead := cmp.Or(m.Lead, defaultLead)
	// All probes arrive within twice the time in which they were sent, unless the rate is
	// more than twice too high. In that case the rest is not needed.
	covered := 2*float64(lead) + 2*float64(p.Count)*p.Gap()
	j = probe.Joint{
		Purpose: "available/packettick",
		Trains:  []probe.Train{{Parts: []probe.Part{p}}, m.ticks(gap, int(covered/float64(gap)))},
		Start:   []time.Duration{lead, 0},
	}
	return j, unit.Bytes(j.Bytes()) <= left
}

// Estimate returns the final range of the search, and its middle.
func (m PacketTick) Estimate(samples []probe.JointSample) Result {
	gap, _, used := m.gap(samples)
	if gap == 0 {
		return Result{Available: probe.NoEstimate("no tick interval arrives at the receiver undistorted")}
	}
	s, _, slow := m.replay(samples[used:])
	r := s.result()
	if slow >= maxSlow {
		r.Notes = append(r.Notes, "sender cannot reach the requested rate: the range is wider than intended")
	}
	return r
}
