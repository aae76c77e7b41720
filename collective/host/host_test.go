package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/lab/labtest"
)

var instances atomic.Int32

// running is a running Host, which a test may stop and start again.
type running struct {
	*Host
	*Server
	name string
	stop func()
}

func run(t testing.TB, instance string, size int, policies ...collective.Policy) *running {
	t.Helper()
	table, err := sockops.Open(instance, size)
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(table, policies, false)
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Serve(instance)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- h.Run(ctx, time.Hour, func([]State) error { return nil }) }()
	stopped := false
	r := &running{h, s, instance, nil}
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := errors.Join(<-done, h.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		table.Close()
	}
	t.Cleanup(func() {
		r.stop()
		if err := Forget(instance); err != nil {
			t.Error(err)
		}
	})
	return r
}

func instance() string { return fmt.Sprintf("test-%d-%d", os.Getpid(), instances.Add(1)) }

// wait waits for the expected states.
func (r *running) wait(t testing.TB, what string, ok func([]State) bool) []State {
	t.Helper()
	var states []State
	for range 200 {
		var err error
		if states, err = r.States(); err != nil {
			t.Fatal(err)
		}
		if ok(states) {
			return states
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("not within 4 s: %s: %+v", what, states)
	return nil
}

// pipe returns both ends of a TCP connection to an address.
func pipe(t testing.TB, to string) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); d.Close() })
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

// speak sends data, so that there is something to measure.
func speak(t testing.TB, all ...*net.TCPConn) {
	t.Helper()
	for _, c := range all {
		if _, err := c.Write(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
}

// with calls fn with a descriptor of a connection.
func with(t testing.TB, c *net.TCPConn, fn func(fd int)) {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fn(int(f.Fd()))
}

// dport returns a rule for connections to a port.
func dport(p uint16, weight float64) collective.Rule {
	return collective.Rule{RemotePort: collective.Ports{From: p, To: p}, Weight: weight}
}

// descriptors returns the number of open descriptors of this process.
func descriptors(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Requests return the newest state, and add a connection to a set. After the end of the
// process requests fail, and the socket of a killed process does not prevent a new one.
func TestJoin(t *testing.T) {
	labtest.NeedRoot(t)
	name := instance()
	if _, err := QueryStates(name); !errors.Is(err, ErrNotRunning) {
		t.Errorf("without a process: %v", err)
	}
	if err := os.MkdirAll(socketDir, 0o755); err != nil {
		t.Fatal(err)
	}
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPath(name)})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	killed.Close()
	if _, err := QueryStates(name); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after a killed process: %v", err)
	}
	// With so many slots a slot is looked at once per second; connections that joined
	// must be known before.
	r := run(t, name, 16384, collective.Policy{Name: "asked", Join: []string{"1001"}}, collective.Policy{Name: "other", Cgroup: "/", Rules: []collective.Rule{dport(9, 0)}})
	if states, err := QueryStates(name); err != nil || len(states) != 2 || states[0].Set != "asked" || len(states[0].Connections) != 0 {
		t.Errorf("state is %+v, %v", states, err)
	}
	a, _ := pipe(t, "127.0.0.1:0")
	b, _ := pipe(t, "[::1]:0")
	refused := func(set string, weight float64, c *net.TCPConn, want string) {
		t.Helper()
		with(t, c, func(fd int) {
			if err := Join(name, set, weight, fd); err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
				t.Errorf("weight %v: %v, want %q", weight, err, want)
			}
		})
	}
	refused("db", 0, a, "connection set \"db\" does not exist: use asked or other")
	refused("other", 2, a, "have no configured weights")
	refused("asked", -1, a, "weight -1 is invalid")
	refused("asked", 2, a, "")
	refused("asked", 0, b, "have configured weights: set a weight")
	refused("asked", 1, b, "")
	refused("other", 0, b, "already in the set asked")
	before := descriptors(t)
	for range 3 {
		with(t, b, func(fd int) {
			if _, err := call(name, request{Join: "asked", Weight: 1}, fd, fd, fd); err == nil || !strings.Contains(err.Error(), "more than one file descriptor") {
				t.Errorf("three descriptors: %v", err)
			}
		})
	}
	// The process opens other descriptors for a moment while it looks for open
	// connections.
	r.wait(t, fmt.Sprintf("no more than %d files are open after some were passed", before), func([]State) bool { return descriptors(t) <= before })
	speak(t, a, b)
	r.wait(t, "both are in the set", func(s []State) bool {
		return len(s[0].Connections) == 2 && s[0].Connections[0].Weight+s[0].Connections[1].Weight == 3 && s[0].Connections[0].Acked > 0
	})
	// The user must be allowed.
	with(t, a, func(fd int) {
		for user, want := range map[uint32]bool{0: true, 1001: true, 1002: false} {
			var err error
			if e := r.requests.Do(func() { err = r.addConnection(user, request{Join: "asked", Weight: 2}, fd) }); e != nil {
				t.Fatal(e)
			}
			if (err == nil) != want {
				t.Errorf("user %d: %v", user, err)
			}
		}
	})
	r.stop()
	if _, err := QueryStates(name); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

