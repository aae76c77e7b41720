package collective

import "time"

// recent is the readings of the last round trips: current_rtt and current_bw of the seed
// (III-B-1 and 2).
type recent struct {
	last [rounds + 1]Reading
	n    int // number of readings in last
}

// rounds is N_rtt of the seed.
const rounds = 4

func (r *recent) add(v Reading) {
	copy(r.last[:], r.last[1:])
	r.last[rounds] = v
	r.n = min(r.n+1, len(r.last))
}

// full reports whether there are enough readings for both estimates.
func (r *recent) full() bool { return r.n == len(r.last) }

// rtt returns the mean of the last round trips.
func (r *recent) rtt() time.Duration {
	sum := time.Duration(0)
	for _, v := range r.last[1:] {
		sum += v.RTT
	}
	return sum / rounds
}

// minRTT returns the shorter of the last two round trips, without delayed
// acknowledgements: a single late packet has no effect.
func (r *recent) minRTT() time.Duration {
	return min(r.last[rounds].Newest, r.last[rounds-1].Newest)
}

// rate returns the rate of acknowledged bytes over the last round trips, in bit/s.
func (r *recent) rate() float64 {
	took := r.last[rounds].At - r.last[0].At
	if took <= 0 {
		return 0
	}
	return float64(r.last[rounds].Acked-r.last[0].Acked) * 8 / took.Seconds()
}

// at returns the time of the newest reading.
func (r *recent) at() time.Duration { return r.last[rounds].At }
