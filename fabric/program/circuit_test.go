package program

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/unit"
)

func hostPort(n int) fabric.PortID { return fabric.PortID{Switch: fabric.DPID(n + 1), Port: 1} }

// path is the path over switches.
func (w *world) path(switches ...int) (p fabric.Path) {
	for n := range len(switches) - 1 {
		i := slices.IndexFunc(w.c.Topology.Links(), func(l fabric.Link) bool {
			return l.From.Switch == fabric.DPID(switches[n]+1) && l.To.Switch == fabric.DPID(switches[n+1]+1)
		})
		if i < 0 {
			w.t.Fatalf("no link from switch %d to switch %d", switches[n]+1, switches[n+1]+1)
		}
		p = append(p, w.c.Topology.Links()[i].LinkID)
	}
	return p
}

// setCircuits gives the network circuits.
func (w *world) setCircuits(all ...Circuit) {
	w.c.Circuits = PlanCircuits(w.c.Topology, all, nil, w.c.Circuits)
	w.program()
}

// datagram is a frame of UDP of a host to another.
func datagram(from, to int, src, dst uint16, size int) []byte {
	f := oftest.UDPFrame(hostMAC(from), hostMAC(to), netip.AddrPortFrom(addrsOf(from)[0], src), netip.AddrPortFrom(addrsOf(to)[0], dst), size)
	if v := vlanOf(from); v != 0 {
		f = slices.Insert(f, 12, 0x81, 0, byte(v>>8), byte(v))
	}
	return f
}

// crossed sends a frame of a host, and returns the links that it crossed, and the hosts that received it as it was sent.
func (w *world) crossed(from int, frame []byte) (links map[fabric.LinkID]int, received []int) {
	before := map[fabric.LinkID]uint64{}
	sent := func(l fabric.LinkID) uint64 {
		s, _ := w.sw[l.From.Switch-1].PortStats(openflow.PortNo(l.From.Port))
		return s.TxPackets
	}
	for _, l := range w.c.Topology.Links() {
		before[l.LinkID] = sent(l.LinkID)
	}
	for _, h := range w.hosts {
		h.Forget()
	}
	w.hosts[from].Send(frame)
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	links = map[fabric.LinkID]int{}
	for _, l := range w.c.Topology.Links() {
		if n := sent(l.LinkID) - before[l.LinkID]; n > 0 {
			links[l.LinkID] = int(n)
		}
	}
	for n, h := range w.hosts {
		for _, r := range h.Received() {
			if string(r.Frame) == string(frame) {
				received = append(received, n)
			}
		}
	}
	return links, received
}

func along(p fabric.Path) map[fabric.LinkID]int {
	links := map[fabric.LinkID]int{}
	for _, l := range p {
		links[l]++
	}
	return links
}

// random returns a path that a walk finds, nil if it is none, over none of the cables of another.
func (w *world) random(r *rand.Rand, from, to int, not fabric.Path) (p fabric.Path) {
	seen := map[fabric.DPID]bool{fabric.DPID(from + 1): true}
	for at := fabric.DPID(from + 1); at != fabric.DPID(to+1); {
		var next []fabric.LinkID
		for _, l := range w.c.Topology.Links() {
			if l.From.Switch == at && !seen[l.To.Switch] && !slices.Contains(not, l.LinkID) {
				next = append(next, l.LinkID)
			}
		}
		if len(next) == 0 {
			return nil
		}
		l := next[r.IntN(len(next))]
		p, at = append(p, l), l.To.Switch
		seen[at] = true
	}
	return p
}

// In any network, a frame of a circuit crosses exactly the links of its path, one of no circuit those that it crossed before there were
// circuits, and nothing is left of circuits that end. While a cable of a path is cut, frames arrive by others.
func TestCircuitsProperty(t *testing.T) {
	for _, c := range []struct {
		name   string
		kinds  []model
		backup bool
	}{
		{"whole", []model{whole}, true},
		{"one table", []model{oneFull}, true},
		{"mixed", []model{oneBare, whole, few, oneFull, bare}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(30) {
				synctest.Test(t, func(t *testing.T) { carriesCircuits(t, seed, c.backup, c.kinds) })
			}
		})
	}
}

