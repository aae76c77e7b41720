package available

import (
	"slices"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// evaluation is the result of all samples so far.
type evaluation struct {
	rate          float64 // rate of the link that is assumed to be tight
	shaped        bool    // the tight link is a token bucket
	frame         float64 // layer 2 bytes of a packet
	trains        []trainResult
	busy          sums
	blocks        []sums // parts of busy with blockPackets packets each
	bytes         unit.Bytes
	from, to      int64         // ns of the sender's clock
	idle          time.Duration // the longest pause between trains
	receiverStall time.Duration // the longest stall of the receiver
	// sent is the number of packets sent, lost the number of those that were lost.
	sent, lost float64
	waited     float64 // packets that waited for an interrupt
	// held is the longest time for which packets were held and released together,
	// heldTrains the number of trains in which that happened.
	held       time.Duration
	heldTrains int
}

// trainResult is the result of one train.
type trainResult struct {
	bytes float64
	took  float64 // ns, at the sender
	idle  float64 // ns, since the previous train
	rate  float64 // sending rate of its last part
	count int     // packets of its last part
	busy  sums
	head  int // packets before its last part
	// headCame and headRate are the rates at which the first packets arrived and were
	// sent.
	headCame, headRate float64
	spare              float64 // ns of its window with an empty queue
	start              float64 // queue delay in ns at the begin of the window
}

// met reports whether the train found a lasting queue.
func (h *trainResult) met() bool { return h.start > 0 && h.busy.packets > float64(h.count)/8 }

// read evaluates all samples.
func (m HoldTrains) read(samples []probe.Sample) (r evaluation) {
	r.rate, r.shaped, r.frame = m.Capacity, m.shaped(), float64(m.packet()+probe.Overhead)
	if r.shaped {
		r.rate = m.TokenRate
	}
	if n := len(samples); n > 0 && len(samples[n-1].Parts) > 0 { // a recorded measurement may have had packets of another size
		r.frame = float64(samples[n-1].Parts[0].Frame())
	}
	if r.rate == 0 {
		r.rate = backToBackRate(samples)
	}
	minGap := 0.0
	if c := max(m.Capacity, r.rate); c > 0 {
		minGap = 8e9 * r.frame / c
	}
	for i := range samples {
		s := &samples[i]
		r.bytes += s.Bytes()
		if min(s.Count(), len(s.Sent)) == 0 || r.rate == 0 {
			continue
		}
		idle := int64(0)
		if r.from == 0 {
			r.from = s.Sent[0]
		} else {
			idle = s.Sent[0] - r.to
			r.idle = max(r.idle, time.Duration(idle))
		}
		r.to = s.Sent[len(s.Sent)-1]
		r.sent += float64(s.Count())
		r.lost += float64(s.Lost())
		r.add(s, minGap, float64(idle))
	}
	return r
}

// add adds one sample. minGap is the minimum time in ns between packets on the path.
func (r *evaluation) add(s *probe.Sample, minGap, idle float64) {
	n := min(s.Count(), len(s.Sent))
	hold := s.Parts[len(s.Parts)-1]
	first := s.Count() - hold.Count
	h := trainResult{bytes: float64(s.Bytes()), took: float64(s.Sent[n-1] - s.Sent[0]), idle: idle, count: hold.Count, head: first}
	if n-1 > first && s.Sent[n-1] > s.Sent[first] {
		h.rate = float64((n-1-first)*hold.Frame()) * 8e9 / float64(s.Sent[n-1]-s.Sent[first])
	}
	from := 0
	if r.shaped {
		// Before the bucket is empty, and until the head's queues at other links have
		// drained, the delays are not those of the bucket's queue.
		from = first + hold.Count/settle
	}
	service := 8e9 * r.frame / r.rate
	all := newSeries(s, minGap, service)
	r.receiverStall = max(r.receiverStall, all.receiverStall())
	for i := range all {
		if all[i].waited {
			r.waited++
		}
	}
	if n, longest := all.jumps(service); n > 0 && longest > heldTime {
		r.heldTrains++
		r.held = max(r.held, longest)
	}
	for _, part := range all.stretches(service, r.shaped) {
		busy := part.busy(from, service)
		if len(busy) == 0 || part.endsInStall(busy) {
			continue
		}
		if r.shaped && !r.bucketEmpty(busy[0].queue) {
			continue
		}
		h.start = max(h.start, busy[0].queue)
		var block sums
		for _, i := range busy {
			h.busy.add(i)
			if block.add(i); block.packets == blockPackets {
				r.blocks, block = append(r.blocks, block), sums{}
			}
		}
		if block.packets > 0 {
			r.blocks = append(r.blocks, block)
		}
	}
	h.headCame, h.headRate = all.rates(min(headPackets*3, first))
	if n-1 > from {
		h.spare = max(float64(s.Sent[n-1]-s.Sent[from])-h.busy.gap, 0)
	}
	r.busy = r.busy.plus(h.busy, 1)
	r.trains = append(r.trains, h)
}

// receiverStall returns the longest stall of the receiver that a clump shows.
func (s series) receiverStall() (longest time.Duration) {
	for i := 1; i < len(s); i++ {
		if s[i].late && !s[i].waited && !s[i-1].late {
			longest = max(longest, time.Duration(s[i].came-s[i-1].came))
		}
	}
	return longest
}

// rates returns the rates in bit/s at which the first packets arrived and were sent; 0 if
// they are unknown.
func (s series) rates(packets int) (came, sent float64) {
	last := -1
	for i := range s {
		if s[i].number < packets && !s[i].late {
			last = i
		}
	}
	if last < 1 || s[0].late || s[0].number > 0 || s[last].came <= s[0].came {
		return 0, 0
	}
	bits := 8e9 * s[0].frame * float64(s[last].number-s[0].number)
	if s[last].sent > s[0].sent {
		sent = bits / (s[last].sent - s[0].sent)
	}
	return bits / (s[last].came - s[0].came), sent
}

// backToBackRate returns the rate in bit/s at which packets arrived that were sent back to
// back; 0 if there are none.
func backToBackRate(samples []probe.Sample) float64 {
	var rates []float64
	for i := range samples {
		s := &samples[i]
		if len(s.Parts) == 0 || s.Parts[0].Rate > 0 || len(s.Sent) == 0 {
			continue
		}
		if came, _ := newSeries(s, 0, 0).rates(s.Parts[0].Count); came > 0 {
			rates = append(rates, came)
		}
	}
	if len(rates) == 0 {
		return 0
	}
	slices.Sort(rates)
	return rates[len(rates)*9/10]
}

// guess returns the available bandwidth from all trains, with more weight on the last
// ones.
func (r *evaluation) guess() (rate float64, ok bool) {
	var s sums
	weight := 1.0
	for _, t := range slices.Backward(r.trains) {
		s = s.plus(t.busy, weight)
		weight /= 2
	}
	if s.gap <= 0 {
		return 0, false
	}
	rate = s.available(r.rate)
	// Trains that found no queue may have been too slow.
	for _, t := range slices.Backward(r.trains) {
		if !r.shaped || t.met() {
			break
		}
		rate = max(rate, 0.02*r.rate) * speedUp
	}
	return min(max(rate, r.rate/100), r.rate), true
}

// heldTime is the minimum delay that cross traffic does not explain.
const heldTime = time.Millisecond

// speedUp is the factor of the rate after a train that found no queue.
const speedUp = 1.4
