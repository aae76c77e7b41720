package fabric

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// failure is what does not work: cables by either direction, and switches.
type failure struct {
	cables   []LinkID
	switches []DPID
}

func (f failure) alive(l LinkID) bool {
	return !slices.Contains(f.cables, l) && !slices.Contains(f.cables, l.Reverse()) &&
		!slices.Contains(f.switches, l.From.Switch) && !slices.Contains(f.switches, l.To.Switch)
}

type outcome int

const (
	delivered outcome = iota
	dropped
	looped
)

// walk carries a packet as the rules of NextHop say, without a controller that reacts. marks is false where switches
// cannot mark rerouted packets: rule 1 then takes all packets that arrive at port Best, and rule 2 is rule 3. It
// returns the switch that rerouted the packet first, 0 if none did.
func walk(t *Topology, h *NextHops, f failure, from, to DPID, marks bool) (out outcome, rerouter DPID, path Path) {
	type state struct {
		at       DPID
		in       PortNo
		rerouted bool
	}
	seen := map[state]bool{}
	s := state{at: from}
	for {
		if s.at == to {
			return delivered, rerouter, path
		}
		if seen[s] {
			return looped, rerouter, path
		}
		seen[s] = true
		hop := h.At(s.at, to)
		alive := func(p PortNo) bool {
			l, ok := t.LinkFrom(PortID{s.at, p})
			return ok && f.alive(l.LinkID)
		}
		port, hairpin := hop.Best, false
		switch {
		case hop.Detour != 0 && s.in == hop.Best && (s.rerouted || !marks):
			port = hop.Detour
		case s.rerouted && marks:
		case hop.Best != 0 && !alive(hop.Best):
			port, hairpin = hop.Backup, hop.Hairpin
			s.rerouted = marks
			if rerouter == 0 {
				rerouter = s.at
			}
		}
		if port == 0 || !alive(port) || port == s.in && !hairpin {
			return dropped, rerouter, path
		}
		l, _ := t.LinkFrom(PortID{s.at, port})
		path = append(path, l.LinkID)
		s.at, s.in = l.To.Switch, l.To.Port
	}
}

// each calls f for all ordered pairs of switches that work.
func each(t *Topology, f failure, call func(from, to DPID)) {
	for _, a := range t.Switches() {
		for _, b := range t.Switches() {
			if a.ID != b.ID && !slices.Contains(f.switches, a.ID) {
				call(a.ID, b.ID)
			}
		}
	}
}

// TestNextHopsAreShortest: without failures every packet takes a path of the least cost.
func TestNextHopsAreShortest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := drawParts(t, 7, 12).topology(t)
		h := top.NextHops()
		two := twoWay(top)
		each(top, failure{}, func(from, to DPID) {
			paths := oraclePaths(top, from, to, func(l LinkID) bool { return slices.Contains(two, l) })
			slices.SortFunc(paths, oracleOrder(top, Cost))
			out, rerouter, got := walk(top, h, failure{}, from, to, true)
			if (out == delivered) != (len(paths) > 0) || rerouter != 0 {
				t.Fatalf("from %v to %v: %v, rerouted by %v, paths %v", from, to, out, rerouter, paths)
			}
			if out == delivered && (oracleCost(top, got) != oracleCost(top, paths[0]) || len(got) != len(paths[0])) {
				t.Fatalf("from %v to %v: %v, want %v", from, to, got, paths[0])
			}
		})
	})
}

// TestOneCableFails: whichever cable fails, packets arrive wherever cables still lead, whether switches can mark packets
// or not.
func TestOneCableFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := drawParts(t, 8, 14).topology(t)
		h := top.NextHops()
		for _, l := range twoWay(top) {
			f := failure{cables: []LinkID{l}}
			left := slices.DeleteFunc(twoWay(top), func(m LinkID) bool { return !f.alive(m) })
			each(top, f, func(from, to DPID) {
				for _, marks := range []bool{true, false} {
					out, _, path := walk(top, h, f, from, to, marks)
					if (out == delivered) != reach(from, left)[to] || out == looped {
						t.Fatalf("cable %v fails, marks %v: from %v to %v %v by %v", l, marks, from, to, out, path)
					}
				}
			})
		}
	})
}

