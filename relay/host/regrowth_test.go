package host

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A stream is restarted soon after its path is fast again, and only then.
func TestRegrowth(t *testing.T) {
	type phase struct {
		lasts time.Duration
		rate  uint64 // Mbit/s
		rtt   uint32 // ms
		lost  uint64 // bytes in each tick
		idle  bool   // nothing waits
	}
	full := phase{10 * time.Second, 100, 450, 0, false}
	queued := phase{20 * time.Second, 10, 3300, 0, false}
	for name, c := range map[string]struct {
		phases []phase
		least  time.Duration // of the last phase, until the restart
		starts int           // in the last phase
	}{
		"the rate returns":                        {[]phase{full, queued, {4 * time.Second, 10, 310, 0, false}}, 200 * time.Millisecond, 1},
		"the queue is not empty":                  {[]phase{full, queued}, 0, 0},
		"something is lost":                       {[]phase{full, queued, {20 * time.Second, 10, 310, 1500, false}}, 0, 0},
		"nothing waits to be sent":                {[]phase{full, queued, {20 * time.Second, 10, 310, 0, true}}, 0, 0},
		"it has half of what it had":              {[]phase{full, {20 * time.Second, 60, 310, 0, false}}, 0, 0},
		"it never had more":                       {[]phase{{20 * time.Second, 10, 310, 0, false}}, 0, 0},
		"the path stays slow with an empty queue": {[]phase{full, {5 * time.Minute, 10, 310, 0, false}}, 200 * time.Millisecond, 3}, // 100, 50, 25 are above 2 x 10
	} {
		now, g := time.Unix(0, 0), regrowth{}
		i := &unix.TCPInfo{Min_rtt: 300_000}
		for n, p := range c.phases {
			starts, first, began := 0, time.Duration(0), now
			for ; now.Before(began.Add(p.lasts)); now = now.Add(tickInterval) {
				i.Delivery_rate, i.Rtt, i.Notsent_bytes = p.rate*1e6/8, p.rtt*1000, 100_000
				i.Bytes_retrans += p.lost
				if p.idle {
					i.Notsent_bytes = 0
				}
				if start, _ := g.look(now, i); start {
					if starts++; starts == 1 {
						first = now.Sub(began)
					}
				}
			}
			if n < len(c.phases)-1 {
				if starts != 0 {
					t.Errorf("%s: %d restarts in phase %d", name, starts, n)
				}
				continue
			}
			if starts != c.starts || first != c.least {
				t.Errorf("%s: %d restarts, the first after %v; want %d after %v", name, starts, first, c.starts, c.least)
			}
		}
	}
}

// The former congestion control is used again when the start has ended.
func TestRegrowthEnds(t *testing.T) {
	now, g := time.Unix(0, 0), regrowth{best: 1e9, rate: 1e6}
	i := &unix.TCPInfo{Min_rtt: 300_000, Rtt: 300_000, Delivery_rate: 1e6, Notsent_bytes: 1}
	var started, ended time.Duration
	for at := time.Duration(0); at < 6*time.Second; at += tickInterval {
		start, end := g.look(now.Add(at), i)
		if start {
			started = at
		}
		if end {
			ended = at
		}
	}
	if started == 0 || ended-started != 12*300*time.Millisecond {
		t.Errorf("started after %v, ended after %v; want %v later", started, ended, 12*300*time.Millisecond)
	}
}

// A restart is that of a real socket, and the former congestion control is in use again afterwards.
func TestRegrow(t *testing.T) {
	for _, former := range congestionControls {
		app, accepted := connected(t)
		tcp := app.(*net.TCPConn)
		raw, err := tcp.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := setCongestion(raw, former); err != nil {
			t.Fatal(err)
		}
		go func() { // something always waits, because the reader is slow
			for buf := make([]byte, 16<<10); ; time.Sleep(time.Millisecond) {
				if _, err := accepted.Read(buf); err != nil {
					return
				}
			}
		}()
		go func() {
			for {
				if _, err := tcp.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}()
		st := &stream{raw: raw, regrowth: regrowth{best: 1e15}}
		until(t, "the stream is restarted after "+former, func() bool {
			st.regrow(time.Now(), tcpInfo(raw))
			return !st.regrowth.until.IsZero()
		})
		if got := congestionOf(raw); got != regrowControl || st.regrowth.former != former {
			t.Errorf("after %s: restarted with %s, the former is %q", former, got, st.regrowth.former)
		}
		now := time.Now().Add(time.Minute)
		st.regrow(now, tcpInfo(raw))
		if got := congestionOf(raw); got != former {
			t.Errorf("%s after the restart, want %s", got, former)
		}
		st.idling.never, st.regrowth = true, regrowth{best: 1e15}
		for range 10 {
			now = now.Add(tickInterval)
			st.regrow(now, tcpInfo(raw))
		}
		if !st.regrowth.until.IsZero() {
			t.Error("a stream that may have no other congestion control was restarted")
		}
		accepted.Close()
		app.Close()
	}
}
