package stripe

import "time"

// Estimate is what is known about a stream's connection.
type Estimate struct {
	// RTT is the smoothed round-trip time.
	RTT time.Duration
	// Rate is at what rate the stream can send, in bytes per second.
	Rate float64
	// Unsent is how many bytes the stream has accepted and not sent yet.
	Unsent int
}

// Arrival returns in how long bytes that are written now will have arrived.
func (e Estimate) Arrival(bytes int) time.Duration {
	return e.RTT/2 + time.Duration(float64(e.Unsent+bytes)/max(e.Rate, minRate)*float64(time.Second))
}

// minRate avoids a division by 0, in bytes per second: a stream without an estimate is slow, but is tried.
const minRate = 1000

// candidate is a stream that may get a chunk.
type candidate struct {
	Estimate
	writable bool
}

// pick returns the index of the stream on which a chunk of a size should be sent now, -1 to send it on none yet.
// backlog is how many bytes wait to be sent, with the chunk, and room how many bytes after the chunk the receiver
// permits. noRoom reports that the stream that can take the chunk is not chosen because of room.
//
// The chunk belongs on the stream on which it arrives first. If that one cannot take it now, a slower one gets it
// if it arrives there before the faster streams would have sent the backlog: otherwise it would only delay the end
// (Y. Lim and others, "ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths", CoNEXT 2017). And the receiver
// must have room for what the faster streams deliver until the chunk arrives, because they would have to stop.
func pick(all []candidate, size, backlog, room int) (chosen int, noRoom bool) {
	chosen = -1
	for n, c := range all {
		if c.writable && (chosen < 0 || c.Arrival(size) < all[chosen].Arrival(size)) {
			chosen = n
		}
	}
	if chosen < 0 {
		return -1, false
	}
	arrival := all[chosen].Arrival(size)
	first, faster, rtt := arrival, 0.0, time.Duration(0)
	for _, c := range all {
		if a := c.Arrival(size); a < arrival {
			first, faster, rtt = min(first, a), faster+c.Rate, max(rtt, c.RTT)
		}
	}
	if faster == 0 {
		return chosen, false // none is faster
	}
	whole := rtt/2 + time.Duration(float64(backlog)/faster*float64(time.Second))
	gap := (arrival - first).Seconds() * faster
	switch {
	case arrival >= whole:
		return -1, false
	case gap > float64(room):
		return -1, true
	}
	return chosen, false
}
