package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/unit"
)

// world is switches in memory with a host each at port 1, and the loop that they are connected to.
type world struct {
	*testing.T
	net    *oftest.Network
	sw     []*oftest.Switch
	hosts  []*oftest.Host
	cables []*oftest.Cable
	live   *Network
	mu     sync.Mutex
	events []fabric.Event
	stop   context.CancelFunc
	ended  sync.WaitGroup
	// cut are the channels that pass nothing, and channels the newest ones, by switch.
	cut     []atomic.Bool
	stalled []atomic.Int64 // until when what the switches send is held, in nanoseconds since 1970
	// late is how long each message to a switch takes, and each from it, in nanoseconds. The next waits meanwhile.
	late     [][2]atomic.Int64
	channels []atomic.Pointer[net.Conn]
}

// cutConn is a connection of which both directions can fall silent, as in a partition.
type cutConn struct {
	net.Conn
	cut     *atomic.Bool
	stalled *atomic.Int64
	late    *[2]atomic.Int64
}

func (c cutConn) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return len(b), nil
	}
	time.Sleep(time.Duration(c.late[0].Load()))
	return c.Conn.Write(b)
}

func (c cutConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		time.Sleep(time.Until(time.Unix(0, c.stalled.Load())))
		time.Sleep(time.Duration(c.late[1].Load()))
		if err != nil || !c.cut.Load() {
			return n, err
		}
	}
}

// anySwitch is a configuration that accepts every switch.
var anySwitch = fabric.Config{Name: "one", AcceptUnknown: true, HostsPerPort: 8}

// newWorld returns a network whose switches have the options in turn, and are connected.
func newWorld(t *testing.T, switches int, cables [][2]int, options ...oftest.Options) *world {
	w := newSwitches(t, switches, cables, options...)
	w.start(1)
	return w
}

// newSwitches returns a network whose switches have the options in turn, without a loop.
func newSwitches(t *testing.T, switches int, cables [][2]int, options ...oftest.Options) *world {
	if len(options) == 0 {
		options = []oftest.Options{{}}
	}
	w := &world{T: t, net: oftest.NewNetwork(), cut: make([]atomic.Bool, switches), stalled: make([]atomic.Int64, switches), late: make([][2]atomic.Int64, switches), channels: make([]atomic.Pointer[net.Conn], switches)}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	ports := make([]int, switches)
	for n := range switches {
		o := options[n%len(options)]
		o.DatapathID = uint64(n + 1)
		s := w.net.AddSwitch(fmt.Sprint("s", n+1), o)
		w.sw = append(w.sw, s)
		must(s.AddPort(oftest.PortOptions{No: 1, Down: true}))
		must(s.AddPort(oftest.PortOptions{No: 99, Down: true})) // a second host's
		h, err := w.net.AddHost(hostOptions(n), oftest.End{Switch: s, Port: 1}, oftest.CableOptions{})
		must(err)
		w.hosts = append(w.hosts, h)
		ports[n] = 1
	}
	for _, c := range cables {
		var ends [2]oftest.End
		for i, n := range c {
			ports[n]++
			must(w.sw[n].AddPort(oftest.PortOptions{No: openflow.PortNo(ports[n]), Down: true}))
			ends[i] = oftest.End{Switch: w.sw[n], Port: openflow.PortNo(ports[n])}
		}
		cable, err := w.net.AddCable(ends[0], ends[1], oftest.CableOptions{})
		must(err)
		w.cables = append(w.cables, cable)
	}
	return w
}

// newKnown is a network that knows its hosts, and has the rules for them.
func newKnown(t *testing.T, cables [][2]int, options ...oftest.Options) *world {
	w := newWorld(t, 4, cables, options...)
	w.settle(time.Second)
	w.ping(time.Second)
	w.settle(time.Second)
	return w
}

