package program

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/unit"
)

// world is a network of switches in memory, its model, and what connects it. Switch n has the datapath id n+1, and host n at
// port 1; every third host is in VLAN 7.
type world struct {
	t      interface{ Fatalf(string, ...any) }
	net    *oftest.Network
	sw     []*oftest.Switch
	hosts  []*oftest.Host
	cables []*oftest.Cable
	ends   [][2]int
	c      *Connectivity
}

func hostMAC(n int) [6]byte { return [6]byte{2, 0, 0, 0, byte(n >> 8), byte(n + 1)} }

// addrsOf are the addresses of a host: IPv4, and of the link and global ones of IPv6.
func addrsOf(n int) []netip.Addr {
	return []netip.Addr{
		netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n + 1)}),
		netip.MustParseAddr(fmt.Sprintf("fd00::%x", n+1)), netip.MustParseAddr(fmt.Sprintf("fe80::%x", n+1)),
	}
}

func vlanOf(n int) uint16 { return []uint16{0, 0, 7}[n%3] }

// model is a kind of switch.
type model struct {
	fabric.Capabilities
	oftest.Options
}

// The kinds of switches. In those before bare, a packet takes a backup.
var (
	whole   = model{fabric.Capabilities{Tables: 254, FastFailover: 1 << 20, All: 1 << 20, Select: 1 << 20, Meters: 4096, PacketMeters: true, Senders: true, TCPFlags: true}, oftest.Options{}}
	oneFull = model{fabric.Capabilities{Tables: 1, FastFailover: 1 << 20, All: 1 << 20, Select: 1 << 20, Meters: 4096, PacketMeters: true, Local: true}, oftest.Options{Tables: 1}}
	lists   = model{fabric.Capabilities{Tables: 7, FastFailover: 1 << 20, Senders: true, TCPFlags: true}, oftest.Options{Tables: 7, Limits: oftest.Limits{GroupTypes: 1 << openflow.GroupTypeFF, Meters: -1}}}
	bare    = model{fabric.Capabilities{Tables: 7}, oftest.Options{Tables: 7, Limits: oftest.Limits{Groups: -1, Meters: -1}}}
	few     = model{fabric.Capabilities{Tables: 6, FastFailover: 4, All: 4}, oftest.Options{Tables: 6, Limits: oftest.Limits{Groups: 4, Meters: -1}, NoLocalPort: true}}
	oneBare = model{fabric.Capabilities{Tables: 1}, oftest.Options{Tables: 1, Limits: oftest.Limits{Groups: -1, Meters: -1}, NoLocalPort: true}}
)

// newWorld makes a network with cables between switches, by their numbers. The switches are of the kinds in turn, or whole.
func newWorld(t interface{ Fatalf(string, ...any) }, switches int, cables [][2]int, kinds ...model) *world {
	if len(kinds) == 0 {
		kinds = []model{whole}
	}
	w := &world{t: t, net: oftest.NewNetwork(), ends: cables}
	must := func(err error) {
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	var parts fabric.Parts
	ports := make([]int, switches)
	for n := range switches {
		kind := kinds[n%len(kinds)]
		kind.DatapathID = uint64(n + 1)
		s := w.net.AddSwitch(fmt.Sprint("s", n+1), kind.Options)
		w.sw = append(w.sw, s)
		must(s.AddPort(oftest.PortOptions{No: 1, Down: true}))
		h, err := w.net.AddHost(oftest.HostOptions{Name: fmt.Sprint("h", n+1), MAC: hostMAC(n), Addrs: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n + 1)}), 16)}}, oftest.End{Switch: s, Port: 1}, oftest.CableOptions{})
		must(err)
		w.hosts = append(w.hosts, h)
		parts.Switches = append(parts.Switches, fabric.Switch{ID: fabric.DPID(n + 1), Ports: []fabric.Port{{No: 1}}, Capabilities: kind.Capabilities})
		parts.Hosts = append(parts.Hosts, fabric.Host{HostID: fabric.HostID{MAC: hostMAC(n), VLAN: vlanOf(n)}, Addrs: addrsOf(n), At: fabric.PortID{Switch: fabric.DPID(n + 1), Port: 1}})
		ports[n] = 1
	}
	for _, c := range cables {
		var ends [2]oftest.End
		var at [2]fabric.PortID
		for i, n := range c {
			ports[n]++
			no := ports[n]
			must(w.sw[n].AddPort(oftest.PortOptions{No: openflow.PortNo(no), Down: true}))
			ends[i], at[i] = oftest.End{Switch: w.sw[n], Port: openflow.PortNo(no)}, fabric.PortID{Switch: fabric.DPID(n + 1), Port: fabric.PortNo(no)}
			parts.Switches[n].Ports = append(parts.Switches[n].Ports, fabric.Port{No: fabric.PortNo(no)})
		}
		cable, err := w.net.AddCable(ends[0], ends[1], oftest.CableOptions{})
		must(err)
		w.cables = append(w.cables, cable)
		for i := range 2 {
			parts.Links = append(parts.Links, fabric.Link{LinkID: fabric.LinkID{From: at[i], To: at[1-i]}, Capacity: unit.Gbit, Cost: 1})
		}
	}
	topology, err := fabric.New(parts)
	must(err)
	labels, err := AssignLabels(nil, topology.Switches())
	must(err)
	w.c = &Connectivity{Topology: topology, Tree: topology.SpanningTree(), Next: topology.NextHops(), Labels: labels, HostPort: func(fabric.PortID) bool { return true }}
	w.program()
	return w
}

