package host

import (
	"net"
	"time"
)

// Constants of batched, chosen for Headgate. At 500 Mbit/s four streams have something to read 4,000 times a second, and
// to wake each time costs more than the bytes do: 27 % of a processor, against 16 % with an interval of 1 ms and 13 %
// with 2 ms.
const (
	minBatch, maxBatch = 2 * time.Millisecond, 8 * time.Millisecond
	// batchPart is the part of the round-trip time that the interval may take.
	batchPart = 8
	// batchRate is from which rate on a stream reads in intervals, in bytes per second. A slower one reads at once.
	batchRate = 4e6
)

// batched is a connection that reads at once what has arrived in an interval, while much arrives, as network cards
// moderate their interrupts.
type batched struct {
	net.Conn
	interval time.Duration
	since    time.Time // of bytes
	bytes    int
	fast     bool
	asked    time.Time // when the round-trip time was read
}

func (b *batched) Read(p []byte) (int, error) {
	if b.fast {
		time.Sleep(untilBatch(b.interval))
	}
	n, err := b.Conn.Read(p)
	b.bytes += n
	if now := time.Now(); now.Sub(b.since) >= minBatch {
		b.fast = n < len(p) && float64(b.bytes) >= batchRate*now.Sub(b.since).Seconds()
		b.since, b.bytes = now, 0
		if b.fast && now.Sub(b.asked) > time.Second {
			b.asked, b.interval = now, batchInterval(b.Conn)
		}
	}
	return n, err
}

// batchInterval returns the interval for a connection.
func batchInterval(c net.Conn) time.Duration {
	rtt := time.Duration(0)
	if tcp, ok := c.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			if i := tcpInfo(raw); i != nil {
				rtt = time.Duration(i.Rtt) * time.Microsecond
			}
		}
	}
	return min(max(rtt/batchPart, minBatch).Truncate(minBatch), maxBatch)
}

// untilBatch returns how long to wait for at most a time so that all who wait end at the same times, and wake the process
// once.
func untilBatch(interval time.Duration) time.Duration {
	if interval < minBatch {
		return interval
	}
	return interval - time.Duration(time.Now().UnixNano())%interval
}
