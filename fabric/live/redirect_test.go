package live

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/internal/relaylldp"
	"headgate.dev/headgate/unit"
)

const flagFIN, flagSYN, flagACK = 1, 2, 0x10

// tcp returns a frame with a TCP segment without data. Its checksum is that of the pseudo-header alone if it is unfinished.
func tcp(dst, src fabric.MAC, from, to netip.AddrPort, flags byte, unfinished bool) []byte {
	segment := make([]byte, 20)
	binary.BigEndian.PutUint16(segment, from.Port())
	binary.BigEndian.PutUint16(segment[2:], to.Port())
	segment[12], segment[13] = 5<<4, flags
	a, b := from.Addr().AsSlice(), to.Addr().AsSlice()
	check := sum(uint32(len(segment))+6, a, b)
	if !unfinished {
		check = ^sum(uint32(check), segment)
	}
	binary.BigEndian.PutUint16(segment[16:], check)
	var frame []byte
	if from.Addr().Is4() {
		frame = append(ethernet(dst, src, 0, 0x0800), 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0)
	} else {
		frame = append(ethernet(dst, src, 0, 0x86dd), 0x60, 0, 0, 0, 0, 20, 6, 64)
	}
	return slices.Concat(frame, a, b, segment)
}

// relays is a line of switches with a client, a near and a far relay agent, and a server.
type relays struct {
	*world
	client, near, far, server *oftest.Host
	announced                 sync.Mutex // protects what follows
	silent                    [2]bool    // the near and the far agent
	leaving                   bool
	endings                   [2][]relaylldp.Connection
}

// announces changes what the agents announce.
func (r *relays) announces(change func()) {
	r.announced.Lock()
	defer r.announced.Unlock()
	change()
}

func newRelays(t *testing.T, c fabric.Relays, options ...oftest.Options) *relays {
	w := newKnown(t, [][2]int{{0, 1}, {1, 2}, {2, 3}}, options...)
	r := &relays{world: w, client: w.hosts[0], near: w.hosts[1], far: w.hosts[2], server: w.hosts[3]}
	configured := anySwitch
	configured.Relays = c
	w.live.Configure(configured)
	r.begin()
	w.settle(time.Second)
	return r
}

// begin lets the agents announce themselves.
func (r *relays) begin() {
	announcing := make(chan struct{})
	go func() {
		defer close(announcing)
		r.announce()
	}()
	r.Cleanup(func() { <-announcing })
}

// bulk redirects connections to two ports.
var bulk = fabric.Relays{Agents: []string{"10.0.0.2", "10.0.0.3"}, Redirect: []fabric.Redirect{{Name: "bulk", Ports: []fabric.PortRange{{First: 5000, Last: 5001}}}}}

// announce sends what agents send.
func (r *relays) announce() {
	all := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("fd00::/64")}
	for r.Context().Err() == nil {
		r.announced.Lock()
		for n, h := range []*oftest.Host{r.near, r.far} {
			if r.silent[n] {
				continue
			}
			a := relaylldp.Announcement{Name: h.Name(), Takes: n == 0, Connects: n == 1, Leaving: r.leaving}
			if n == 0 {
				a.Exits = []relaylldp.Exit{{Address: r.far.Addr(false), Ports: []uint16{8424, 8425}, Destinations: all}}
			}
			frames := []relaylldp.Announcement{a}
			if len(r.endings[n]) > 0 {
				frames = append(frames, relaylldp.Announcement{Name: h.Name(), Ended: r.endings[n]})
			}
			for _, one := range frames {
				frame, err := one.Frame(h.MAC())
				if err != nil {
					r.Error(err)
				}
				h.Send(frame)
			}
		}
		r.announced.Unlock()
		time.Sleep(250 * time.Millisecond)
	}
}

