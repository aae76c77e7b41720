package traffic

// jitter is the interarrival jitter of RFC 3550, section 6.4.1: the difference
// between two datagrams' ways, smoothed over 16 of them. The two clocks need not
// agree, and ours do not: a datagram says when it was sent by CLOCK_MONOTONIC, and
// the kernel when it arrived by CLOCK_REALTIME.
//
// Datagrams that are handed over by the dozen (UDP_SEGMENT, from segmentFrom) are
// sent and arrive at one moment: it is then the jitter of dozens.
type jitter struct {
	value float64 // ns
	way   int64   // of the last datagram, by both clocks
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