// The first connection that joins does not decide about weights if the configuration
// does: the connections of a cgroup have no configured weights.
func TestJoinWeighed(t *testing.T) {
	labtest.NeedRoot(t)
	r := run(t, instance(), 16, collective.Policy{Name: "db", Cgroup: "/" + filepath.Base(labtest.Cgroup(t))})
	a, _ := pipe(t, "127.0.0.1:0")
	with(t, a, func(fd int) {
		if err := Join(r.name, "db", 2, fd); err == nil || !strings.Contains(err.Error(), "have no configured weights") {
			t.Errorf("configured weight: %v", err)
		}
	})
}

// The set of the nearest cgroup has a connection, whatever the order of the sets. After a
// kill the next process gives the connection to its current set, or to none.
func TestNearest(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := "/" + filepath.Base(labtest.Cgroup(t))
	a, b := pipe(t, "127.0.0.1:0") // open before the sets
	to := uint16(a.RemoteAddr().(*net.TCPAddr).Port)
	rules := []collective.Rule{dport(to, 0), {LocalPort: collective.Ports{From: to, To: to}}}
	all := collective.Policy{Name: "all", Cgroup: "/", Rules: rules}
	near := collective.Policy{Name: "near", Cgroup: cgroup, Rules: rules}
	far := collective.Policy{Name: "near", Cgroup: cgroup + "/none", Rules: rules}
	for _, c := range []struct {
		sets []collective.Policy
		want []int
	}{
		{[]collective.Policy{all, near}, []int{0, 2}}, {[]collective.Policy{near, all}, []int{2, 0}},
		{[]collective.Policy{far, all}, []int{0, 2}}, {[]collective.Policy{far}, []int{0}},
	} {
		name := instance()
		for range 2 { // the second takes over the table of the first, which was killed
			table, err := sockops.Open(name, 16)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := New(table, []collective.Policy{near, {Name: "other", Cgroup: "/", Rules: rules}}, false); err != nil {
				t.Fatal(err)
			}
			table.Close()
		}
		r := run(t, name, 16, c.sets...)
		speak(t, a, b)
		r.wait(t, fmt.Sprintf("%s has %v", c.sets[0].Name, c.want), func(s []State) bool {
			for i, want := range c.want {
				if len(s[i].Connections) != want {
					return false
				}
			}
			return true
		})
		r.stop()
	}
}

