package host

import "syscall"

// idleControl is the congestion control of a stream from when it is idle until its path always has something to send, which
// is when the entry selects one by what it delivers. When a connection sends again after a pause, the kernel halves its
// window for each retransmission timeout of the pause, down to 10 segments (tcp_cwnd_restart in net/ipv4/tcp_output.c,
// sysctl net.ipv4.tcp_slow_start_after_idle), but not with a congestion control that has its own cong_control, as BBR has.
// Over 100 ms, 1 MB takes 0.38 of the time of a direct connection with it, and 0.77 without. And on a path with losses,
// short transfers end before another could be measured.
const idleControl = "bbr"

// idling tracks whether a stream has idleControl. link.mu protects it.
type idling struct {
	sent, seen uint64 // bytes of connections, now and at the last look
	parked     bool   // it has idleControl until another is selected
	never      bool   // the stream must not have it, or cannot
}

// look is called at intervals. waits tells that something was not acknowledged. It reports whether the stream may change
// later without sending anything.
func (i *idling) look(raw syscall.RawConn, waits bool) (pending bool) {
	idle := i.sent == i.seen && !waits
	i.seen = i.sent
	if i.parked || i.never {
		return false
	}
	if idle {
		i.parked = setCongestion(raw, idleControl) == nil
		i.never = !i.parked // the kernel does not have it, or does not allow it
	}
	return !idle
}

// selected tells that the congestion control was selected now; only is true if the stream must have no other.
func (i *idling) selected(only bool) { i.parked, i.never = false, only }
