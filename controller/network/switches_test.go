package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/program"
)

// pipes is a listener whose connections are net.Pipe, which a test in virtual time can wait for.
type pipes struct {
	waiting chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newPipes() *pipes { return &pipes{waiting: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.waiting:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.waiting <- ours:
		return theirs, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// world is three switches in a triangle with a host each, which are connected to two controllers.
type world struct {
	*testing.T
	net         *oftest.Network
	sw          []*oftest.Switch
	hosts       []*oftest.Host
	controllers [2]*Switches
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, net: oftest.NewNetwork()}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		s := w.net.AddSwitch(fmt.Sprint("s", n+1), oftest.Options{DatapathID: uint64(n + 1)})
		for no := range 3 {
			must(s.AddPort(oftest.PortOptions{No: openflow.PortNo(no + 1), Down: true}))
		}
		h, err := w.net.AddHost(oftest.HostOptions{Name: fmt.Sprint("h", n+1), MAC: openflow.MAC{2, 0, 0, 0, 1, byte(n + 1)}, Addrs: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n + 1)}), 24),
		}}, oftest.End{Switch: s, Port: 1}, oftest.CableOptions{})
		must(err)
		w.sw, w.hosts = append(w.sw, s), append(w.hosts, h)
	}
	for n := range 3 {
		_, err := w.net.AddCable(oftest.End{Switch: w.sw[n], Port: 2}, oftest.End{Switch: w.sw[(n+1)%3], Port: 3}, oftest.CableOptions{})
		must(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range w.controllers {
		l := newPipes()
		c := New(Options{Key: []byte("key"), Plain: l})
		w.controllers[i] = c
		running.Go(func() { c.Serve(ctx) })
		for _, s := range w.sw {
			running.Go(func() { s.Dial(ctx, 0, l.dial) })
		}
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return w
}

// lead begins a term of a controller, which end ends.
func (w *world) lead(controller int, generation uint64) (end func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() { w.controllers[controller].Lead(ctx, generation) })
	w.Cleanup(func() { cancel(); running.Wait() })
	return func() {
		cancel()
		running.Wait()
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		for _, s := range w.sw {
			masters := 0
			for _, role := range s.Controllers() {
				if role == openflow.RoleMaster {
					masters++
				}
			}
			if masters > 1 {
				w.Fatalf("switch %x has %d masters", s.DatapathID(), masters)
			}
		}
	}
}

// ping requires that all hosts reach each other.
func (w *world) ping() {
	w.Helper()
	all := map[string]*oftest.Ping{}
	for _, from := range w.hosts {
		for _, to := range w.hosts {
			if from != to {
				all[from.Name()+" -> "+to.Name()] = from.Ping(to.Addr(false))
			}
		}
	}
	w.pass(500 * time.Millisecond)
	for name, p := range all {
		if _, ok := p.RTT(); !ok {
			w.Errorf("no answer: %s", name)
		}
	}
}

// roles requires the roles of controllers at every switch.
func (w *world) roles(want ...openflow.ControllerRole) {
	w.Helper()
	slices.Sort(want)
	for _, s := range w.sw {
		if got := s.Controllers(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			w.Errorf("switch %x: the roles are %v, want %v", s.DatapathID(), got, want)
		}
	}
}

// flows are the flows of all switches, by what identifies them, with their ages. That of discovery frames is left out: each
// leader sends it first, and it stays the same.
func (w *world) flows() map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, s := range w.sw {
		for _, f := range s.Flows() {
			if kind, _ := program.KindOf(f.Cookie); kind == program.KindDiscovery {
				continue
			}
			all[fmt.Sprint(s.DatapathID(), f.Table, f.Priority, f.Match, f.Instructions, f.Cookie)] = f.Duration.Duration()
		}
	}
	return all
}