// sends lets a host send a segment, and returns which host received it, and with which MACs. Nobody may receive it twice.
func (r *relays) sends(from *oftest.Host, dst, src fabric.MAC, a, b netip.AddrPort, flags byte) (to *oftest.Host, gotDst, gotSrc fabric.MAC) {
	r.Helper()
	for _, h := range r.hosts {
		h.Forget()
	}
	from.Send(tcp(dst, src, a, b, flags, true))
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
	for _, h := range r.hosts {
		for _, f := range h.Received() {
			s, ok := parseSegment(f.Frame)
			if !ok {
				continue
			}
			if to != nil {
				r.Errorf("%v to %v was received by %s and %s", a, b, to.Name(), h.Name())
			}
			if s.Client != a || s.Server != b {
				r.Errorf("%v to %v was received as %v to %v", a, b, s.Client, s.Server)
			}
			to, gotDst, gotSrc = h, s.dst, s.src
		}
	}
	return to, gotDst, gotSrc
}

func (r *relays) flowsOf(kind program.Kind) (n int) {
	for _, s := range r.sw {
		for _, f := range s.Flows() {
			if k, ours := program.KindOf(f.Cookie); ours && k == kind {
				n++
			}
		}
	}
	return n
}

func macOf(h *oftest.Host) fabric.MAC { return fabric.MAC(h.MAC()) }

func at(h *oftest.Host, six bool, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(h.Addr(six), port)
}

// A connection that a rule matches goes through both agents, client and server see only each other, and nothing of it is left after its end. Others go
// direct, and the controller sees nothing of them.
func TestRedirect(t *testing.T) {
	for _, six := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRelays(t, bulk)
			client, server := at(r.client, six, 40000), at(r.server, six, 5001)
			c, s := macOf(r.client), macOf(r.server)
			for _, step := range []struct {
				name           string
				from           *oftest.Host
				dst, src       fabric.MAC
				a, b           netip.AddrPort
				flags          byte
				to             *oftest.Host
				gotDst, gotSrc fabric.MAC
			}{
				{"SYN of the client", r.client, s, c, client, server, flagSYN, r.near, macOf(r.near), c},
				{"answer of the near agent", r.near, c, macOf(r.near), server, client, flagSYN | flagACK, r.client, c, s},
				{"ACK of the client", r.client, s, c, client, server, flagACK, r.near, macOf(r.near), c},
				{"SYN of the far agent", r.far, s, macOf(r.far), client, server, flagSYN, r.server, s, c},
				{"answer of the server", r.server, c, s, server, client, flagSYN | flagACK, r.far, macOf(r.far), s},
				{"ACK of the far agent", r.far, s, macOf(r.far), client, server, flagACK, r.server, s, c},
				{"the SYN again", r.client, s, c, client, server, flagSYN, r.near, macOf(r.near), c},
			} {
				to, gotDst, gotSrc := r.sends(step.from, step.dst, step.src, step.a, step.b, step.flags)
				if to != step.to || gotDst != step.gotDst || gotSrc != step.gotSrc {
					t.Errorf("%s: received by %v for %v from %v, want %s, %v, %v", step.name, to, gotDst, gotSrc, step.to.Name(), step.gotDst, step.gotSrc)
				}
			}
			if n := r.flowsOf(program.KindRelayed); n != 4 {
				t.Errorf("a connection has %d flows, want 4", n)
			}
			asked := r.live.Redirection().Asked
			other := at(r.server, six, 22)
			for _, flags := range []byte{flagSYN, flagACK} {
				if to, _, _ := r.sends(r.client, s, c, client, other, flags); to != r.server {
					t.Errorf("a segment to another port was received by %v", to)
				}
			}
			if to, _, _ := r.sends(r.client, s, c, at(r.client, six, 40001), server, flagACK); to != r.server {
				t.Errorf("a segment of a connection that was not redirected was received by %v", to)
			}
			if now := r.live.Redirection().Asked; now != asked {
				t.Errorf("the controller was asked %d times about other connections", now-asked)
			}
			ended := []relaylldp.Connection{{Client: client, Server: server}}
			r.announces(func() { r.endings[0] = ended })
			time.Sleep(endDelay + lazyTime + 400*time.Millisecond)
			if n := r.flowsOf(program.KindRelayed); n != 2 {
				t.Errorf("after the near agent's end there are %d flows, want 2", n)
			}
			r.announces(func() { r.endings[1] = ended })
			time.Sleep(endDelay + lazyTime + 400*time.Millisecond)
			if n := r.flowsOf(program.KindRelayed); n != 0 {
				t.Errorf("after the end there are %d flows", n)
			}
		})
	}
}