// TestOneSwitchFails: whichever switch fails, no packet goes round, and packets that the neighbour of the switch can send
// around it arrive. A backup that does not survive the switch has no alternative.
func TestOneSwitchFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := drawParts(t, 8, 14).topology(t)
		h := top.NextHops()
		for _, s := range top.Switches() {
			f := failure{switches: []DPID{s.ID}}
			each(top, f, func(from, to DPID) {
				out, rerouter, path := walk(top, h, f, from, to, true)
				if out == looped {
					t.Fatalf("switch %v fails: from %v to %v goes round: %v", s.ID, from, to, path)
				}
				if rerouter != 0 && (out == delivered) != h.At(rerouter, to).SurvivesSwitch {
					t.Fatalf("switch %v fails: from %v to %v %v, rerouted by %v: %+v", s.ID, from, to, out, rerouter, h.At(rerouter, to))
				}
				if rerouter != 0 && out == dropped && to != s.ID {
					if l, ok := oracleAround(top, h, rerouter, s.ID, to); ok {
						t.Fatalf("switch %v fails: %v drops packets to %v, and could send them by %v", s.ID, rerouter, to, l)
					}
				}
			})
		}
	})
}

// oracleAround returns a cable that leads from u, or a switch whose packets pass u, to one whose packets do not pass p.
func oracleAround(t *Topology, h *NextHops, u, p, to DPID) (LinkID, bool) {
	passes := func(from, via DPID) bool {
		_, _, path := walk(t, h, failure{}, from, to, true)
		return from == via || slices.ContainsFunc(path, func(l LinkID) bool { return l.To.Switch == via })
	}
	for _, l := range twoWay(t) {
		if passes(l.From.Switch, u) && !passes(l.To.Switch, p) {
			return l, true
		}
	}
	return LinkID{}, false
}

// TestTwoFailures: marked packets go round under no failure, also of several cables and switches.
func TestTwoFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := drawParts(t, 8, 14).topology(t)
		h := top.NextHops()
		f := failure{
			cables:   rapid.SliceOfN(rapid.SampledFrom(append(twoWay(top), LinkID{})), 0, 3).Draw(t, "cables"),
			switches: rapid.SliceOfN(rapid.Map(rapid.IntRange(1, len(top.Switches())), func(i int) DPID { return DPID(i) }), 0, 2).Draw(t, "failed switches"),
		}
		each(top, f, func(from, to DPID) {
			if out, _, path := walk(top, h, f, from, to, true); out == looped {
				t.Fatalf("%+v: from %v to %v goes round: %v", f, from, to, path)
			}
		})
	})
}

// TestNextHopsSpreadDestinations: of equal paths each destination uses one, and all are used.
func TestNextHopsSpreadDestinations(t *testing.T) {
	b := switches(20) // s1 and s2 are spines, all others leaves
	for leaf := DPID(3); leaf <= 20; leaf++ {
		b.cable(leaf, 1, 1)
		b.cable(leaf, 2, 1)
	}
	h := b.topology(t).NextHops()
	used := map[PortNo]int{}
	for to := DPID(4); to <= 20; to++ {
		used[h.At(3, to).Best]++
	}
	if len(used) != 2 || used[1] < 4 || used[2] < 4 {
		t.Errorf("17 destinations over two spines: %v", used)
	}
}

// TestNextHopChanges: the changes turn the old next hops into the new ones, and are no others.
func TestNextHopChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawParts(t, 7, 12)
		other := drawParts(t, 7, 12)
		old, now := parts.topology(t).NextHops(), other.topology(t).NextHops()
		table := map[[2]DPID]NextHop{}
		for a := DPID(1); a <= 7; a++ {
			for d := DPID(1); d <= 7; d++ {
				table[[2]DPID{a, d}] = old.At(a, d)
			}
		}
		for _, c := range now.Changes(old) {
			if key := [2]DPID{c.At, c.To}; table[key] != c.Old || c.Old == c.New {
				t.Fatalf("%+v, but the old one was %+v", c, table[key])
			} else {
				table[key] = c.New
			}
		}
		for key, hop := range table {
			if want := now.At(key[0], key[1]); hop != want {
				t.Fatalf("at %v to %v: %+v after the changes, want %+v", key[0], key[1], hop, want)
			}
		}
	})
}

