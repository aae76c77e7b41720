package host

import (
	"io"
	"math"
	"net"
	"os"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/lab/labtest"
)

// send sends at a rate in bytes per second, until the connection ends.
func send(t testing.TB, from, to *net.TCPConn, rate int) {
	t.Helper()
	const each = 5 * time.Millisecond
	go io.Copy(io.Discard, to)
	go func() {
		piece := make([]byte, rate*int(each)/int(time.Second))
		for tick := time.NewTicker(each); ; <-tick.C {
			if _, err := from.Write(piece); err != nil {
				tick.Stop()
				return
			}
		}
	}()
}

// What was learned of a connection is known to the next program, and of a connection that connects again in its place. A damaged file is not used.
func TestNeedsSurvive(t *testing.T) {
	labtest.NeedRoot(t)
	name := instance()
	a, b := pipe(t, "127.0.0.1:0")
	at := a.RemoteAddr().(*net.TCPAddr)
	policy := collective.Policy{Name: "db", Cgroup: "/", Rules: []collective.Rule{dport(uint16(at.Port), 0)}}
	r := run(t, name, 16, policy)
	const rate = 250_000
	send(t, a, b, rate)
	learned := func(r *running, what string) float64 {
		t.Helper()
		s := r.wait(t, what, func(s []State) bool { return len(s[0].Connections) == 1 && s[0].Connections[0].Needs > 0 })
		return float64(s[0].Connections[0].Needs) / 8
	}
	time.Sleep(3 * time.Second)
	before := learned(r, "the rate is learned")
	if math.Abs(before/rate-1) > 0.2 {
		t.Fatalf("learned %v bytes per second, sent %v", before, rate)
	}
	r.stop()
	began := time.Now()
	r = run(t, name, 16, policy)
	after := learned(r, "the next program knows the rate")
	if took := time.Since(began); took > time.Second || math.Abs(after/before-1) > 0.1 {
		t.Errorf("after %v the next program knows a rate of %v, before it was %v", took, after, before)
	}
	// The client connects again.
	a.Close()
	b.Close()
	r.wait(t, "the connection has ended", func(s []State) bool { return len(s[0].Connections) == 0 })
	a, b = pipe(t, at.String())
	began = time.Now()
	send(t, a, b, rate/10)
	again := learned(r, "the new connection has the rate of the one before")
	if took := time.Since(began); took > time.Second || math.Abs(again/after-1) > 0.1 {
		t.Errorf("after %v the rate of the new connection is %v, want %v", took, again, after)
	}
	r.stop()
	if err := os.WriteFile(keptFile(name), []byte(`{"sets":`), 0o600); err != nil {
		t.Fatal(err)
	}
	r = run(t, name, 16, policy)
	if s, err := r.States(); err != nil || len(s[0].Connections) > 0 && s[0].Connections[0].Needs > 0 {
		t.Errorf("from a damaged file: %+v, %v", s, err)
	}
}

// A host that has only received says that it cannot hold anything.
func TestNothingSent(t *testing.T) {
	p := &part{members: map[collective.ID]*member{}}
	if got := p.notice(time.Hour); got != "" {
		t.Errorf("without connections: %q", got)
	}
	p.members[1] = &member{Connection: &sockops.Connection{}, since: time.Hour - 11*time.Second}
	if got := p.notice(time.Hour); got == "" {
		t.Error("no notice for a connection that has sent nothing in 11 s")
	}
	p.members[2] = &member{Connection: &sockops.Connection{Rounds: 3}, since: time.Hour - 11*time.Second}
	if got := p.notice(time.Hour); got != "" {
		t.Errorf("with a connection that sends: %q", got)
	}
}