func carriesCircuits(t *testing.T, seed uint64, backup bool, kinds []model) {
	r := rand.New(rand.NewPCG(seed, 2))
	switches, cables := graph(r)
	fail := func(format string, a ...any) {
		t.Helper()
		t.Errorf("network %d, cables %v: "+format, append([]any{seed, cables}, a...)...)
	}
	w := newWorld(t, switches, cables, kinds...)
	flows := func() (all []string) {
		for _, s := range w.sw {
			for _, f := range s.Flows() {
				all = append(all, fmt.Sprint(s.DatapathID(), f.Table, f.Priority, f.Match, f.Instructions))
			}
			for _, g := range s.Groups() {
				all = append(all, fmt.Sprint(s.DatapathID(), g))
			}
			for _, m := range s.MeterConfigs() {
				all = append(all, fmt.Sprint(s.DatapathID(), m))
			}
		}
		slices.Sort(all)
		return all
	}
	type pair struct{ from, to int }
	const other = 9 // a port of no circuit
	empty, outside := flows(), map[pair]map[fabric.LinkID]int{}
	var circuits []Circuit
	for number := uint32(1); number <= 12; number++ {
		p := pair{r.IntN(switches), r.IntN(switches)}
		if p.from == p.to || vlanOf(p.from) != vlanOf(p.to) {
			continue
		}
		path := w.random(r, p.from, p.to, nil)
		if path == nil {
			continue
		}
		outside[p], _ = w.crossed(p.from, datagram(p.from, p.to, 1, other, 100))
		c := Circuit{
			Number: number, From: hostPort(p.from), To: hostPort(p.to), VLAN: vlanOf(p.from), Paths: []fabric.Path{path}, Rate: unit.Mbit, Class: 1 + r.IntN(4),
			Source: netip.PrefixFrom(addrsOf(p.from)[0], 32), Destination: netip.PrefixFrom(addrsOf(p.to)[0], []int{32, 24, 8}[r.IntN(3)]),
			Flows: []Traffic{{Protocol: protocolUDP, Destination: Ports{uint16(1000 * number), uint16(1000*number + 99)}}},
		}
		if spare := w.random(r, p.from, p.to, path); spare != nil && r.IntN(2) == 0 {
			c.Spare = spare
		}
		circuits = append(circuits, c)
	}
	w.setCircuits(circuits...)
	if missing := w.unicast(); len(missing) > 0 {
		fail("%v", missing)
	}
	if n := w.program(); n > 0 {
		fail("%d changes of what is right", n)
	}
	for p, links := range outside {
		if got, received := w.crossed(p.from, datagram(p.from, p.to, 1, other, 100)); !reflect.DeepEqual(got, links) || !slices.Equal(received, []int{p.to}) {
			fail("a frame of no circuit from %d to %d crossed %v to %v, and before %v", p.from, p.to, got, received, links)
		}
	}
	for _, c := range circuits {
		from, to := int(c.From.Switch)-1, int(c.To.Switch)-1
		frame := datagram(from, to, 1, uint16(1000*c.Number+50), 100)
		if got, received := w.crossed(from, frame); !reflect.DeepEqual(got, along(c.Paths[0])) || !slices.Equal(received, []int{to}) {
			fail("a frame of circuit %d with the path %v crossed %v to %v", c.Number, c.Paths[0], got, received)
		}
		if s, ok := w.c.Circuits.State(c.Number); !ok || s.BestEffort || len(s.InUse) != 1 {
			fail("circuit %d is %+v", c.Number, s)
		}
		if !backup {
			continue
		}
		for i := range cables {
			if !connected(switches, cables, i) {
				continue
			}
			w.cables[i].Unplug()
			if _, received := w.crossed(from, frame); !slices.Equal(received, []int{to}) {
				fail("without %v a frame of circuit %d with the path %v reached %v", cables[i], c.Number, c.Paths[0], received)
			}
			if err := w.cables[i].Plug(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := w.net.Storm(); s.Looped > 0 || s.Overflow > 0 {
		fail("frames go round: %+v", s)
	}
	w.setCircuits()
	if left := flows(); !slices.Equal(left, empty) {
		fail("after the circuits there is %v", slices.DeleteFunc(left, func(s string) bool { return slices.Contains(empty, s) }))
	}
}

// ring is a network of four switches in a ring with one more cable across, and a circuit of UDP from the first to the third.
func ring(t *testing.T, kinds ...model) (*world, Circuit) {
	w := newWorld(t, 5, [][2]int{{0, 1}, {1, 3}, {0, 2}, {2, 3}, {0, 4}, {4, 3}}, kinds...)
	return w, Circuit{
		Number: 7, From: hostPort(0), To: hostPort(3), Paths: []fabric.Path{w.path(0, 1, 3)}, Rate: 10 * unit.Mbit, Class: 1,
		Source: netip.PrefixFrom(addrsOf(0)[0], 32), Destination: netip.PrefixFrom(addrsOf(3)[0], 32), Flows: []Traffic{{Protocol: protocolUDP}}, Unresponsive: true,
	}
}

// A meter holds a circuit to its rate, and nothing else at the switch.
func TestCircuitRate(t *testing.T) {
	for name, kind := range map[string]model{"whole": whole, "one table": oneFull} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := ring(t, kind)
				w.setCircuits(c)
				in := w.net.AddStream(w.hosts[0], datagram(0, 3, 1, 2, 1500), 30*unit.Mbit)
				out := w.net.AddStream(w.hosts[0], datagram(0, 1, 1, 2, 1500), 30*unit.Mbit)
				began := time.Now()
				for time.Since(began) < 4*time.Second {
					time.Sleep(100 * time.Millisecond)
					w.net.Advance()
				}
				if got := in.Delivered(w.hosts[3]); got < 9.99e6 || got > 10.01e6 {
					t.Errorf("%.0f bit/s of the circuit arrive, want 10 Mbit/s", got)
				}
				if got := out.Delivered(w.hosts[1]); got < 29.99e6 {
					t.Errorf("%.0f bit/s of best effort arrive, want 30 Mbit/s", got)
				}
				state, _ := w.c.Circuits.State(c.Number)
				for _, m := range w.sw[0].Meters() {
					if m.Meter == state.Meter && (m.Bytes < 14_900_000 || m.Bands[0].Bytes < 9_800_000) {
						t.Errorf("the meter counted %+v", m)
					}
				}
				// Packets, one by one: what arrives within a second is its rate and the burst.
				in.Stop()
				out.Stop()
				time.Sleep(time.Second)
				w.hosts[3].Forget()
				for range 1000 {
					w.hosts[0].Send(datagram(0, 3, 1, 2, 1500))
					time.Sleep(time.Millisecond / 2)
				}
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				bits := 0
				for _, r := range w.hosts[3].Received() {
					bits += 8 * len(r.Frame)
				}
				// Half a second of 10 Mbit/s, and a burst of 40 ms.
				if bits < 5.3e6 || bits > 5.5e6 {
					t.Errorf("%d bits of packets arrived, want 5,400,000", bits)
				}
			})
		})
	}
}