// The flows of a controller stay in the switches when it no longer leads, and another changes none of them.
func TestTermsFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pass(time.Second)
		w.roles(openflow.RoleSlave, openflow.RoleSlave)
		end := w.lead(0, 1)
		w.pass(3 * time.Second)
		w.roles(openflow.RoleMaster, openflow.RoleSlave)
		w.ping()
		w.ping()
		w.pass(time.Second)
		live := w.controllers[0].Live()
		if s := live.Status(); !s.Settled || len(s.Switches) != 3 || len(s.Links) != 6 || len(s.Hosts) != 3 {
			t.Fatalf("settled %v with %d switches, %d links and %d hosts, want 3, 6 and 3", s.Settled, len(s.Switches), len(s.Links), len(s.Hosts))
		}
		before := w.flows()

		end()
		if w.controllers[0].Live() != nil {
			t.Error("a controller leads after its term")
		}
		w.pass(10 * time.Second)
		w.roles(openflow.RoleSlave, openflow.RoleSlave)
		w.ping() // by the flows alone

		w.lead(1, 2)
		w.pass(3 * time.Second)
		w.roles(openflow.RoleMaster, openflow.RoleSlave)
		w.ping()
		after := w.flows()
		if len(after) != len(before) {
			t.Errorf("%d flows after the change of the leader, %d before", len(after), len(before))
		}
		for flow, age := range before {
			if now, ok := after[flow]; !ok || now < age+10*time.Second {
				t.Errorf("%s: it was %v old, is %v old: it was written again, or is gone", flow, age, now)
			}
		}
	})
}

// A leader that was stopped, and does not know that its term is over, changes nothing in the switches: the one that was
// elected meanwhile is their only master.
func TestStoppedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		endOld := w.lead(0, 1)
		w.pass(3 * time.Second)
		w.ping()
		w.lead(1, 2)
		w.pass(5 * time.Second)
		w.roles(openflow.RoleMaster, openflow.RoleSlave)
		// What the old leader now plans, it cannot write.
		if err := w.hosts[2].Move(oftest.End{Switch: w.sw[2], Port: 1}, oftest.CableOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(3 * time.Second)
		w.ping()
		if s := w.controllers[1].Live().Status(); !s.Settled || len(s.Switches) != 3 {
			t.Errorf("the new leader has settled: %v, and has %d switches", s.Settled, len(s.Switches))
		}
		endOld()
		w.pass(time.Second)
		w.roles(openflow.RoleMaster, openflow.RoleSlave)
		w.ping()

		// A term with a generation that the switches know to be over is refused.
		w.lead(0, 1)
		w.pass(5 * time.Second)
		w.roles(openflow.RoleMaster, openflow.RoleSlave)
		w.ping()
		if s := w.controllers[0].Live().Status(); len(s.Switches) != 0 {
			t.Errorf("a leader of an older generation leads %d switches", len(s.Switches))
		}
	})
}

// A switch that connects during a term is led, and one that connects again too.
func TestSwitchReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lead(0, 7)
		w.pass(3 * time.Second)
		w.ping()
		w.sw[1].PowerOff()
		w.pass(5 * time.Second)
		if got := w.controllers[0].Live().Switches(); !slices.Equal(got, []fabric.DPID{1, 3}) {
			t.Errorf("the switches are %v", got)
		}
		w.sw[1].PowerOn()
		w.pass(15 * time.Second)
		w.roles(openflow.RoleMaster, openflow.RoleSlave)
		w.ping()
		events, _ := w.controllers[0].Events()
		for _, kind := range []fabric.EventKind{fabric.SwitchAdded, fabric.SwitchRemoved, fabric.LinkAdded, fabric.HostAdded} {
			if !slices.ContainsFunc(events, func(e fabric.Event) bool { return e.Kind == kind && !e.Time.IsZero() }) {
				t.Errorf("no event %s", kind)
			}
		}
	})
}

