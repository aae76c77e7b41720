package host

import (
	"io"
	"testing"
	"time"
)

// controlOf returns the congestion control of a stream, "" while it is not open.
func controlOf(l *Link, number uint32) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if st := l.streams[number]; st != nil {
		return congestionOf(st.raw)
	}
	return ""
}

// An agent selects the congestion control of a stream at both ends, and none that a path may not have.
func TestSelectCongestion(t *testing.T) {
	p := newPair(t, 2)
	until(t, "the streams are open", func() bool { return controlOf(p.entry, 2) != "" && controlOf(p.exit, 2) != "" })
	other := controlOf(p.exit, 1)
	for _, name := range congestionControls {
		if err := p.entry.selectCongestion(2, name, true); err != nil {
			t.Fatal(err)
		}
		until(t, name+" at both agents", func() bool { return controlOf(p.entry, 2) == name && controlOf(p.exit, 2) == name })
	}
	if err := p.entry.selectCongestion(2, "reno", true); err == nil {
		t.Error("reno is selected")
	}
	if got := controlOf(p.exit, 1); got != other {
		t.Errorf("the other stream has %s, and had %s", got, other)
	}
}

// A stream has another congestion control while it is idle, unless the path may have one only.
func TestIdleCongestion(t *testing.T) {
	for _, only := range []bool{false, true} {
		p := newPair(t, 1)
		until(t, "the stream is open", func() bool { return controlOf(p.entry, 1) != "" && controlOf(p.exit, 1) != "" })
		if err := p.entry.selectCongestion(1, "cubic", only); err != nil {
			t.Fatal(err)
		}
		app, accepted := connected(t)
		defer app.Close()
		p.entry.Open(accepted, []byte(echo(t)))
		send := func() {
			t.Helper()
			if _, err := app.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(app, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		send()
		if only {
			time.Sleep(5 * tickInterval)
			if a, b := controlOf(p.entry, 1), controlOf(p.exit, 1); a != "cubic" || b != "cubic" {
				t.Errorf("a stream that may have CUBIC alone has %s and %s", a, b)
			}
			continue
		}
		for range 2 {
			until(t, "the idle stream has "+idleControl, func() bool { return controlOf(p.entry, 1) == idleControl && controlOf(p.exit, 1) == idleControl })
			send()
			if err := p.entry.selectCongestion(1, "cubic", only); err != nil {
				t.Fatal(err)
			}
			until(t, "the stream has cubic again", func() bool {
				send()
				return controlOf(p.entry, 1) == "cubic" && controlOf(p.exit, 1) == "cubic"
			})
		}
		p.entry.mu.Lock()
		ticking := p.entry.ticking
		p.entry.mu.Unlock()
		until(t, "nothing runs for an idle link", func() bool {
			p.entry.mu.Lock()
			defer p.entry.mu.Unlock()
			return !p.entry.ticking
		})
		if !ticking {
			t.Error("nothing has looked at a busy stream")
		}
	}
}