// deleteAll deletes all flows of a switch, as somebody else does.
func (w *world) deleteAll(s *oftest.Switch) {
	w.Helper()
	if err := s.Do(&openflow.FlowMod{Command: openflow.FlowDelete, Table: openflow.AllTables, Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny}); err != nil {
		w.Fatal(err)
	}
}

func hostOptions(n int) oftest.HostOptions {
	return oftest.HostOptions{Name: fmt.Sprint("h", n+1), MAC: openflow.MAC{2, 0, 0, 1, byte((n + 1) >> 8), byte(n + 1)}, Addrs: []netip.Prefix{
		netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte((n + 1) >> 8), byte(n + 1)}), 16), netip.MustParsePrefix(fmt.Sprintf("fd00::%x/64", n+1)),
	}}
}

// start starts a loop, to which the switches connect.
func (w *world) start(generation uint64) { w.lead(generation)(w.sw...) }

// lead starts a loop, and returns what connects switches to it.
func (w *world) lead(generation uint64) (connect func(...*oftest.Switch)) {
	ctx, cancel := context.WithCancel(w.Context())
	live := New(ctx, Options{Key: []byte("key"), Generation: generation, Event: func(e fabric.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}})
	w.live = live
	w.stop = func() {
		cancel()
		w.ended.Wait()
	}
	w.Cleanup(func() { w.stop() })
	return func(switches ...*oftest.Switch) {
		for _, s := range switches {
			i := slices.Index(w.sw, s)
			w.ended.Go(func() {
				s.Dial(ctx, 0, func(context.Context) (net.Conn, error) {
					if w.cut[i].Load() {
						return nil, errors.New("no way to the controller")
					}
					ours, theirs := net.Pipe()
					w.channels[i].Store(&ours)
					w.ended.Go(func() { _ = live.Serve(cutConn{ours, &w.cut[i], &w.stalled[i], &w.late[i]}) })
					return theirs, nil
				})
			})
		}
	}
}

// settle waits until every switch has what it should.
func (w *world) settle(within time.Duration) {
	w.Helper()
	began := time.Now()
	for time.Since(began) < within {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
	if !w.live.Settled() {
		w.Fatalf("not settled after %v", within)
	}
}

func (w *world) has(kind fabric.EventKind, text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.events, func(e fabric.Event) bool { return e.Kind == kind && strings.Contains(e.Text, text) })
}

// ping pings between all pairs of hosts, IPv4 and IPv6, and returns those that have no answer, and the longest time of the
// others.
func (w *world) ping(within time.Duration) (missing []string, longest time.Duration) {
	type one struct {
		name string
		p    *oftest.Ping
	}
	for _, six := range []bool{false, true} {
		var all []one
		for i, from := range w.hosts {
			for j, to := range w.hosts {
				if i != j {
					all = append(all, one{fmt.Sprintf("%s->%s", from.Name(), to.Addr(six)), from.Ping(to.Addr(six))})
				}
			}
		}
		time.Sleep(within)
		synctest.Wait()
		for _, o := range all {
			rtt, ok := o.p.RTT()
			switch {
			case !ok:
				missing = append(missing, o.name)
			case o.p.Answers() != 1:
				missing = append(missing, fmt.Sprintf("%s: %d answers", o.name, o.p.Answers()))
			}
			longest = max(longest, rtt)
		}
	}
	if s := w.net.Storm(); s.Looped > 0 || s.Overflow > 0 {
		w.Errorf("frames go round: %+v", s)
	}
	return missing, longest
}

var ring = [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 2}}