// The spare path takes what a port that is down would lose, and the next plan makes it the path. Without one the traffic is best
// What is not reserved and leaves by a port to another switch is held to its rate, and neither circuits nor other ports are.
func TestUnreserved(t *testing.T) {
	for name, kind := range map[string]model{"whole": whole, "one table": oneFull} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := ring(t, kind)
				c.Flows = []Traffic{{Protocol: protocolUDP, Destination: Ports{2, 2}}}
				by := w.c.Next.At(1, 4).Best
				c.Paths = []fabric.Path{w.path(0, int(w.c.Topology.Links()[slices.IndexFunc(w.c.Topology.Links(), func(l fabric.Link) bool { return l.From == fabric.PortID{Switch: 1, Port: by} })].To.Switch)-1, 3)}
				elsewhere := slices.IndexFunc([]int{1, 2, 4}, func(n int) bool { return w.c.Next.At(1, fabric.DPID(n+1)).Best != by })
				other := []int{1, 2, 4}[elsewhere]
				w.setCircuits(c, Circuit{Number: 9, From: fabric.PortID{Switch: 1, Port: by}, Rate: 5 * unit.Mbit, Unreserved: true})
				reserved := w.net.AddStream(w.hosts[0], datagram(0, 3, 1, 2, 1500), 10*unit.Mbit)
				rest := w.net.AddStream(w.hosts[0], datagram(0, 3, 1, 3, 1500), 30*unit.Mbit)
				beside := w.net.AddStream(w.hosts[0], datagram(0, other, 1, 2, 1500), 30*unit.Mbit)
				for began := time.Now(); time.Since(began) < 4*time.Second; {
					time.Sleep(100 * time.Millisecond)
					w.net.Advance()
				}
				for _, one := range []struct {
					what string
					got  float64
					want float64
				}{
					{"the circuit", reserved.Delivered(w.hosts[3]), 10e6},
					{"the rest of the port", rest.Delivered(w.hosts[3]), 5e6},
					{"another port", beside.Delivered(w.hosts[other]), 30e6},
				} {
					if one.got < 0.99*one.want || one.got > 1.01*one.want {
						t.Errorf("%s: %.0f bit/s arrive, want %.0f", one.what, one.got, one.want)
					}
				}
				if s, ok := w.c.Circuits.State(9); !ok || s.Meter == 0 || len(s.Lacks) > 0 {
					t.Errorf("its state is %+v", s)
				}
			})
		})
	}
}

