package host

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// congestionControls are those from which the congestion control of a path is chosen, the preferred one first: CUBIC
// (RFC 9438) shares a link equally with most other traffic, and BBR does not slow down at random loss.
var congestionControls = []string{"cubic", "bbr"}

// setCongestion selects the congestion control of what this agent sends on a connection. The other agent may select
// only those that a path may have.
func setCongestion(raw syscall.RawConn, name string) (err error) {
	if !slices.Contains(congestionControls, name) {
		return fmt.Errorf("%q is not one of %v", name, congestionControls)
	}
	control := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	})
	if err = errors.Join(control, err); err != nil {
		return fmt.Errorf("congestion control %s: %w", name, err)
	}
	return nil
}

// selectCongestion selects the congestion control of a stream at both agents. With only, the stream has no other while it
// is idle.
func (l *Link) selectCongestion(number uint32, name string, only bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.streams[number]
	if st == nil {
		return nil // it has ended
	}
	if err := setCongestion(st.raw, name); err != nil {
		return err
	}
	st.selected(only)
	l.session.SelectCongestion(number, name, only)
	l.pump()
	return nil
}