// A network with loops finds its links and hosts, and connects them all, also those that have never sent anything.
func TestConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, ring)
		w.settle(time.Second)
		if got := len(w.live.Plan().Topology.Links()); got != 2*len(ring) {
			t.Fatalf("%d links a second after the switches connected, want %d", got, 2*len(ring))
		}
		missing, first := w.ping(time.Second)
		if len(missing) > 0 {
			t.Errorf("no answer: %v", missing)
		}
		missing, second := w.ping(100 * time.Millisecond)
		if len(missing) > 0 {
			t.Errorf("no second answer: %v", missing)
		}
		if first > second+5*time.Millisecond {
			t.Errorf("the first ping took %v, the second %v", first, second)
		}
		hosts := w.live.Plan().Topology.Hosts()
		if len(hosts) != 4 || len(hosts[0].Addrs) != 2 {
			t.Errorf("hosts %+v", hosts)
		}
		before := w.live.Counters()
		w.settle(time.Second)
		if _, after := w.ping(time.Second); after > 10*time.Millisecond {
			t.Errorf("a later ping took %v", after)
		}
		if after := w.live.Counters(); after.Plans != before.Plans {
			t.Errorf("%d plans though nothing has changed", after.Plans-before.Plans)
		}
	})
}

// Whatever fails, hosts that are still connected reach each other: at once where a port goes down, within a second where
// frames are lost in silence.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newKnown(t, ring)
		for i, c := range w.cables {
			c.Unplug()
			if missing, _ := w.ping(100 * time.Millisecond); len(missing) > 0 {
				t.Errorf("cable %v unplugged: no answer: %v", ring[i], missing)
			}
			w.settle(500 * time.Millisecond)
			if got := len(w.live.Plan().Topology.Links()); got != 2*len(ring)-2 {
				t.Errorf("cable %v unplugged: %d links", ring[i], got)
			}
			if err := c.Plug(); err != nil {
				t.Fatal(err)
			}
			w.settle(time.Second)
			if got := len(w.live.Plan().Topology.Links()); got != 2*len(ring) {
				t.Errorf("cable %v plugged in: %d links", ring[i], got)
			}
		}
		for _, lose := range [][2]bool{{true, true}, {true, false}} {
			w.cables[0].Lose(lose[0], lose[1])
			w.settle(time.Second)
			if got := len(w.live.Plan().Topology.Links()); got != 2*len(ring)-2 {
				t.Errorf("%d links a second after a cable loses everything (%v)", got, lose)
			}
			if missing, _ := w.ping(100 * time.Millisecond); len(missing) > 0 {
				t.Errorf("a second after a cable loses everything (%v): no answer: %v", lose, missing)
			}
			w.cables[0].Lose(false, false)
			w.settle(2 * time.Second)
			if got := len(w.live.Plan().Topology.Links()); got != 2*len(ring) {
				t.Errorf("%d links after the loss has ended", got)
			}
		}
		if !w.has(fabric.LinkRemoved, "is down") {
			t.Error("no event of a link that is down")
		}
		// A switch without power: the others go on. When it returns, it gets everything again.
		w.sw[1].PowerOff()
		w.settle(time.Second)
		missing, _ := w.ping(100 * time.Millisecond)
		for _, m := range missing {
			if !strings.Contains(m, "h2->") && !strings.HasSuffix(m, "10.0.0.2") && !strings.HasSuffix(m, "fd00::2") {
				t.Errorf("switch 2 has no power: %s", m)
			}
		}
		w.sw[1].PowerOn()
		w.settle(12 * time.Second)
		if missing, _ := w.ping(time.Second); len(missing) > 0 {
			t.Errorf("switch 2 has power again: no answer: %v", missing)
		}
	})
}

// A new controller touches nothing that is right: counters go on, and standing traffic loses nothing.
func TestSuccession(t *testing.T) {
	t.Run("whole", func(t *testing.T) { testSuccession(t) })
	t.Run("mixed", func(t *testing.T) { testSuccession(t, mixed...) })
}