// Only switches of the configuration connect, to every controller, and those that are taken out of it are disconnected.
func TestConfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lead(0, 1)
		w.pass(3 * time.Second)
		w.ping()
		connected := func(want ...fabric.DPID) {
			t.Helper()
			w.pass(15 * time.Second) // a refused switch waits up to 8 s
			if got := w.controllers[0].Live().Switches(); !slices.Equal(got, want) {
				t.Errorf("the leader has %v, want %v", got, want)
			}
			for n, s := range w.sw {
				roles := 2
				if !slices.Contains(want, fabric.DPID(n+1)) {
					roles = 0
				}
				if got := s.Controllers(); len(got) != roles {
					t.Errorf("switch %d has %d controllers, want %d", n+1, len(got), roles)
				}
			}
		}
		configure := func(c *fabric.Config) {
			for _, one := range w.controllers {
				one.Configure(c)
			}
		}
		configure(&fabric.Config{Switches: []fabric.SwitchConfig{{ID: 1, Name: "north"}, {ID: 3}}})
		connected(1, 3)
		for i, c := range w.controllers {
			refused := 0
			all, _ := c.Events()
			for _, e := range all {
				if e.Kind == fabric.SwitchRefused && strings.Contains(e.Text, "switch 0000000000000002 is not in the configuration of the network: add it") {
					refused++
				}
			}
			if refused != 1 {
				t.Errorf("controller %d: %d events of the switch that was refused several times, want 1", i, refused)
			}
		}
		all, _ := w.controllers[0].Events()
		if !slices.ContainsFunc(all, func(e fabric.Event) bool {
			return e.Kind == fabric.SwitchRemoved && strings.Contains(e.Text, "is disconnected: switch 0000000000000002 is not in the configuration")
		}) {
			t.Errorf("no event says why switch 2 was disconnected: %+v", all)
		}
		configure(&fabric.Config{Switches: []fabric.SwitchConfig{{ID: 2}}, AcceptUnknown: true})
		connected(1, 2, 3)
		w.ping()
		configure(&fabric.Config{Switches: []fabric.SwitchConfig{{ID: 2}}})
		connected(2)
		if got := w.controllers[0].Live().Status().Name; got != "" {
			t.Errorf("the configuration without a name gives the name %q", got)
		}
		configure(&fabric.Config{Name: "campus", AcceptUnknown: true, HostsPerPort: 10, Listen: []fabric.Listener{{}}, Switches: []fabric.SwitchConfig{{ID: 2, HostPorts: []fabric.PortName{{No: 9}}}}})
		connected(1, 2, 3)
		before, _ := w.controllers[0].Events()
		if got := w.controllers[0].Live().Status(); got.Name != "campus" || len(got.Faults) != 1 {
			t.Errorf("the name is %q, and the faults are %+v", got.Name, got.Faults)
		}
		configure(nil)
		connected(1, 2, 3)
		w.ping()
		if got := w.controllers[0].Live().Status(); got.Name != "" || len(got.Faults) > 0 {
			t.Errorf("without a configuration the name is %q, and the faults are %+v", got.Name, got.Faults)
		}
		if after, _ := w.controllers[0].Events(); slices.ContainsFunc(after[len(before):], func(e fabric.Event) bool { return e.Kind == fabric.SwitchChanged }) {
			t.Errorf("without a configuration the events are %+v", after[len(before):])
		}

		// A term begins with the configuration.
		configure(&fabric.Config{Switches: []fabric.SwitchConfig{{ID: 1}, {ID: 2, HostPorts: []fabric.PortName{{No: 1}}}, {ID: 3}}})
		w.lead(1, 2)
		w.pass(3 * time.Second)
		if got := w.controllers[1].Live().Status(); len(got.Switches) != 3 {
			t.Errorf("the next leader has %d switches", len(got.Switches))
		}
	})
}

// Peers that say nothing do not keep switches out for longer than a handshake may take, and are bounded.
func TestSilentPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		s := New(Options{Plain: l})
		s.handshakes = make(chan struct{}, 2)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Serve(ctx) }()
		ended := make(chan int, 3)
		for n := range 3 {
			c, err := l.dial(ctx)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for b := make([]byte, 100); ; {
					if _, err := c.Read(b); err != nil {
						ended <- n
						return
					}
				}
			}()
			synctest.Wait()
		}
		if got := <-ended; got != 2 {
			t.Errorf("peer %d was refused, want the third", got)
		}
		began := time.Now()
		<-ended
		<-ended
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("peers that say nothing are disconnected after %v", took)
		}
		sw := oftest.New(oftest.Options{DatapathID: 5})
		go sw.Dial(ctx, 0, l.dial)
		time.Sleep(time.Second)
		if got := sw.Controllers(); !slices.Equal(got, []openflow.ControllerRole{openflow.RoleSlave}) {
			t.Errorf("the roles are %v", got)
		}
		cancel()
		<-done
	})
}

// The last events are kept, in their order.
func TestEvents(t *testing.T) {
	var e events
	for n := range maxEvents + 5 {
		e.add(fabric.Event{Port: fabric.PortID{Port: fabric.PortNo(n)}})
	}
	all, _ := e.all()
	if len(all) != maxEvents || all[0].Port.Port != 5 || all[maxEvents-1].Port.Port != maxEvents+4 {
		t.Errorf("%d events, from %v to %v", len(all), all[0].Port, all[len(all)-1].Port)
	}
}