// A connection with a client's address that comes to the server from the far agent, though the network has redirected none, has its answers there: its client came to a
// listener of the near agent.
func TestRedirectAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelays(t, bulk)
		client, server := at(r.client, false, 40000), at(r.server, false, 5000)
		c, s := macOf(r.client), macOf(r.server)
		if to, _, src := r.sends(r.far, s, macOf(r.far), client, server, flagSYN); to != r.server || src != c {
			t.Errorf("the first segment was received by %v from %v", to, src)
		}
		if to, _, _ := r.sends(r.server, c, s, server, client, flagSYN|flagACK); to != r.far {
			t.Errorf("the answer was received by %v", to)
		}
		own := at(r.far, false, 40000)
		if to, _, src := r.sends(r.far, s, macOf(r.far), own, server, flagSYN); to != r.server || src != macOf(r.far) {
			t.Errorf("a connection of the agent's host was received by %v from %v", to, src)
		}
		if n := r.flowsOf(program.KindRelayed); n != 2 {
			t.Errorf("%d flows, want 2", n)
		}
	})
}

// The first segment of a connection goes on whatever happens: to its destination without agents that carry it, and after the controller has ended.
func TestRedirectOrDirect(t *testing.T) {
	for name, change := range map[string]func(*relays){
		"both agents":              func(*relays) {},
		"the near agent is silent": func(r *relays) { r.announces(func() { r.silent[0] = true }) },
		"the far agent is silent":  func(r *relays) { r.announces(func() { r.silent[1] = true }) },
		"agents leave":             func(r *relays) { r.announces(func() { r.leaving = true }) },
		"the controller has ended": func(r *relays) { r.stop() },
		"no rule":                  func(r *relays) { r.live.Configure(anySwitch) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRelays(t, bulk)
			change(r)
			wait := time.Second
			if name == "the controller has ended" {
				wait = 1600 * time.Millisecond
			}
			time.Sleep(wait)
			synctest.Wait()
			want := r.server
			if name == "both agents" {
				want = r.near
			}
			to, _, _ := r.sends(r.client, macOf(r.server), macOf(r.client), at(r.client, false, 40000), at(r.server, false, 5000), flagSYN)
			if to != want {
				t.Errorf("%s: the first segment was received by %v, want %s", name, to, want.Name())
			}
			if n := r.flowsOf(program.KindWatch); (n > 0) != (name == "both agents") {
				t.Errorf("%s: %d flows ask about connections", name, n)
			}
		})
	}
}

// Announcements count of hosts that the operator has listed, and others are named.
func TestRelayNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := bulk
		one.Agents = []string{"10.0.0.2"}
		r := newRelays(t, one)
		if !r.has(fabric.RelayChanged, "is not in relays.agents") || !r.has(fabric.RelayChanged, `relay agent "h2" is at host`) {
			t.Errorf("a host that is not listed is not named, or one that is: %+v", r.live.Status().Relays)
		}
		if to, _, _ := r.sends(r.client, macOf(r.server), macOf(r.client), at(r.client, false, 40000), at(r.server, false, 5000), flagSYN); to != r.server {
			t.Errorf("the first segment was received by %v", to)
		}
	})
}

// Switches get the flows of many connections in portions, and those of a single one at once.
func TestPortions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelays(t, bulk)
		begin := func(port uint16) {
			r.client.Send(tcp(macOf(r.server), macOf(r.client), at(r.client, false, port), at(r.server, false, 5000), flagSYN, false))
		}
		begin(39_999)
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if n := r.flowsOf(program.KindRelayed); n != 4 {
			t.Errorf("after 2 ms a connection has %d flows, want 4", n)
		}
		const connections, every = 500, 2 * time.Millisecond
		for n := range uint16(connections) {
			time.Sleep(every)
			begin(40_000 + n)
		}
		time.Sleep(2 * portionTime)
		synctest.Wait()
		if n := r.flowsOf(program.KindRelayed); n != 4*(connections+1) {
			t.Errorf("%d flows, want %d", n, 4*(connections+1))
		}
		moments := map[openflow.Duration]bool{}
		for _, s := range r.sw {
			for _, f := range s.Flows() {
				if k, ours := program.KindOf(f.Cookie); ours && k == program.KindRelayed {
					moments[f.Duration] = true
				}
			}
		}
		if most := 32; len(moments) > most {
			t.Errorf("switches had changes at %d moments, want at most %d", len(moments), most)
		}
	})
}