func testSuccession(t *testing.T, options ...oftest.Options) {
	synctest.Test(t, func(t *testing.T) {
		w := newKnown(t, ring, options...)
		packets := func() (sum uint64, flows int) {
			for _, s := range w.sw {
				for _, f := range s.Flows() {
					sum += f.Packets
					flows++
				}
			}
			return sum, flows
		}
		before, flows := packets()
		began := time.Now()
		sent := 0
		h1, h3 := w.hosts[0], w.hosts[2]
		h3.Forget()
		send := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				h1.SendUDP(7, netip.AddrPortFrom(h3.Addr(false), 7), []byte("data"))
				sent++
			}
		}
		send(time.Second)
		w.stop()
		send(time.Second)
		w.start(2)
		send(5 * time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		if !w.live.Settled() {
			t.Error("not settled")
		}
		got := 0
		for _, r := range h3.Received() {
			if bytes.Contains(r.Frame, []byte("data")) {
				got++
			}
		}
		if got != sent {
			t.Errorf("%d of %d packets arrived while the controller changed", got, sent)
		}
		after, now := packets()
		if after < before || now != flows {
			t.Errorf("%d packets counted by %d flows after the new controller came, %d by %d before", after, now, before, flows)
		}
		for _, s := range w.sw {
			for _, f := range s.Flows() {
				if k, _ := program.KindOf(f.Cookie); k != program.KindDiscovery && time.Duration(f.Duration.Sec)*time.Second < time.Since(began).Truncate(time.Second) {
					t.Errorf("switch %d: the flow %v was set again", s.DatapathID(), f)
				}
			}
		}
	})
}

// A switch that the controller cannot reach goes on as before, and so does what passes it. Its death is seen by its neighbours.
func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, [][2]int{{0, 1}, {1, 2}, {2, 3}}) // no way around
		w.settle(time.Second)
		w.ping(time.Second)
		w.settle(time.Second)
		w.cut[1].Store(true)
		for range 10 {
			w.settle(time.Second)
			if missing, _ := w.ping(100 * time.Millisecond); len(missing) > 0 {
				t.Fatalf("while the controller cannot reach switch 2: no answer: %v", missing)
			}
		}
		for range 9 {
			w.settle(20 * time.Second)
			if missing, _ := w.ping(100 * time.Millisecond); len(missing) > 0 {
				t.Fatalf("while the controller cannot reach switch 2 for minutes: no answer: %v", missing)
			}
		}
		status := w.live.Status()
		if len(status.Switches) != 4 || !status.Settled || status.Switches[1].Problem == nil || status.Switches[1].Address != "" || status.Switches[0].Problem != nil {
			t.Errorf("while the controller cannot reach switch 2: %+v", status)
		}
		if !w.has(fabric.SwitchRemoved, "does not answer") {
			t.Error("no event of the switch that does not answer")
		}
		w.cut[1].Store(false)
		for range 12 {
			time.Sleep(time.Second)
			if missing, _ := w.ping(100 * time.Millisecond); len(missing) > 0 {
				t.Fatalf("after the controller reaches switch 2 again: no answer: %v", missing)
			}
		}
		w.settle(time.Second)
		w.cut[1].Store(true)
		w.settle(10 * time.Second)
		w.cables[0].Unplug()
		w.settle(time.Second)
		if got := len(w.live.Plan().Topology.Links()); got != 4 {
			t.Errorf("%d links, want 4: the cable to a switch that is not reached was unplugged", got)
		}
	})
}

// A switch whose channel is closed, and which connects again, loses no frame, and none of its flows is written again.
func TestReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, [][2]int{{0, 1}, {1, 2}, {2, 3}})
		w.settle(3 * time.Second)
		w.ping(time.Second)
		w.settle(3 * time.Second)
		began := time.Now()
		flows := len(w.sw[1].Flows())
		(*w.channels[1].Load()).Close()
		for time.Since(began) < 10*time.Second {
			if missing, _ := w.ping(100 * time.Millisecond); len(missing) > 0 {
				t.Fatalf("%v after the channel was closed: no answer: %v", time.Since(began), missing)
			}
		}
		if !w.has(fabric.SwitchRemoved, "0000000000000002") {
			t.Error("the channel was not closed")
		}
		w.settle(time.Second)
		if got := w.sw[1].Flows(); len(got) != flows {
			t.Errorf("%d flows, %d before", len(got), flows)
		}
		for _, f := range w.sw[1].Flows() {
			if kind, _ := program.KindOf(f.Cookie); kind != program.KindDiscovery && f.Duration.Duration() < time.Since(began) {
				t.Errorf("a flow was written again: %+v", f)
			}
		}
	})
}

