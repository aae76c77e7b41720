package host

import (
	"math"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/relay/stripe"
)

// tcpInfo reads what the kernel knows about a TCP connection, nil if it has ended.
func tcpInfo(raw syscall.RawConn) (i *unix.TCPInfo) {
	_ = raw.Control(func(fd uintptr) { i = rawTCPInfo(fd) })
	return i
}

// estimate reads what the kernel knows about the stream's connection.
func (st *stream) estimate() stripe.Estimate { return estimateOf(tcpInfo(st.raw)) }

// estimateOf returns what a session wants to know, nothing of a connection that has ended.
func estimateOf(i *unix.TCPInfo) (e stripe.Estimate) {
	if i == nil {
		return e
	}
	e.RTT = time.Duration(i.Rtt) * time.Microsecond
	e.Unsent = int(i.Notsent_bytes)
	e.Rate = float64(i.Delivery_rate)
	if i.Rtt > 0 {
		e.Rate = max(e.Rate, float64(i.Snd_cwnd)*float64(i.Snd_mss)/e.RTT.Seconds())
	}
	return e
}

// minRTT returns the shortest round-trip time that the kernel has measured recently (net.ipv4.tcp_min_rtt_wlen), 0 if it
// has measured none. The queues that the stream itself fills do not lengthen it.
func minRTT(i *unix.TCPInfo) time.Duration {
	if i == nil || i.Min_rtt == math.MaxUint32 {
		return 0
	}
	return time.Duration(i.Min_rtt) * time.Microsecond
}

// congestionOf returns the congestion control of a TCP connection, "" if it has ended.
func congestionOf(raw syscall.RawConn) (name string) {
	_ = raw.Control(func(fd uintptr) {
		name, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	})
	return name
}