// A port that begins too many connections is let alone, and another is not.
func TestRedirectFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelays(t, fabric.Relays{Agents: bulk.Agents, Redirect: []fabric.Redirect{{Name: "all"}}})
		for n := range beginBurst + 3000 {
			r.client.Send(tcp(macOf(r.server), macOf(r.client), at(r.client, false, uint16(10_000+n)), at(r.server, false, 80), flagSYN, false))
			if n%100 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !r.has(fabric.PortLimited, "connections per second that match a redirection") || r.live.Redirection().Bypassed != 1 {
			t.Errorf("%+v", r.live.Redirection())
		}
		asked := r.live.Redirection().Asked
		if to, _, _ := r.sends(r.client, macOf(r.server), macOf(r.client), at(r.client, false, 40000), at(r.server, false, 81), flagSYN); to != r.server {
			t.Errorf("a connection of the port was received by %v", to.Name())
		}
		if now := r.live.Redirection().Asked; now != asked {
			t.Error("the controller is asked about connections of the port")
		}
		if to, _, _ := r.sends(r.server, macOf(r.client), macOf(r.server), at(r.server, false, 40000), at(r.client, false, 81), flagSYN); to != r.near {
			t.Errorf("a connection of another port was received by %v", to.Name())
		}
	})
}

// A segment whose checksum is not finished is finished, and no other is changed.
func TestFinished(t *testing.T) {
	for _, ends := range [][2]string{{"10.0.0.1:1", "10.0.0.2:2"}, {"[fd00::1]:1", "[fd00::2]:2"}} {
		a, b := netip.MustParseAddrPort(ends[0]), netip.MustParseAddrPort(ends[1])
		right := tcp(fabric.MAC{2}, fabric.MAC{4}, a, b, flagSYN, false)
		if got := finished(tcp(fabric.MAC{2}, fabric.MAC{4}, a, b, flagSYN, true)); !slices.Equal(got, right) {
			t.Errorf("%v: %x, want %x", ends, got, right)
		}
		wrong := slices.Clone(right)
		wrong[len(wrong)-1] ^= 1
		for _, same := range [][]byte{right, wrong, right[:40], right[:14], nil} {
			if got := finished(same); !slices.Equal(got, same) {
				t.Errorf("%v: %x became %x", ends, same, got)
			}
		}
	}
}

// When an agent of a connection is gone, both ends are reset with the number that they expect, also if they do not send by themselves.
func TestReset(t *testing.T) {
	for _, six := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRelays(t, bulk)
			client, server := at(r.client, six, 40000), at(r.server, six, 5000)
			r.sends(r.client, macOf(r.server), macOf(r.client), client, server, flagSYN)
			for _, h := range r.hosts {
				h.Forget()
			}
			r.announces(func() { r.silent[1] = true })
			time.Sleep(relaySilence + 300*time.Millisecond)
			synctest.Wait()
			for h, ends := range map[*oftest.Host][2]netip.AddrPort{r.client: {client, server}, r.server: {server, client}} {
				peer := r.server
				if h == r.server {
					peer = r.client
				}
				if got := h.Received(); len(got) == 0 || !slices.Equal(got[len(got)-1].Frame, tcpSegment(macOf(h), macOf(peer), 0, ends[1], ends[0], 0, 0, tcpACK)) {
					t.Errorf("%s is not asked for its number: %x", h.Name(), got)
				}
				h.Forget()
				h.Send(tcpSegment(macOf(peer), macOf(h), 0, ends[0], ends[1], 1000, 2000, tcpACK))
				time.Sleep(50 * time.Millisecond)
				synctest.Wait()
				if got := h.Received(); len(got) == 0 || !slices.Equal(got[len(got)-1].Frame, tcpSegment(macOf(h), macOf(peer), 0, ends[1], ends[0], 2000, 0, tcpRST)) {
					t.Errorf("%s is not reset: %x", h.Name(), got)
				}
			}
			time.Sleep(31 * time.Second)
			if n := r.flowsOf(program.KindReset) + r.flowsOf(program.KindRelayed); n != 0 {
				t.Errorf("%d flows are left", n)
			}
		})
	}
}