// What takes a path and is not reserved passes the meter of what is not reserved, at the first switch and on the way, beside a circuit on the same path.
func TestRestOnPath(t *testing.T) {
	for name, kind := range map[string]model{"whole": whole, "one table": oneFull} {
		for at := range 2 { // the switch of the path that has the meter
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, c := ring(t, kind)
					c.Paths = []fabric.Path{w.path(0, 4, 3)}
					c.Flows = []Traffic{{Protocol: protocolUDP, Destination: Ports{2, 2}}}
					rest := c
					rest.Number, rest.Rate, rest.Rest, rest.Flows = 8, 0, true, []Traffic{{Protocol: protocolUDP, Destination: Ports{3, 3}}}
					w.setCircuits(c, rest, Circuit{Number: 9, From: c.Paths[0][at].From, Rate: 5 * unit.Mbit, Unreserved: true})
					reserved := w.net.AddStream(w.hosts[0], datagram(0, 3, 1, 2, 1500), 10*unit.Mbit)
					streams := w.net.AddStream(w.hosts[0], datagram(0, 3, 1, 3, 1500), 30*unit.Mbit)
					for began := time.Now(); time.Since(began) < 4*time.Second; {
						time.Sleep(100 * time.Millisecond)
						w.net.Advance()
					}
					if got := streams.Delivered(w.hosts[3]); got < 0.99*5e6 || got > 1.01*5e6 {
						t.Errorf("%.0f bit/s of what is not reserved arrive, want 5 Mbit/s", got)
					}
					if got := reserved.Delivered(w.hosts[3]); got < 0.99*10e6 {
						t.Errorf("%.0f bit/s of the circuit arrive, want 10 Mbit/s", got)
					}
					if s, ok := w.c.Circuits.State(8); !ok || s.BestEffort || len(s.Lacks) > 0 {
						t.Errorf("its state is %+v", s)
					}
				})
			})
		}
	}
}

// A circuit has its spare path when its own is cut, also after a new plan. When both are cut it is best effort, and that is visible.
func TestSparePath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := ring(t)
		c.Spare = w.path(0, 4, 3)
		w.setCircuits(c)
		frame := datagram(0, 3, 1, 2, 100)
		w.cables[0].Unplug() // of the path at the first switch
		if got, received := w.crossed(0, frame); !reflect.DeepEqual(got, along(c.Spare)) || !slices.Equal(received, []int{3}) {
			t.Errorf("without the first cable the frame crossed %v to %v, want the spare path", got, received)
		}
		down := func(n int) {
			w.change(func(p *fabric.Parts) {
				p.Links = slices.DeleteFunc(p.Links, func(l fabric.Link) bool {
					a, b := w.ends[n][0]+1, w.ends[n][1]+1
					return l.From.Switch == fabric.DPID(a) && l.To.Switch == fabric.DPID(b) || l.From.Switch == fabric.DPID(b) && l.To.Switch == fabric.DPID(a)
				})
			})
			w.c.Tree, w.c.Next = w.c.Topology.SpanningTree(), w.c.Topology.NextHops()
			w.setCircuits(c)
		}
		down(0)
		s, _ := w.c.Circuits.State(c.Number)
		if len(s.InUse) != 1 || !slices.Equal(s.InUse[0], c.Spare) || s.BestEffort || !slices.Contains(s.Lacks, "its spare path is in use") {
			t.Errorf("after a plan without the path: %+v", s)
		}
		if got, _ := w.crossed(0, frame); !reflect.DeepEqual(got, along(c.Spare)) {
			t.Errorf("after a plan without the path the frame crossed %v", got)
		}
		w.cables[4].Unplug() // of the spare path
		if _, received := w.crossed(0, frame); !slices.Equal(received, []int{3}) {
			t.Errorf("without both paths the frame reached %v", received)
		}
		down(4)
		s, _ = w.c.Circuits.State(c.Number)
		if !s.BestEffort || s.Meter != 0 || len(s.Lacks) != 3 || !strings.Contains(s.Lacks[2], "no path is usable") {
			t.Errorf("after a plan without both: %+v", s)
		}
		if got, received := w.crossed(0, frame); !slices.Equal(received, []int{3}) || !reflect.DeepEqual(got, along(w.path(0, 2, 3))) {
			t.Errorf("best effort crossed %v to %v", got, received)
		}
		for _, f := range w.sw[0].Flows() {
			if k, _ := KindOf(f.Cookie); k == KindCircuit {
				t.Errorf("switch 1 has %v", f.Match)
			}
		}
	})
}

