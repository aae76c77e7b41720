package traffic

// jitter is the interarrival jitter of RFC 3550, section 6.4.1: the difference between the transit
// times of two datagrams, smoothed over 16 of them. The two clocks need not agree, and do not: a
// datagram has its send time by CLOCK_MONOTONIC, the kernel's receive timestamp is by CLOCK_REALTIME.
//
// Datagrams in batches (UDP_SEGMENT, from segmentFrom) are sent and arrive at the same time: it is
// then the jitter of batches.
type jitter struct {
	value float64 // ns
	way   int64   // transit time of the last datagram, by both clocks
	begun bool
}

func (j *jitter) arrived(sent, received int64) {
	way := received - sent
	if d := float64(way - j.way); j.begun {
		j.value += (max(d, -d) - j.value) / 16
	}
	j.way, j.begun = way, true
}

func (j *jitter) us() float64 { return j.value / 1e3 }
