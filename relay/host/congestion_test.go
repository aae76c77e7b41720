package host

import (
	"testing"

	"golang.org/x/sys/unix"
)

// An agent selects the congestion control of a stream at both ends, and none that a path may not have.
func TestSelectCongestion(t *testing.T) {
	p := newPair(t, 2)
	of := func(l *Link, number uint32) (name string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if st := l.streams[number]; st != nil {
			_ = st.raw.Control(func(fd uintptr) {
				name, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			})
		}
		return name
	}
	until(t, "the streams are open", func() bool { return of(p.entry, 2) != "" && of(p.exit, 2) != "" })
	other := of(p.exit, 1)
	for _, name := range congestionControls {
		if err := p.entry.selectCongestion(2, name); err != nil {
			t.Fatal(err)
		}
		until(t, name+" at both agents", func() bool { return of(p.entry, 2) == name && of(p.exit, 2) == name })
	}
	if err := p.entry.selectCongestion(2, "reno"); err == nil {
		t.Error("reno is selected")
	}
	if got := of(p.exit, 1); got != other {
		t.Errorf("the other stream has %s, and had %s", got, other)
	}
}
