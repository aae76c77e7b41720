package host

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// idleControl is the congestion control of a stream that has nothing to send. When a connection sends again after a
// pause, the kernel halves the window for each retransmission timeout of the pause, down to 10 segments
// (tcp_cwnd_restart in net/ipv4/tcp_output.c, sysctl net.ipv4.tcp_slow_start_after_idle), but not with a congestion
// control that has its own cong_control, as BBR has. Over 100 ms, 1 MB takes 0.43 of the time of a direct connection with
// it, and 0.77 without.
const idleControl = "bbr"

// awakeFor is for how many round-trip times a stream keeps idleControl when it sends again: until the first data is
// acknowledged, and its congestion control sees a window in use.
const awakeFor = 2

// idling tracks whether a stream has idleControl because it is idle. link.mu protects it.
type idling struct {
	sent, seen uint64 // bytes of connections, now and at the last look
	parked     string // the congestion control to return to; "" while it is in use
	awake      time.Duration
	never      bool // the stream must not have another congestion control, or cannot
}

// look is called at intervals. waits tells that something was not acknowledged. It reports whether the stream may change
// later without sending anything.
func (i *idling) look(raw syscall.RawConn, waits bool, rtt, now time.Duration) (pending bool) {
	idle := i.sent == i.seen && !waits
	i.seen = i.sent
	switch {
	case i.never:
	case i.parked == "":
		if idle {
			i.park(raw)
		}
		return !idle
	case idle:
		i.awake = 0
	case i.awake == 0:
		i.awake = now
		return true
	case now-i.awake >= awakeFor*rtt:
		_ = setCongestion(raw, i.parked)
		i.parked, i.awake = "", 0
		return true
	default:
		return true
	}
	return false
}

// park selects idleControl.
func (i *idling) park(raw syscall.RawConn) {
	name := ""
	_ = raw.Control(func(fd uintptr) { name, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) })
	if name == "" || name == idleControl || setCongestion(raw, idleControl) != nil {
		i.never = name != idleControl // the kernel does not have it, or does not allow it
		return
	}
	i.parked, i.awake = name, 0
}

// selected tells that the congestion control was selected now; only is true if the stream must have no other.
func (i *idling) selected(only bool) { i.parked, i.awake, i.never = "", 0, only }