// A switch that hangs, and forwards nothing while its ports are up, is told from one that only the controller does not reach: others
// go around it within a second and the time for the change.
func TestHangs(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(map[bool]string{false: "silent", true: "closed"}[closed], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 4, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}})
				w.settle(time.Second)
				w.ping(time.Second)
				w.settle(time.Second)
				w.cut[1].Store(true)
				if closed {
					(*w.channels[1].Load()).Close()
				}
				w.cables[0].Lose(true, true)
				w.cables[1].Lose(true, true)
				time.Sleep(1200 * time.Millisecond)
				synctest.Wait()
				missing, _ := w.ping(100 * time.Millisecond)
				for _, m := range missing {
					if !strings.Contains(m, "h2->") && !strings.HasSuffix(m, "10.0.0.2") && !strings.HasSuffix(m, "fd00::2") {
						t.Errorf("no answer: %s", m)
					}
				}
				if len(missing) == 0 {
					t.Error("the switch passes something")
				}
				if got := len(w.live.Plan().Topology.Links()); got != 4 {
					t.Errorf("%d links, want 4", got)
				}
			})
		})
	}
}

// A neighbour whose channel is slow for a time is not taken for one to which nothing passes.
func TestSlowNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, [][2]int{{0, 1}, {1, 2}, {2, 3}})
		w.settle(time.Second)
		w.ping(time.Second)
		w.settle(time.Second)
		w.cut[1].Store(true)
		w.settle(10 * time.Second)
		for _, slow := range []time.Duration{300, 450, 550, 700, 1500} {
			until := time.Now().Add(slow * time.Millisecond).UnixNano()
			w.stalled[0].Store(until)
			w.stalled[2].Store(until)
			for range 10 {
				if missing, _ := w.ping(100 * time.Millisecond); len(missing) > 0 {
					t.Fatalf("channels were slow for %v: no answer: %v", slow*time.Millisecond, missing)
				}
			}
		}
	})
}

// A controller that starts waits for the switches towards which others have flows.
func TestSlowReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}})
		w.settle(time.Second)
		w.ping(time.Second)
		w.settle(time.Second)
		w.stop()
		w.cut[1].Store(true) // it cannot connect
		w.start(2)
		for n := range 40 {
			if n == 15 {
				w.cut[1].Store(false)
			}
			if missing, _ := w.ping(100 * time.Millisecond); len(missing) > 0 {
				t.Fatalf("%d ms after the start: no answer: %v", n*200, missing)
			}
		}
		w.settle(10 * time.Second)
		if got := len(w.live.Plan().Topology.Links()); got != 8 {
			t.Errorf("%d links, want 8", got)
		}
	})
}

// Hosts that pass on discovery frames make a link of their ports, which do not go down. The network goes on to be planned.
func TestHostsPassDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, [][2]int{{0, 1}, {1, 2}})
		w.settle(time.Second)
		w.ping(time.Second)
		w.settle(time.Second)
		passed := [2]int{len(w.hosts[0].Received()), len(w.hosts[1].Received())}
		for range 120 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			for i := range passed {
				all := w.hosts[i].Received()
				for _, r := range all[passed[i]:] {
					if len(r.Frame) > 14 && r.Frame[12] == 0x88 && r.Frame[13] == 0xcc {
						w.hosts[1-i].Send(r.Frame)
					}
				}
				passed[i] = len(all)
			}
		}
		if got := len(w.live.Plan().Topology.Links()); got != 6 {
			t.Errorf("%d links, want 6", got)
		}
		if w.has(fabric.SwitchChanged, "contradicts itself") {
			t.Error("the network contradicts itself")
		}
	})
}