// program brings all switches to what they should have, and returns how many changes that took.
func (w *world) program() (changes int) {
	for n, s := range w.sw {
		p, err := w.c.Program(fabric.DPID(n + 1))
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		have := State{Flows: s.Flows(), Groups: s.Groups(), Meters: s.MeterConfigs()}
		plan, err := Diff(p, have, Managed)
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		for _, step := range plan.Steps {
			for _, c := range step {
				if err := s.Do(c.Message); err != nil {
					w.t.Fatalf("switch %d, to %s: %v: %v", n+1, c.Why, c.Message, err)
				}
				changes++
			}
		}
	}
	return changes
}

// frame is an Ethernet frame of a host, with the VLAN of the host.
func frame(from int, to [6]byte) []byte {
	mac := hostMAC(from)
	f := append(append([]byte{}, to[:]...), mac[:]...)
	if v := vlanOf(from); v != 0 {
		f = append(f, 0x81, 0, rerouted<<5|byte(v>>8), byte(v)) // with a priority that is no mark
	}
	return append(f, append([]byte{0x88, 0xb5}, make([]byte, 46)...)...)
}

var broadcast = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// deliver sends a frame from each host, and lets it arrive. received has how many frames each host received.
func (w *world) deliver(to func(from int) [][6]byte) (received [][]int) {
	for from := range w.hosts {
		for _, h := range w.hosts {
			h.Forget()
		}
		for _, mac := range to(from) {
			w.hosts[from].Send(frame(from, mac))
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		counts := make([]int, len(w.hosts))
		for n, h := range w.hosts {
			for _, r := range h.Received() {
				counts[n]++
				if sent := frame(from, [6]byte(r.Frame[:6])); string(sent) != string(r.Frame) {
					w.t.Fatalf("host %d received %x, and %x was sent", n+1, r.Frame, sent)
				}
			}
		}
		received = append(received, counts)
	}
	if s := w.net.Storm(); s.Looped > 0 || s.Overflow > 0 {
		w.t.Fatalf("frames go round: %+v", s)
	}
	return received
}

// unicast sends a frame from each host to each other one in its VLAN, and returns the pairs that it did not reach.
func (w *world) unicast() (missing []string) {
	got := w.deliver(func(from int) (to [][6]byte) {
		for n := range w.hosts {
			if n != from && vlanOf(n) == vlanOf(from) {
				to = append(to, hostMAC(n))
			}
		}
		return to
	})
	for from, counts := range got {
		for n, count := range counts {
			want := 0
			if n != from && vlanOf(n) == vlanOf(from) {
				want = 1
			}
			if count != want {
				missing = append(missing, fmt.Sprintf("%d->%d: %d frames, want %d", from+1, n+1, count, want))
			}
		}
	}
	return missing
}

// graph draws a connected network.
func graph(r *rand.Rand) (switches int, cables [][2]int) {
	switches = 2 + r.IntN(6)
	for n := 1; n < switches; n++ {
		cables = append(cables, [2]int{r.IntN(n), n})
	}
	for range r.IntN(6) {
		if a, b := r.IntN(switches), r.IntN(switches); a != b {
			cables = append(cables, [2]int{a, b})
		}
	}
	return switches, cables
}

// connected reports whether a network is in one piece without a cable.
func connected(switches int, cables [][2]int, without int) bool {
	piece := make([]int, switches)
	for n := range piece {
		piece[n] = n
	}
	for i, c := range cables {
		if a, b := piece[c[0]], piece[c[1]]; i != without && a != b {
			for n := range piece {
				if piece[n] == b {
					piece[n] = a
				}
			}
		}
	}
	for _, p := range piece {
		if p != piece[0] {
			return false
		}
	}
	return true
}

// In any network every host reaches every other one, a broadcast arrives once at each, whichever cable fails the groups lead
// around it without a controller, and nothing ever goes round. Where some switches have no groups, frames to a cable that has
// failed are lost.
func TestConnectivity(t *testing.T) {
	for _, c := range []struct {
		name   string
		kinds  []model
		backup bool
	}{
		{"whole", []model{whole}, true},
		{"one table", []model{oneFull}, true},
		{"mixed with backups", []model{whole, oneFull, lists}, true},
		{"no groups", []model{bare}, false},
		{"one table and no groups", []model{oneBare}, false},
		{"mixed", []model{oneBare, whole, few, oneFull, bare}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(40) {
				synctest.Test(t, func(t *testing.T) { connects(t, seed, c.backup, c.kinds) })
			}
		})
	}
}