// TestFailureChangesFewNextHops: if a cable is removed, the best port changes only at switches whose packets took the
// cable, and nothing changes for a destination for which neither end of the cable used it.
func TestFailureChangesFewNextHops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawParts(t, 8, 14)
		top := parts.topology(t)
		old := top.NextHops()
		l := rapid.SampledFrom(parts.Links).Draw(t, "cable").LinkID
		uses := func(p PortID, to DPID) bool {
			h := old.At(p.Switch, to)
			return p.Port == h.Best || p.Port == h.Backup || p.Port == h.Detour
		}
		for _, c := range parts.without(l).topology(t).NextHops().Changes(old) {
			if !uses(l.From, c.To) && !uses(l.To, c.To) {
				t.Fatalf("%v was not used to %v, and its removal changed %+v", l, c.To, c)
			}
			if _, _, path := walk(top, old, failure{}, c.At, c.To, true); c.Old.Best != c.New.Best && !slices.Contains(path, l) && !slices.Contains(path, l.Reverse()) {
				t.Fatalf("the path %v does not take %v, and its removal changed %+v", path, l, c)
			}
		}
	})
}

// 1,000 switches and 3,000 cables, or 6,000 links.
func BenchmarkNextHops(b *testing.B) {
	top := mesh(1000, 3000).topology(b)
	for b.Loop() {
		top.NextHops()
	}
}

// BenchmarkNextHopsOfRing is the deepest tree.
func BenchmarkNextHopsOfRing(b *testing.B) {
	r := switches(1000)
	for i := range 1000 {
		r.cable(DPID(i+1), DPID((i+1)%1000+1), 1)
	}
	top := r.topology(b)
	for b.Loop() {
		top.NextHops()
	}
}

// BenchmarkNextHopsAfterFailure reports how many of the next hops one failed cable changes, and in how many switches.
func BenchmarkNextHopsAfterFailure(b *testing.B) {
	parts := mesh(1000, 3000)
	before := parts.topology(b).NextHops()
	i, changed, best, at := 0, 0, 0, 0
	for b.Loop() {
		l := parts.Links[2*(i*37%3000)]
		changes := parts.without(l.LinkID).topology(b).NextHops().Changes(before)
		in := map[DPID]bool{}
		for _, c := range changes {
			in[c.At] = true
			if c.Old.Best != c.New.Best {
				best++
			}
		}
		i, changed, at = i+1, changed+len(changes), at+len(in)
	}
	b.ReportMetric(float64(changed)/float64(i), "changes/failure")
	b.ReportMetric(float64(best)/float64(i), "best/failure")
	b.ReportMetric(float64(at)/float64(i), "switches/failure")
}

// BenchmarkOneSwitchFails reports how many pairs of switches, whose packets are rerouted because a switch between them
// failed, still reach each other, and how many pairs with a failed destination have packets that go round if switches
// cannot mark them.
func BenchmarkOneSwitchFails(b *testing.B) {
	for _, cables := range []int{30, 60} {
		b.Run(fmt.Sprintf("20switches,%dcables", cables), func(b *testing.B) {
			top := mesh(20, cables).topology(b)
			var h *NextHops
			for b.Loop() {
				h = top.NextHops()
			}
			rerouted, arrived, failed, unmarked := 0, 0, 0, 0
			for _, s := range top.Switches() {
				f := failure{switches: []DPID{s.ID}}
				each(top, f, func(from, to DPID) {
					out, rerouter, _ := walk(top, h, f, from, to, true)
					if rerouter != 0 && to != s.ID {
						rerouted++
						if out == delivered {
							arrived++
						}
					}
					if to == s.ID {
						failed++
						if out, _, _ := walk(top, h, f, from, to, false); out == looped {
							unmarked++
						}
					}
				})
			}
			b.ReportMetric(float64(rerouted), "rerouted")
			b.ReportMetric(float64(arrived), "arrived")
			b.ReportMetric(float64(failed), "to-failed")
			b.ReportMetric(float64(unmarked), "unmarked-loops")
		})
	}
}
