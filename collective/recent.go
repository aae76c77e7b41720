package collective

import "time"

// recent is what the last round trips show: current_rtt and current_bw of the seed
// (III-B-1 and 2).
type recent struct {
	last [rounds + 1]Reading
	n    int // readings, up to all
}

// rounds is N_rtt of the seed.
const rounds = 4

func (r *recent) add(v Reading) {
	copy(r.last[:], r.last[1:])
	r.last[rounds] = v
	r.n = min(r.n+1, len(r.last))
}

// full tells whether there are enough readings for both.
func (r *recent) full() bool { return r.n == len(r.last) }

// rtt is the mean of the last round trips.
func (r *recent) rtt() time.Duration {
	sum := time.Duration(0)
	for _, v := range r.last[1:] {
		sum += v.RTT
	}
	return sum / rounds
}

// least is the shorter of the last two round trips, without what the receiver waits: one
// late packet is nothing.
func (r *recent) least() time.Duration {
	return min(r.last[rounds].Newest, r.last[rounds-1].Newest)
}

// rate is at what rate bytes were acknowledged over the last round trips, in bit/s.
func (r *recent) rate() float64 {
	took := r.last[rounds].At - r.last[0].At
	if took <= 0 {
		return 0
	}
	return float64(r.last[rounds].Acked-r.last[0].Acked) * 8 / took.Seconds()
}

// at is when the newest reading was taken.
func (r *recent) at() time.Duration { return r.last[rounds].At }
