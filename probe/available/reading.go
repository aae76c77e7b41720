package available

import (
	"slices"
	"time"

	"headgate/probe"
	"headgate/unit"
)

// reading is what all samples say so far.
type reading struct {
	rate     float64 // of the link that is thought to be tight
	shaped   bool    // that is a token bucket
	trains   []holding
	busy     sums
	blocks   []sums // of it, each of blockPackets
	bytes    unit.Bytes
	from, to int64         // ns of the sender's clock
	idle     time.Duration // the longest from one train to the next
	stood    time.Duration // the longest for which the receiver stood still
	lost     int
}

// holding is what one train says.
type holding struct {
	rate  float64 // of its last part, as it was sent
	count int     // and its packets
	busy  sums
	head  int     // the packets before that
	spare float64 // ns of its window in which nothing waited
	start float64 // ns of queue where the window begins
	end   float64 // and where the train ended
}

// met tells whether the train met a queue that lasted.
func (h *holding) met() bool { return h.start > 0 && h.busy.packets > float64(h.count)/8 }

// read goes through all samples.
func (m Ours) read(samples []probe.Sample) (r reading) {
	r.rate, r.shaped = m.Capacity, m.shaped()
	if r.shaped {
		r.rate = m.TokenRate
	}
	if r.rate == 0 {
		r.rate = together(samples)
	}
	least := 0.0
	if c := max(m.Capacity, r.rate); c > 0 {
		least = 8e9 * frame / c
	}
	for i := range samples {
		s := &samples[i]
		r.bytes += s.Bytes()
		if len(s.Sent) == 0 {
			continue
		}
		if r.from == 0 {
			r.from = s.Sent[0]
		} else {
			r.idle = max(r.idle, time.Duration(s.Sent[0]-r.to))
		}
		r.to = s.Sent[len(s.Sent)-1]
		r.lost += s.Lost()
		r.add(s, least)
	}
	return r
}

// add takes one more sample. least is how far apart in ns the path lets two packets come.
func (r *reading) add(s *probe.Sample, least float64) {
	n := min(s.Count(), len(s.Sent))
	hold := s.Parts[len(s.Parts)-1]
	first := s.Count() - hold.Count
	h := holding{count: hold.Count, head: first}
	if n-1 > first && s.Sent[n-1] > s.Sent[first] {
		h.rate = float64((n-1-first)*hold.Frame()) * 8e9 / float64(s.Sent[n-1]-s.Sent[first])
	}
	from := 0
	if r.shaped {
		// Before it is empty, and until what the head left elsewhere has drained, the
		// bucket's queue is not what is seen.
		from = first + hold.Count/settle
	}
	service := 8e9 * frame / r.rate
	all := newSeries(s, least, service)
	r.stood = max(r.stood, all.stood())
	for _, part := range all.stretches(service) {
		busy := part.busy(from, service)
		if len(busy) == 0 || part.cutShort(busy) {
			continue
		}
		if r.shaped && busy[0].queue < shapedQueue*service {
			continue
		}
		h.start, h.end = max(h.start, busy[0].queue), busy[len(busy)-1].queue
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
	if n-1 > from {
		h.spare = max(float64(s.Sent[n-1]-s.Sent[from])-h.busy.gap, 0)
	}
	r.busy = r.busy.plus(h.busy, 1)
	r.trains = append(r.trains, h)
}

// stood is the longest for which a clump shows that the receiver stood still.
func (s series) stood() (most time.Duration) {
	for i := 1; i < len(s); i++ {
		if s[i].late && !s[i-1].late {
			most = max(most, time.Duration(s[i].came-s[i-1].came))
		}
	}
	return most
}

// together is the rate at which packets came that were sent all at once, in bit/s; 0
// if there are none.
func together(samples []probe.Sample) float64 {
	var times []int64
	for i := range samples {
		if head := samples[i].Split()[0]; head.Parts[0].Rate == 0 {
			times = append(times, head.Dispersions()...)
		}
	}
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	if d := times[len(times)/2]; d > 0 {
		return 8e9 * frame / float64(d)
	}
	return 0
}

// guess is what the last trains say.
func (r *reading) guess() (rate float64, ok bool) {
	var s sums
	weight := 1.0
	for _, t := range slices.Backward(r.trains) {
		s = s.plus(t.busy, weight)
		weight /= 2
	}
	if s.gap <= 0 {
		return 0, false
	}
	return min(max(s.available(r.rate), r.rate/100), r.rate), true
}