// What an operator writes holds: names, capacities and costs, switches that may not connect, ports of hosts without a delay and
// without links, ports of links without hosts, and a cable in the wrong place.
func TestConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, ring)
		ref := func(id fabric.DPID, port string) fabric.PortRef {
			name, err := fabric.ParsePortName(port)
			if err != nil {
				t.Fatal(err)
			}
			return fabric.PortRef{Switch: id, Port: name}
		}
		w.live.Configure(fabric.Config{
			Name: "ring", Switches: []fabric.SwitchConfig{
				{ID: 1, Name: "one", HostPorts: []fabric.PortName{{No: 1}, {Name: "p99"}}, LinkPorts: []fabric.PortName{{No: 2}}}, {ID: 2, Name: "two"}, {ID: 3, Name: "three"},
			},
			Links: []fabric.LinkConfig{
				{Ends: [2]fabric.PortRef{ref(1, "2"), ref(2, "p2")}, Capacity: 100 * unit.Mbit, Back: 50 * unit.Mbit, Cost: 7},
				{Ends: [2]fabric.PortRef{ref(2, "3"), ref(3, "p3")}, Capacity: 100 * unit.Mbit, Cost: 1}, // it is at port 2 of three
			},
			HostsPerPort: 64,
		})
		w.settle(2 * time.Second)
		topology := w.live.Plan().Topology
		if _, ok := topology.Switch(4); ok || !slices.Equal(w.live.Switches(), []fabric.DPID{1, 2, 3}) {
			t.Errorf("switches %v, want those of the file", w.live.Switches())
		}
		l, _ := topology.Link(fabric.LinkID{From: fabric.PortID{Switch: 1, Port: 2}, To: fabric.PortID{Switch: 2, Port: 2}})
		back, _ := topology.Link(l.Reverse())
		if l.Capacity != 100*unit.Mbit || back.Capacity != 50*unit.Mbit || l.Cost != 7 || l.Source != fabric.Configured {
			t.Errorf("link %+v and %+v", l, back)
		}
		status := w.live.Status()
		if status.Name != "ring" || len(status.Missing) != 0 || status.Switches[0].Name != "one" {
			t.Errorf("the network is %q without %v, its first switch %q", status.Name, status.Missing, status.Switches[0].Name)
		}
		if len(status.MissingLinks) != 2 || status.MissingLinks[0].String() != "0000000000000002/3 -> 0000000000000003/3" {
			t.Errorf("the missing links are %v, want the one that is elsewhere", status.MissingLinks)
		}
		if !w.has(fabric.LinkFaulty, "the configuration says") || !w.has(fabric.LinkAdded, "one/2 -> two/2") {
			t.Error("no event of a cable in the wrong place, or none with the names")
		}
		for _, c := range []struct {
			port fabric.PortNo
			want bool
		}{{1, true}, {99, false}, {2, false}} { // 99 is down
			if got := w.live.Plan().HostPort(fabric.PortID{Switch: 1, Port: c.port}); got != c.want {
				t.Errorf("port %d belongs to hosts: %v, want %v", c.port, got, c.want)
			}
		}
	})
}

// What somebody deletes or changes in a switch is put right.
func TestDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newKnown(t, ring)
		all := openflow.FlowMod{Command: openflow.FlowDelete, Table: openflow.AllTables, Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny}
		if err := w.sw[0].Do(&all); err != nil {
			t.Fatal(err)
		}
		w.settle(countInterval + time.Second)
		if missing, _ := w.ping(time.Second); len(missing) > 0 {
			t.Errorf("after all flows of a switch were deleted: no answer: %v", missing)
		}
		all.Command = openflow.FlowModify
		for table := range program.TableDeliver + 1 {
			all.Table = table
			if err := w.sw[1].Do(&all); err != nil { // no flow does anything
				t.Fatal(err)
			}
		}
		w.settle(auditInterval + time.Second)
		if missing, _ := w.ping(time.Second); len(missing) > 0 {
			t.Errorf("after all flows of a switch were changed: no answer: %v", missing)
		}
	})
}