// Connections are divided among the paths. A switch without select groups uses one, and that is named.
func TestCircuitOfSeveralPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := ring(t)
		c.Paths = []fabric.Path{w.path(0, 1, 3), w.path(0, 2, 3), w.path(0, 4, 3)}
		w.setCircuits(c)
		count := map[int]int{}
		for port := range uint16(300) {
			got, received := w.crossed(0, datagram(0, 3, port, 2, 100))
			n := slices.IndexFunc(c.Paths, func(p fabric.Path) bool { return reflect.DeepEqual(got, along(p)) })
			if n < 0 || !slices.Equal(received, []int{3}) {
				t.Fatalf("the frame from port %d crossed %v to %v", port, got, received)
			}
			count[n]++
		}
		for n := range c.Paths {
			if count[n] < 70 || count[n] > 130 { // 100 with a deviation of 8
				t.Errorf("path %d took %d of 300 connections", n, count[n])
			}
		}
		if s, _ := w.c.Circuits.State(c.Number); len(s.InUse) != 3 || len(s.Lacks) != 0 {
			t.Errorf("%+v", s)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, c := ring(t, lists)
		c.Paths = []fabric.Path{w.path(0, 1, 3), w.path(0, 2, 3)}
		w.setCircuits(c)
		s, _ := w.c.Circuits.State(c.Number)
		if len(s.InUse) != 1 || !slices.ContainsFunc(s.Lacks, func(l string) bool { return strings.Contains(l, "no select groups") }) {
			t.Errorf("%+v", s)
		}
		if !slices.ContainsFunc(s.Lacks, func(l string) bool { return strings.Contains(l, "has no meter for it") }) {
			t.Errorf("without meters: %+v", s)
		}
	})
}

// A circuit of a VLAN takes all frames of its host there, whatever they are, and sets the DSCP of those that have one.
func TestCircuitOfLayer2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, [][2]int{{0, 2}, {2, 3}, {3, 5}, {2, 5}})
		c := Circuit{Number: 1, From: hostPort(2), To: hostPort(5), VLAN: 7, Paths: []fabric.Path{w.path(2, 3, 5)}, DSCP: 46}
		w.setCircuits(c)
		if got, received := w.crossed(2, frame(2, hostMAC(5))); !reflect.DeepEqual(got, along(c.Paths[0])) || !slices.Equal(received, []int{5}) {
			t.Errorf("a frame without IP crossed %v to %v", got, received)
		}
		sent := datagram(2, 5, 1, 2, 100)
		if got, _ := w.crossed(2, sent); !reflect.DeepEqual(got, along(c.Paths[0])) {
			t.Errorf("a frame of UDP crossed %v", got)
		}
		got := w.hosts[5].Received()
		if len(got) != 1 || got[0].Frame[19]>>2 != 46 || sent[19]>>2 != 0 {
			t.Errorf("the host received %v", got)
		}
		if back, received := w.crossed(5, frame(5, hostMAC(2))); !reflect.DeepEqual(back, along(w.path(5, 2))) || !slices.Equal(received, []int{2}) {
			t.Errorf("the other direction crossed %v to %v", back, received)
		}
	})
}

// Of two circuits whose traffic overlaps the more specific one has it, and of two with the same traffic the one of the better class.
func TestOverlappingCircuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wide := ring(t)
		narrow, same := wide, wide
		narrow.Number, narrow.Paths, narrow.Class = 8, []fabric.Path{w.path(0, 2, 3)}, 4
		narrow.Flows = []Traffic{{Protocol: protocolUDP, Destination: Ports{5000, 5010}}}
		same.Number, same.Class = 3, 2
		w.setCircuits(narrow, wide, same)
		for port, c := range map[uint16]Circuit{4999: wide, 5000: narrow, 5010: narrow, 5011: wide} {
			if got, _ := w.crossed(0, datagram(0, 3, 1, port, 100)); !reflect.DeepEqual(got, along(c.Paths[0])) {
				t.Errorf("a frame to port %d crossed %v, want the path of circuit %d", port, got, c.Number)
			}
		}
		if s, _ := w.c.Circuits.State(3); !s.BestEffort || !slices.Contains(s.Lacks, "circuit 7 has the same traffic") {
			t.Errorf("%+v", s)
		}
	})
}