func connects(t *testing.T, seed uint64, backup bool, kinds []model) {
	r := rand.New(rand.NewPCG(seed, 1))
	switches, cables := graph(r)
	fail := func(format string, a ...any) {
		t.Helper()
		t.Errorf("network %d, cables %v: "+format, append([]any{seed, cables}, a...)...)
	}
	w := newWorld(t, switches, cables, kinds...)
	if missing := w.unicast(); len(missing) > 0 {
		fail("%v", missing)
	}
	for from, counts := range w.deliver(func(int) [][6]byte { return [][6]byte{broadcast, {0x33, 0x33, 0, 0, 0, 1}} }) {
		for n, count := range counts {
			if want := 2 * min(1, max(n-from, from-n)); count != want {
				fail("host %d received %d broadcasts of host %d, want %d", n+1, count, from+1, want)
			}
		}
	}
	if n := w.program(); n > 0 {
		fail("%d changes of what is right", n)
	}
	for i := range cables {
		w.cables[i].Unplug()
		if missing := w.unicast(); len(missing) > 0 && backup && connected(switches, cables, i) {
			fail("without %v: %v", cables[i], missing)
		}
		if err := w.cables[i].Plug(); err != nil {
			t.Fatal(err)
		}
	}
	w.sw[r.IntN(switches)].PowerOff()
	w.unicast() // what can arrive is in fabric's tests; here nothing goes round
}

func TestLabels(t *testing.T) {
	switches := []fabric.Switch{{ID: 5}, {ID: 3}, {ID: 9}}
	first, err := AssignLabels(nil, switches)
	if err != nil || first[3] != firstLabel || first[5] != firstLabel+1 || first[9] != firstLabel+2 {
		t.Errorf("labels %v, %v", first, err)
	}
	second, err := AssignLabels(first, []fabric.Switch{{ID: 9}, {ID: 1}, {ID: 5}})
	if err != nil || second[9] != first[9] || second[5] != first[5] || second[1] != first[3] {
		t.Errorf("labels %v after %v: those that stay keep theirs", second, first)
	}
	damaged, err := AssignLabels(map[fabric.DPID]uint16{5: firstLabel, 3: firstLabel, 9: 1}, switches)
	if err != nil || len(damaged) != 3 || damaged[3] == damaged[5] || damaged[9] < firstLabel {
		t.Errorf("labels %v of damaged ones, %v", damaged, err)
	}
	if _, err := AssignLabels(nil, make([]fabric.Switch, MaxSwitches+1)); err == nil || !strings.Contains(err.Error(), "at most 1022") {
		t.Errorf("too many switches: %v", err)
	}
}

// Each rule that a program can have is in the pipeline, at its priority, and the pipeline has no rule that no program has.
func TestPipeline(t *testing.T) {
	for name, c := range map[string]struct {
		kind     model
		pipeline []Table
	}{"whole": {whole, Pipeline}, "one table": {oneFull, []Table{Flat}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testPipeline(t, c.kind, c.pipeline) })
		})
	}
}

func testPipeline(t *testing.T, kind model, pipeline []Table) {
	made := map[openflow.TableID]map[Kind]bool{}
	for _, cables := range [][][2]int{{{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 4}, {4, 2}, {0, 3}}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}}} {
		w := newWorld(t, 5, cables, kind)
		w.setCircuits(Circuit{Number: 1, From: hostPort(0), To: hostPort(3), Paths: []fabric.Path{w.path(0, 1, 2, 3)}})
		for n := range w.sw {
			p, err := w.c.Program(fabric.DPID(n + 1))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range p.Flows {
				k, _ := KindOf(f.Cookie)
				r, ok := pipeline[f.Table].rule(k)
				above := uint16(perPort)
				if k == KindCircuit {
					above = specifics
				}
				if !ok || f.Priority < r.Priority || f.Priority > r.Priority+above {
					t.Errorf("a flow to %s has cookie %#x and priority %d: rule %+v", f.Why, f.Cookie, f.Priority, r)
				}
				if _, got, ok := RuleOf(f.Table, f.Cookie); !ok || got != r && k != KindNoLabel { // that is in both
					t.Errorf("a flow to %s is of the rule %+v, want %+v", f.Why, got, r)
				}
				if made[f.Table] == nil {
					made[f.Table] = map[Kind]bool{}
				}
				made[f.Table][k] = true
			}
		}
	}
	for n, table := range pipeline {
		if int(table.ID) != n {
			t.Errorf("table %d is the %dth", table.ID, n)
		}
		priorities := map[uint16]bool{}
		for _, r := range table.Rules {
			if !made[table.ID][r.Kind] && r.Kind < KindQuiet { // the others are in no program (redirect.go)
				t.Errorf("no program has the rule of table %s for %s", table.Name, r.Matches)
			}
			above := uint16(perPort)
			if r.Kind == KindCircuit {
				above = specifics
			}
			for above := range above + 1 {
				if priorities[r.Priority+above] {
					t.Errorf("table %s: priority %d is of two rules", table.Name, r.Priority+above)
				}
				priorities[r.Priority+above] = true
			}
		}
	}
}