// A host that moves is found at its new port, and one that only claims to have moved is not.
func TestMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newKnown(t, ring)
		if err := w.hosts[0].Move(oftest.End{Switch: w.sw[2], Port: 99}, oftest.CableOptions{}); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		w.hosts[0].Announce()
		w.settle(time.Second)
		if missing, _ := w.ping(time.Second); len(missing) > 0 {
			t.Errorf("after host 1 has moved: no answer: %v", missing)
		}
		if !w.has(fabric.HostMoved, "") {
			t.Error("no event of a host that has moved")
		}
		// Another host with the address of host 2, and one with its MAC.
		thief := hostOptions(1)
		thief.Name = "thief"
		h, err := w.net.AddHost(thief, oftest.End{Switch: w.sw[3], Port: 99}, oftest.CableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		for range 5 {
			h.Announce()
			w.settle(300 * time.Millisecond)
			if missing, _ := w.ping(200 * time.Millisecond); len(missing) > 0 {
				t.Errorf("while another claims to be host 2: no answer: %v", missing)
			}
		}
		if !w.has(fabric.HostElsewhere, "") {
			t.Error("no event of a MAC at two ports")
		}
	})
}

// Changes that come while a plan waits to be made are one plan. A timer that is reset after it has fired fires again.
func TestOnePlan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := New(ctx, Options{Key: []byte("key")})
	n.making.Lock()
	for range 5 {
		n.mu.Lock()
		n.began = time.Now() // a switch is there
		n.replan()
		n.mu.Unlock()
		time.Sleep(2 * gather)
	}
	n.making.Unlock()
	for range 1000 {
		if n.Counters().Plans > 0 {
			break
		}
		time.Sleep(gather)
	}
	time.Sleep(5 * gather)
	if plans := n.Counters().Plans; plans != 1 {
		t.Errorf("%d plans of 5 changes that came before the first", plans)
	}
}

// Frames that a host makes up, or has recorded, make no link.
func TestForgedDiscovery(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	p := fabric.PortID{Switch: 7, Port: 3}
	f := newFrames([]byte("key"))
	good := slices.Clone(f.make(p, ofReflection, now))
	if got, what, err := f.read(good, now.Add(time.Second)); err != nil || got != p || what != ofReflection {
		t.Fatalf("%v, %v", got, err)
	}
	if _, _, err := newFrames([]byte("other")).read(good, now); err != errNoMAC {
		t.Errorf("another key: %v", err)
	}
	for _, d := range []time.Duration{maxAge + 1, -maxAge - 1} {
		if _, _, err := f.read(good, now.Add(d)); err != errTooOld {
			t.Errorf("%v later: %v", d, err)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i := 6; i < len(good); i++ {
		bad := slices.Clone(good)
		bad[i] ^= byte(1 << r.IntN(8))
		if got, _, err := f.read(bad, now); err == nil {
			t.Errorf("byte %d changed: accepted as of %v", i, got)
		}
		_, _, _ = f.read(good[:i], now)
	}
}

// A flow of somebody else that has the place of one of ours is named while it is there.
func TestCollision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, ring)
		w.settle(time.Second)
		flows := w.sw[0].Flows()
		place := flows[slices.IndexFunc(flows, carriesTraffic)]
		theirs := &openflow.FlowMod{Command: openflow.FlowAdd, Table: place.Table, Priority: place.Priority, Match: place.Match, Cookie: 7, Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny}
		if err := w.sw[0].Do(theirs); err != nil {
			t.Fatal(err)
		}
		time.Sleep(countInterval) // it is found when flows are counted
		for range 4 {
			time.Sleep(retry)
			synctest.Wait()
			if s := w.live.Status().Switches[0]; s.Problem == nil || !strings.Contains(s.Problem.Error(), "does not manage") {
				t.Fatalf("the error of the switch is %v", s.Problem)
			}
		}
	})
}