// A process that fails to start leaves nothing behind.
func TestNewFails(t *testing.T) {
	labtest.NeedRoot(t)
	name := instance()
	table, err := sockops.Open(name, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if _, err := New(table, []collective.Policy{{Name: "db", Cgroup: "/"}, {Name: "asked", Join: []string{"headgate-nobody"}}}, false); err == nil {
		t.Error("New accepts an unknown user")
	}
	if there, err := sockops.Exists(name); there || err != nil {
		t.Errorf("the table was not removed: %v (%v)", there, err)
	}
}

// After kill -9 the next process has the connections of the last one: those that joined
// with their weights, and the others in the sets that the new rules select.
func TestRestart(t *testing.T) {
	labtest.NeedRoot(t)
	name := instance()
	a, b := pipe(t, "127.0.0.1:0")
	to := uint16(a.RemoteAddr().(*net.TCPAddr).Port)
	table, err := sockops.Open(name, 16)
	if err != nil {
		t.Fatal(err)
	}
	first := []collective.Policy{{Name: "asked"}, {Name: "old", Cgroup: "/", Rules: []collective.Rule{dport(to, 0)}}}
	h, err := New(table, first, false)
	if err != nil {
		t.Fatal(err)
	}
	with(t, b, func(fd int) {
		if err := h.addConnection(0, request{Join: "asked", Weight: 3}, fd); err != nil {
			t.Fatal(err)
		}
	})
	speak(t, a, b)
	h.Look()
	if s := h.State(); len(s[0].Connections) != 1 || len(s[1].Connections) != 1 {
		t.Fatalf("%+v", s)
	}
	table.Close() // the maps, programs and connections remain, as after a kill
	r := run(t, name, 16, collective.Policy{Name: "new", Cgroup: "/", Rules: []collective.Rule{dport(to, 0)}}, collective.Policy{Name: "asked"})
	speak(t, a, b)
	r.wait(t, "each is in its set", func(s []State) bool {
		return len(s[0].Connections) == 1 && s[0].Connections[0].Remote == a.RemoteAddr().String() &&
			len(s[1].Connections) == 1 && s[1].Connections[0].Weight == 3
	})
}

// With parts by destination two connections to one address are in one part, and one to
// another address is in its own part, which is removed with the connection.
func TestPerDestination(t *testing.T) {
	labtest.NeedRoot(t)
	r := run(t, instance(), 16, collective.Policy{Name: "each", PerDestination: true})
	ends := map[string][]*net.TCPConn{}
	for _, to := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.1"} {
		a, _ := pipe(t, to+":0")
		ends[to] = append(ends[to], a)
		with(t, a, func(fd int) {
			if err := Join(r.name, "each", 0, fd); err != nil {
				t.Fatal(err)
			}
		})
		speak(t, a)
	}
	states := r.wait(t, "there are two parts", func(s []State) bool { return len(s) == 2 && len(s[0].Connections) == 2 })
	for i, to := range []string{"127.0.0.1", "127.0.0.2"} {
		if states[i].Destination != to {
			t.Errorf("destination of part %d is %q", i, states[i].Destination)
		}
		for _, c := range states[i].Connections {
			if netip.MustParseAddrPort(c.Remote).Addr().String() != to {
				t.Errorf("the part to %s has a connection to %s", to, c.Remote)
			}
		}
	}
	ends["127.0.0.2"][0].SetLinger(0)
	ends["127.0.0.2"][0].Close()
	r.wait(t, "the other part is removed", func(s []State) bool { return len(s) == 1 && s[0].Destination == "127.0.0.1" })
}

// A set whose cgroup is removed waits for a new one with the same name, and continues
// with it. A set whose unit does not exist waits from the beginning.
func TestCgroupRemoved(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	name := filepath.Base(cgroup)
	r := run(t, instance(), 64, collective.Policy{Name: "db", Cgroup: "/" + name}, collective.Policy{Name: "none", Unit: "headgate-none.service"})
	a, b := pipe(t, "127.0.0.1:0")
	speak(t, a, b)
	r.wait(t, "both ends are in the set", func(s []State) bool { return len(s[0].Connections) == 2 && !s[0].Waiting && s[1].Waiting })
	labtest.Enter(t, filepath.Dir(cgroup))
	if err := os.Remove(cgroup); err != nil {
		t.Fatal(err)
	}
	speak(t, a, b)
	r.wait(t, "the set waits and keeps its connections", func(s []State) bool { return s[0].Waiting && len(s[0].Connections) == 2 })
	if err := os.Mkdir(cgroup, 0o755); err != nil {
		t.Fatal(err)
	}
	labtest.Enter(t, cgroup)
	c, d := pipe(t, "127.0.0.1:0") // open before the cgroup is found
	r.wait(t, "the set has the connections of the new cgroup", func(s []State) bool {
		speak(t, c, d)
		return !s[0].Waiting && len(s[0].Connections) == 4
	})
}

// Ten thousand connections that end at once leave nothing behind. They are not accepted,
// so that each takes only one descriptor of this process.
func TestManyClose(t *testing.T) {
	labtest.NeedRoot(t)
	const all, listeners = 10_000, 5 // net.core.somaxconn is 4096
	r := run(t, instance(), 2*all, collective.Policy{Name: "many", Cgroup: "/" + filepath.Base(labtest.Cgroup(t))})
	for round := range 2 { // all slots are reusable
		var open []net.Conn
		var to []net.Listener
		for i := range all {
			if i < listeners {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				to = append(to, l)
			}
			c, err := net.Dial("tcp", to[i%listeners].Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			c.Write([]byte("x"))
			open = append(open, c)
		}
		r.wait(t, "both ends of all are in the set", func(s []State) bool { return len(s[0].Connections) == 2*all })
		for _, c := range open {
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
		for _, l := range to {
			l.Close()
		}
		r.wait(t, "no connection is in the set", func(s []State) bool { return len(s[0].Connections) == 0 })
		if n, err := r.table.RefusedWhenFull(); n > 0 || err != nil {
			t.Errorf("round %d: %d were refused (%v)", round, n, err)
		}
	}
}