// A switch with few meters has one for all circuits of a class, where that saves the most first.
func TestSharedMeters(t *testing.T) {
	w := func(meters int) (s []CircuitState, bands []openflow.Band) {
		synctest.Test(t, func(t *testing.T) {
			kind := bare
			kind.Capabilities.Meters, kind.Limits.Meters = meters, meters
			if meters == 0 {
				kind.Limits.Meters = -1
			}
			w, c := ring(t, kind)
			var all []Circuit
			for n := range uint32(6) {
				c.Number, c.Unresponsive, c.Flows = n+1, true, []Traffic{{Protocol: protocolUDP, Source: Ports{uint16(n + 1), uint16(n + 1)}}}
				c.Class, c.Rate = 1+int(n/4), unit.Rate(n+1)*unit.Mbit+1 // four of class 1, two of class 2
				all = append(all, c)
			}
			w.setCircuits(all...)
			for _, m := range w.sw[0].MeterConfigs() {
				bands = append(bands, m.Bands...)
			}
			s = w.c.Circuits.States()
		})
		return s, bands
	}
	drop := func(rate, burst uint32) openflow.Band {
		return openflow.DropBand{BandLimit: openflow.BandLimit{Rate: rate, Burst: burst}}
	}
	for meters, want := range map[int]struct {
		shares []int
		bands  []openflow.Band
	}{
		6: {[]int{0, 0, 0, 0, 0, 0}, []openflow.Band{drop(1001, 41), drop(2001, 81), drop(3001, 121), drop(4001, 161), drop(5001, 201), drop(6001, 241)}},
		5: {[]int{3, 3, 3, 3, 0, 0}, []openflow.Band{drop(10001, 401), drop(5001, 201), drop(6001, 241)}},
		3: {[]int{3, 3, 3, 3, 0, 0}, []openflow.Band{drop(10001, 401), drop(5001, 201), drop(6001, 241)}},
		2: {[]int{3, 3, 3, 3, 1, 1}, []openflow.Band{drop(10001, 401), drop(11001, 441)}},
		1: {[]int{3, 3, 3, 3, 0, 0}, []openflow.Band{drop(10001, 401)}},
		0: {[]int{0, 0, 0, 0, 0, 0}, nil},
	} {
		states, bands := w(meters)
		if !slices.Equal(bands, want.bands) {
			t.Errorf("with %d meters: %v, want %v", meters, bands, want.bands)
		}
		for n, s := range states {
			if len(s.Shares) != want.shares[n] || s.BestEffort {
				t.Errorf("with %d meters circuit %d is %+v, want %d that share its meter", meters, s.Number, s, want.shares[n])
			}
			if (s.Meter == 0) != slices.ContainsFunc(s.Lacks, func(l string) bool { return strings.Contains(l, "no limit") }) {
				t.Errorf("with %d meters circuit %d has meter %d and lacks %q", meters, s.Number, s.Meter, s.Lacks)
			}
		}
	}
}

