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
	// sent packets, and those that never came
	sent, lost float64
	waited     float64 // and those that waited for an interrupt
	// held is the longest for which packets waited all at once, and in how many trains
	// that was.
	held       time.Duration
	heldTrains int
}

// holding is what one train says.
type holding struct {
	bytes float64
	took  float64 // ns, at the sender
	idle  float64 // ns, since the train before
	rate  float64 // of its last part, as it was sent
	count int     // and its packets
	busy  sums
	head  int // the packets before that
	// headCame and headRate are at what rate the first packets came and were sent.
	headCame, headRate float64
	spare              float64 // ns of its window in which nothing waited
	start              float64 // ns of queue where the window begins
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
		r.add(s, least, float64(idle))
	}
	return r
}

// add takes one more sample. least is how far apart in ns the path lets two packets come.
func (r *reading) add(s *probe.Sample, least, idle float64) {
	n := min(s.Count(), len(s.Sent))
	hold := s.Parts[len(s.Parts)-1]
	first := s.Count() - hold.Count
	h := holding{bytes: float64(s.Bytes()), took: float64(s.Sent[n-1] - s.Sent[0]), idle: idle, count: hold.Count, head: first}
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
	for i := range all {
		if all[i].waited {
			r.waited++
		}
	}
	if n, most := all.jumps(service); n > 0 && most > heldTime {
		r.heldTrains++
		r.held = max(r.held, most)
	}
	for _, part := range all.stretches(service, r.shaped) {
		busy := part.busy(from, service)
		if len(busy) == 0 || part.cutShort(busy) {
			continue
		}
		if r.shaped && !r.emptied(busy[0].queue) {
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

// stood is the longest for which a clump shows that the receiver stood still.
func (s series) stood() (most time.Duration) {
	for i := 1; i < len(s); i++ {
		if s[i].late && !s[i].waited && !s[i-1].late {
			most = max(most, time.Duration(s[i].came-s[i-1].came))
		}
	}
	return most
}

// rates are at what rate the first packets came and were sent, in bit/s; 0 if that
// cannot be told.
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

// together is the rate at which packets came that were sent all at once, in bit/s; 0
// if there are none.
func together(samples []probe.Sample) float64 {
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
	rate = s.available(r.rate)
	// Trains that met no queue may have been too slow.
	for _, t := range slices.Backward(r.trains) {
		if !r.shaped || t.met() {
			break
		}
		rate = max(rate, 0.02*r.rate) * faster
	}
	return min(max(rate, r.rate/100), r.rate), true
}

// heldTime is from when on a wait is not one behind cross traffic.
const heldTime = time.Millisecond

// faster a train is after one that met no queue.
const faster = 1.4
