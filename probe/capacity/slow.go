package capacity

import (
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Constants of slow links, chosen by Headgate.
const (
	purposeScout, purposeBursts = "capacity/scout", "capacity/bursts"
	// The bursts of a scout train last 10 ms on a link of 0.5 Mbit/s.
	scoutBursts, scoutCount, scoutSize = 4, 3, 200
	scoutPause                         = 10 * time.Millisecond
	// slowBursts bursts of slowCount packets, each of which takes slowPacket ns on the link, delay others' traffic by 6 ms.
	slowBursts, slowCount = 20, 3
	slowPacket            = 2e6
	// A train of leastMet packets that wait for metPart of the time in which it is sent met a limiter.
	leastMet, metPart = 20, 0.5
	// slowWide is the relative width of an interval from which on others' traffic hides the capacity: most gaps of the few bursts have some of it.
	slowWide = 0.25
	// slowPause is the silence before a burst, in times of a burst.
	slowPause = 2
)

// SlowLink is the rate in bit/s below which a link is slow: a burst of another method would delay others' traffic by more than 10 ms.
const SlowLink = 12e6

// scout returns the first train. It is as short as the slowest links need it.
func scout() (t probe.Train) {
	t.Purpose = purposeScout
	for range scoutBursts {
		t.Parts = append(t.Parts, probe.Part{Count: scoutCount, Size: scoutSize, Pause: scoutPause})
	}
	return t
}

// Scouted returns the rate in bit/s of the two packets of scout trains that arrived closest together: no link of the path is slower. It is +Inf if no scout train
// arrived, or if packets had the same timestamp.
func Scouted(samples []probe.Sample) float64 {
	least, seen := math.Inf(1), false
	for i := range samples {
		if samples[i].Purpose != purposeScout || len(samples[i].Sent) == 0 || len(samples[i].Arrived) == 0 {
			continue
		}
		all := bursts(&samples[i], origin{samples[i].Sent[0], samples[i].Arrived[0].At})
		for _, r := range slices.Concat(runs(all, 0, 2), runs(all, 1, 2)) {
			least, seen = math.Min(least, r.gap), true
		}
	}
	if !seen || least <= 0 {
		return math.Inf(1)
	}
	return (scoutSize + probe.Overhead) * 8e9 / least
}

// Met returns about the rate in bit/s of a limiter that the bursts met: the packets of each of the last two quarters of a train waited for more than half of the
// time in which it was sent. An end that stalls delays those of one. It is +Inf if they met none. What drops packets does not delay others' traffic.
func Met(samples []probe.Sample) float64 {
	met := math.Inf(1)
	for i := range samples {
		s := &samples[i]
		n := len(s.Arrived)
		if s.Purpose != purposeBursts || n < leastMet || len(s.Sent) < leastMet {
			continue
		}
		part, bytes, delays, least := s.PartOf(), 0, make([]float64, n), math.Inf(1)
		for j, a := range s.Arrived {
			if a.Number >= 0 && a.Number < min(len(part), len(s.Sent)) {
				bytes += s.Parts[part[a.Number]].Frame()
				delays[j] = float64(a.At - s.Sent[a.Number])
				least = math.Min(least, delays[j])
			}
		}
		long := least + metPart*float64(s.Sent[len(s.Sent)-1]-s.Sent[0])
		if median(delays[n/2:3*n/4]) > long && median(delays[3*n/4:]) > long {
			met = math.Min(met, float64(bytes)*8e9/float64(s.Arrived[n-1].At-s.Arrived[0].At))
		}
	}
	return met
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// slowTrain returns a train of bursts for a link of about a rate in bit/s, for no more than left seconds and budget bytes. It has no packets that warm the receiver
// up, which is late by microseconds.
func slowTrain(rate, left float64, budget unit.Bytes) (t probe.Train) {
	t.Purpose = purposeBursts
	frame := math.Max(math.Min(rate*slowPacket/8e9, small+probe.Overhead), aheadSize+probe.Overhead)
	bytes := slowCount * frame
	took := bytes * 8 / rate
	n := min(slowBursts, left/((slowPause+0.5)*took), float64(budget)/bytes)
	for b := range int(n) {
		_, golden := math.Modf(float64(b) * 0.618034)
		t.Parts = append(t.Parts, probe.Part{Count: slowCount, Size: int(frame) - probe.Overhead, Pause: time.Duration((slowPause + golden) * took * 1e9)})
	}
	return t
}