// A client that begins a connection with the ports of one that was reset a moment ago reaches the server, and is not reset.
func TestBeginAfterReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelays(t, bulk)
		client, server := at(r.client, false, 40000), at(r.server, false, 5000)
		r.sends(r.client, macOf(r.server), macOf(r.client), client, server, flagSYN)
		r.announces(func() { r.silent[1] = true })
		time.Sleep(relaySilence + 300*time.Millisecond)
		synctest.Wait()
		if r.flowsOf(program.KindReset) == 0 {
			t.Fatal("nothing is reset")
		}
		r.client.Send(tcpSegment(macOf(r.server), macOf(r.client), 0, client, server, 1000, 2000, tcpACK))
		time.Sleep(3 * time.Second)
		for _, h := range r.hosts {
			h.Forget()
		}
		if to, _, _ := r.sends(r.client, macOf(r.server), macOf(r.client), client, server, flagSYN); to != r.server {
			t.Errorf("the first segment was received by %v", to)
		}
		if to, _, _ := r.sends(r.server, macOf(r.client), macOf(r.server), server, client, flagSYN|tcpACK); to != r.client {
			t.Errorf("the answer was received by %v", to)
		}
		if n := r.flowsOf(program.KindReset); n != 0 {
			t.Errorf("%d flows are left", n)
		}
	})
}

// The streams to each of several ports of the far agent take a path of their own, in both directions, where the network has as many.
//
//	client, near  s1 --- s2  server
//	               |      |
//	              s4 --- s3  far
func TestRelayPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newKnown(t, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}})
		r := &relays{world: w, client: w.hosts[1], near: w.hosts[0], far: w.hosts[2], server: w.hosts[3]}
		configured := anySwitch
		configured.Relays = fabric.Relays{Agents: []string{"10.0.0.1", "10.0.0.3"}, Redirect: bulk.Redirect}
		w.live.Configure(configured)
		w.live.SetCircuits(nil)
		r.begin()
		w.settle(2 * time.Second)
		paths := map[string]bool{}
		for _, c := range w.live.Circuits() {
			if c.BestEffort || !c.Rest || len(c.Lacks) > 0 || len(c.InUse) != 1 {
				t.Errorf("circuit %s has the paths %v, and lacks %v", c.Name, c.InUse, c.Lacks)
			}
			paths[fmt.Sprint(c.From, c.InUse)] = true
		}
		if len(paths) != 4 {
			t.Errorf("two ports have %d paths in both directions, want 4: %v", len(paths), paths)
		}
		// Streams that have a reservation take its paths, and what comes back takes its own still.
		there := w.live.Circuits()[0]
		w.live.SetCircuits([]program.Circuit{{
			Number: 7, Name: "streams", From: there.From, To: there.To, VLAN: there.VLAN, Source: there.Source, Destination: there.Destination,
			Flows: []program.Traffic{{Protocol: 6}}, Paths: there.Paths, Rate: unit.Mbit, Class: 1,
		}})
		w.settle(2 * time.Second)
		names := map[string]int{}
		for _, c := range w.live.Circuits() {
			names[fmt.Sprint(c.Name == "streams", c.From == there.From)]++
		}
		if names["true true"] != 1 || names["false true"] != 0 || names["false false"] != 2 {
			t.Errorf("with a reservation for the streams there are circuits %v", names)
		}
		w.live.SetCircuits(nil)
		r.announces(func() { r.silent[1] = true })
		w.settle(2 * time.Second)
		if all := w.live.Circuits(); len(all) != 0 {
			t.Errorf("without the far agent there are circuits %v", all)
		}
	})
}