// The band of a meter: whole kbit/s that are not less than the rate, 40 ms, a fifth or half a second of it, and no bucket of less than two frames. For TCP a bucket
// is no larger than 32 frames, 40 ms of the rate, or 20 ms of the link, and for UDP than 5 ms of the link.
func TestMeterBand(t *testing.T) {
	for _, c := range []struct {
		rate               unit.Rate
		unresponsive, rest bool
		link               unit.Rate
		kbit, burst        uint32
	}{
		{unit.Gbit, true, false, 0, 1e6, 4e4},
		{unit.Gbit, false, false, 0, 1e6, 5e5},
		{unit.Gbit, false, true, 0, 1e6, 2e5},
		{unit.Gbit, true, true, 0, 1e6, 4e4},
		{unit.Gbit, true, true, 10 * unit.Gbit, 1e6, 4e4},
		{unit.Gbit, true, true, unit.Gbit, 1e6, 5e3},
		{10 * unit.Mbit, true, false, unit.Gbit, 1e4, 400},
		{3 * unit.Mbit, true, true, 5 * unit.Mbit, 3000, leastBurst},
		{unit.Gbit, false, true, unit.Gbit, 1e6, 4e4},
		{100 * unit.Mbit, false, true, unit.Gbit, 1e5, 2e4},
		{100 * unit.Mbit, false, false, unit.Gbit, 1e5, 2e4},
		{50 * unit.Mbit, false, true, unit.Gbit, 5e4, 1e4},
		{2 * unit.Mbit, false, true, 5 * unit.Mbit, 2000, leastBurstTCP},
		{600 * unit.Kbit, false, true, 5 * unit.Mbit, 600, 120},
		{4 * unit.Mbit, false, false, 5 * unit.Mbit, 4000, leastBurstTCP},
		{20*unit.Mbit + 1, false, false, 0, 20001, 10001},
		{100 * unit.Kbit, true, false, 0, 100, leastBurst},
		{0, true, false, 0, 1, leastBurst},
	} {
		_, bands := circuitMeter{rest: c.rest, link: c.link}.band(Limit{c.rate, c.unresponsive})
		if got := bands[0].(openflow.DropBand); got.Rate != c.kbit || got.Burst != c.burst {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// Masks cover exactly their range.
func TestPortMasks(t *testing.T) {
	for _, p := range []Ports{{1, 1}, {0, 65535}, {1, 65534}, {5000, 5010}, {32768, 65535}, {0, 1}, {65535, 65535}} {
		all := p.masks()
		if len(all) > 30 {
			t.Errorf("%v has %d masks", p, len(all))
		}
		for port := range 1 << 16 {
			n := 0
			for _, m := range all {
				if uint16(port)&m.mask == m.value {
					n++
				}
			}
			if in := int(p.First) <= port && port <= int(p.Last); in != (n == 1) || n > 1 {
				t.Fatalf("%v: port %d is in %d of %v", p, port, n, all)
			}
		}
	}
}

// What a circuit cannot have is named, and its traffic is best effort.
func TestBadCircuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, good := ring(t)
		number := uint32(0)
		for want, change := range map[string]func(c *Circuit){
			"begins and ends at port":  func(c *Circuit) { c.To = c.From },
			"is of labels":             func(c *Circuit) { c.VLAN = firstLabel },
			"of two families":          func(c *Circuit) { c.Source = netip.MustParsePrefix("fd00::/64") },
			"not 0 to 63":              func(c *Circuit) { c.DSCP = 64 },
			"cannot be matched":        func(c *Circuit) { c.Flows = []Traffic{{Protocol: 33, Source: Ports{1, 1}}} },
			"ends before it begins":    func(c *Circuit) { c.Flows = []Traffic{{Protocol: 17, Source: Ports{2, 1}}} },
			"no host of VLAN 5":        func(c *Circuit) { c.VLAN = 5 },
			"ends at switch":           func(c *Circuit) { c.Paths = []fabric.Path{c.Paths[0][:1]} },
			"does not begin at switch": func(c *Circuit) { c.Paths = []fabric.Path{c.Paths[0][1:]} },
			"no path is usable":        func(c *Circuit) { c.Paths = nil },
			"more than 1024 flows": func(c *Circuit) {
				c.Flows = []Traffic{{Protocol: 17, Source: Ports{1, 65534}, Destination: Ports{1, 65534}}, {Protocol: 6, Source: Ports{1, 65534}, Destination: Ports{1, 65534}}}
			},
		} {
			number++
			c := good
			c.Number = number
			change(&c)
			w.setCircuits(c)
			if s, ok := w.c.Circuits.State(number); !ok || !s.BestEffort || !strings.Contains(strings.Join(s.Lacks, ", "), want) {
				t.Errorf("%s: %+v", want, s)
			}
		}
		if got, received := w.crossed(0, datagram(0, 3, 1, 2, 100)); !slices.Equal(received, []int{3}) {
			t.Errorf("best effort crossed %v to %v", got, received)
		}
	})
}

