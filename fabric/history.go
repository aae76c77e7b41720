package fabric

import "time"

// Constants of History, chosen for Headgate: with a reading per second the last two minutes, and means of the hour before them. They
// take 4 KB, 24 MB for the 6,000 ports of 3,000 cables.
const (
	// HistoryReadings is how many readings are kept.
	HistoryReadings = 120
	// HistoryMeans is how many means of older readings are kept, each of the readings of HistoryMean.
	HistoryMeans = 120
	HistoryMean  = 30 * time.Second
)

// History keeps the traffic of the last time, in bounded memory. The zero History is empty.
type History struct {
	began         time.Time
	recent, older ring
	// mean is of the readings that have left recent, and not come to older yet.
	mean struct {
		slot  uint32 // the number of the HistoryMean since began
		at    uint32 // of the last reading
		sum   Traffic
		count float64
	}
}

// TrafficAt is traffic that was read at a time: it passed before it.
type TrafficAt struct {
	At time.Time
	Traffic
}

// sample is a TrafficAt in 16 bytes.
type sample struct {
	at                  uint32 // historyTick since History.began
	rate, drops, errors float32
}

// historyTick is the resolution of times: a uint32 lasts for 13 years.
const historyTick = 100 * time.Millisecond

// Add adds the traffic of a reading that is later than all before.
func (h *History) Add(at time.Time, t Traffic) {
	if h.began.IsZero() {
		h.began = at
	}
	now := sample{uint32(at.Sub(h.began) / historyTick), float32(t.Rate), float32(t.Drops), float32(t.Errors)}
	if left, full := h.recent.push(now, HistoryReadings); full {
		h.leave(left)
	}
}

// leave adds a reading to the means.
func (h *History) leave(s sample) {
	m := &h.mean
	if slot := s.at / uint32(HistoryMean/historyTick); slot != m.slot {
		if m.count > 0 {
			h.older.push(h.meanNow(), HistoryMeans)
		}
		m.slot, m.sum, m.count = slot, Traffic{}, 0
	}
	m.at = s.at
	m.sum.Rate += float64(s.rate)
	m.sum.Drops += float64(s.drops)
	m.sum.Errors += float64(s.errors)
	m.count++
}

func (h *History) meanNow() sample {
	m := h.mean
	return sample{m.at, float32(m.sum.Rate / m.count), float32(m.sum.Drops / m.count), float32(m.sum.Errors / m.count)}
}

// All returns the means and the readings, the oldest first. Each reading is in one of them.
func (h *History) All() []TrafficAt {
	all := make([]TrafficAt, 0, len(h.older.samples)+1+len(h.recent.samples))
	add := func(s sample) {
		all = append(all, TrafficAt{h.began.Add(time.Duration(s.at) * historyTick), Traffic{float64(s.rate), float64(s.drops), float64(s.errors)}})
	}
	h.older.each(add)
	if h.mean.count > 0 {
		add(h.meanNow())
	}
	h.recent.each(add)
	return all
}

// ring keeps the last samples.
type ring struct {
	samples []sample
	oldest  int
}

// push adds a sample, and returns the one that it replaces if there are size of them.
func (r *ring) push(s sample, size int) (old sample, full bool) {
	if len(r.samples) < size {
		if r.samples == nil {
			r.samples = make([]sample, 0, size)
		}
		r.samples = append(r.samples, s)
		return sample{}, false
	}
	old = r.samples[r.oldest]
	r.samples[r.oldest] = s
	r.oldest = (r.oldest + 1) % size
	return old, true
}

func (r *ring) each(f func(sample)) {
	for i := range r.samples {
		f(r.samples[(r.oldest+i)%len(r.samples)])
	}
}
