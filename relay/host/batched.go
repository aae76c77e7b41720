package host

import (
	"net"
	"syscall"
	"time"
)

// Constants of batched, chosen for Headgate. At 500 Mbit/s four streams have something to read 4,000 times a second, and
// to wake each time costs more than the bytes do: 27 % of a processor, against 16 % with an interval of 1 ms and 13 %
// with 2 ms. The sockets that go on telling the runtime of each packet were most of the rest (see rawConn.beQuiet): with
// them quiet, memory used again (see payloads) and 4 ms an exit needs 5 %.
const (
	minBatch, maxBatch = 2 * time.Millisecond, 8 * time.Millisecond
	// batchPart is the part of the round-trip time that the interval may take.
	batchPart = 4
	// batchRate is from which rate on a stream reads in intervals, in bytes per second. A slower one reads at once.
	batchRate = 4e6
	// rateWindow is over how long the rate is measured at least: what arrives is bursty.
	rateWindow = 50 * time.Millisecond
)

// batched is a connection that reads at once what has arrived in an interval, while much arrives, as network cards
// moderate their interrupts.
type batched struct {
	net.Conn
	interval time.Duration
	since    time.Time // of bytes
	bytes    int
	fast     bool
	full     bool // the last Read has filled the buffer: there may be more
}

func (b *batched) Read(p []byte) (int, error) {
	if b.fast && !b.full {
		if raw, ok := b.Conn.(*rawConn); ok {
			raw.beQuiet()
		}
		time.Sleep(untilBatch(b.interval))
	}
	n, err := b.Conn.Read(p)
	b.bytes += n
	b.full = n == len(p)
	if now := time.Now(); now.Sub(b.since) >= rateWindow {
		b.fast = float64(b.bytes) >= batchRate*now.Sub(b.since).Seconds()
		b.since, b.bytes = now, 0
		if b.fast {
			b.interval = batchInterval(b.Conn)
		}
	}
	return n, err
}

// batchInterval returns the interval for a connection: minBatch times a power of two, so that longer intervals end when
// shorter ones do.
func batchInterval(c net.Conn) time.Duration {
	interval := minBatch
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			if i := tcpInfo(raw); i != nil {
				for rtt := time.Duration(i.Rtt) * time.Microsecond; interval < maxBatch && 2*interval <= rtt/batchPart; {
					interval *= 2
				}
			}
		}
	}
	return interval
}

// atBatch prolongs a wait until an interval of 4 ms ends.
func atBatch(wait time.Duration) time.Duration {
	const grid = 2 * minBatch
	end := time.Duration(time.Now().UnixNano())%grid + wait
	return wait + (grid-end%grid)%grid
}

// untilBatch returns how long to wait for at most a time so that all who wait end at the same times, and wake the process
// once.
func untilBatch(interval time.Duration) time.Duration {
	return interval - time.Duration(time.Now().UnixNano())%interval
}