// Paths that stay keep their labels, no two have the same in a switch, and a switch can carry as many as there are labels.
func TestPathLabels(t *testing.T) {
	routes := map[string]route{}
	link := func(from, to, port int) fabric.LinkID {
		return fabric.LinkID{From: fabric.PortID{Switch: fabric.DPID(from), Port: fabric.PortNo(port)}, To: fabric.PortID{Switch: fabric.DPID(to), Port: fabric.PortNo(port)}}
	}
	add := func(from, to, port int) {
		r := route{path: fabric.Path{link(from, to, port)}}
		routes[r.key()] = r
	}
	for n := range 5000 {
		add(1, 2, n)
	}
	first := PathLabels(nil).assign(routes)
	for n := range 5000 {
		add(2, 3, n)
		add(3, 4, n)
	}
	second := first.assign(routes)
	for key, l := range first {
		if second[key] != l {
			t.Fatalf("label %d became %d", l, second[key])
		}
	}
	type at struct {
		id fabric.DPID
		l  PathLabel
	}
	taken := map[at]bool{}
	for key, l := range second {
		if l.vid() < 1 || l.vid() > MaxHostVLAN || l.pcp() < firstPathPCP || pathLabel(l.index()) != l {
			t.Fatalf("label %#x", l)
		}
		for _, id := range []fabric.DPID{routes[key].path[0].From.Switch, routes[key].path[0].To.Switch} {
			if taken[at{id, l}] {
				t.Fatalf("label %#x is of two paths at switch %v", l, id)
			}
			taken[at{id, l}] = true
		}
	}
	if len(second) != 15000 {
		t.Errorf("%d of 15000 paths have labels", len(second))
	}
	for n := range 9000 {
		add(2, 3, 5000+n)
	}
	if third := second.assign(routes); len(third) < pathLabels || len(third) > pathLabels+5000 {
		t.Errorf("%d paths have labels", len(third))
	}
}

// Only the switches of a circuit's path are concerned by it, and what a new path needs comes before the circuit changes to it.
func TestConcerned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := ring(t)
		plan := func(before *Circuits, coming []Circuit, all ...Circuit) *Circuits {
			return PlanCircuits(w.c.Topology, all, coming, before)
		}
		check := func(what string, a, b *Circuits, want ...fabric.DPID) {
			t.Helper()
			got := b.Concerned(a)
			if len(got) != len(want) || slices.ContainsFunc(want, func(id fabric.DPID) bool { return !got[id] }) {
				t.Errorf("%s concerns %v, want %v", what, got, want)
			}
		}
		one := plan(nil, nil, c)
		check("a circuit", nil, one, 1, 2, 4)
		check("the same", one, plan(one, nil, c))
		moved := c
		moved.Paths = []fabric.Path{w.path(0, 2, 3)}
		both := plan(one, []Circuit{moved}, c)
		check("a path that is to come", one, both, 3, 4)
		then := plan(both, []Circuit{c}, moved)
		check("the change to it", both, then, 1)
		check("the end of the old path", then, plan(then, nil, moved), 2, 4)
		faster := c
		faster.Rate *= 2
		check("a rate", one, plan(one, nil, faster), 1)
		check("the end", one, nil, 1, 2, 4)
	})
}

// A circuit that waits for traffic counts it at its first switch, which sends it like other traffic. It needs nothing else, and begins and ends like
// others. A switch with one table does not let it wait.
func TestWaitingCircuit(t *testing.T) {
	for name, kind := range map[string]model{"whole": whole, "one table": oneFull} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := ring(t, kind)
				// has returns what the switches have for the circuit.
				has := func() (flows, meters int, packets uint64) {
					for _, s := range w.sw {
						meters += len(slices.DeleteFunc(s.Meters(), func(m openflow.MeterCounters) bool { return !IsCircuitMeter(m.Meter) }))
						for _, f := range s.Flows() {
							if !isCircuitFlow(f.Cookie) {
								continue
							}
							flows++
							if k, _ := KindOf(f.Cookie); k == KindCircuit {
								packets += f.Packets
							}
						}
					}
					return flows, meters, packets
				}
				w.setCircuits(c)
				whole, _, _ := has()
				c.Waiting = true
				w.setCircuits(c)
				flows, meters, before := has()
				if waits := name == "whole"; waits && (flows != 1 || meters != 0) || !waits && (flows != whole || meters != 1) {
					t.Errorf("the circuit that waits has %d of %d flows and %d meters", flows, whole, meters)
				}
				if _, to := w.crossed(0, datagram(0, 3, 1, 2, 100)); !slices.Equal(to, []int{3}) {
					t.Errorf("a datagram of it reaches %v", to)
				}
				if _, _, now := has(); now != before+1 {
					t.Errorf("%d datagrams were counted, want 1", now-before)
				}
				if s, _ := w.c.Circuits.State(c.Number); s.BestEffort || len(s.Lacks) > 0 {
					t.Errorf("its state is %+v", s)
				}
				c.Waiting = false
				w.setCircuits(c)
				if over, _ := w.crossed(0, datagram(0, 3, 1, 2, 100)); !reflect.DeepEqual(over, along(c.Paths[0])) {
					t.Errorf("with traffic it goes over %v", over)
				}
			})
		})
	}
}
