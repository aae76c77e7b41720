package program

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// variable is a network whose parts change at random.
type variable struct {
	t      *testing.T
	r      *rand.Rand
	parts  fabric.Parts
	labels map[fabric.DPID]uint16
	hosts  int          // so many have been made
	same   map[bool]int // of fingerprints that were compared
}

func (d *variable) port(s int) fabric.PortID {
	ports := &d.parts.Switches[s].Ports
	no := fabric.PortNo(len(*ports) + 1)
	*ports = append(*ports, fabric.Port{No: no})
	return fabric.PortID{Switch: d.parts.Switches[s].ID, Port: no}
}

func (d *variable) addHost(s int) {
	d.parts.Hosts = append(d.parts.Hosts, fabric.Host{HostID: fabric.HostID{MAC: hostMAC(d.hosts), VLAN: vlanOf(d.hosts)}, Addrs: addrsOf(d.hosts), At: d.port(s)})
	d.hosts++
}

// draw makes a network of switches of several kinds.
func draw(t *testing.T, seed uint64) *variable {
	d := &variable{t: t, r: rand.New(rand.NewPCG(seed, 77))}
	switches, cables := graph(d.r)
	kinds := []model{whole, few, lists, oneBare, bare, oneFull}
	for n := range switches {
		d.parts.Switches = append(d.parts.Switches, fabric.Switch{ID: fabric.DPID(n + 1), Capabilities: kinds[d.r.IntN(len(kinds))].Capabilities})
	}
	for n := range switches {
		for range d.r.IntN(3) {
			d.addHost(n)
		}
	}
	for _, c := range cables {
		a, b := d.port(c[0]), d.port(c[1])
		for _, l := range []fabric.LinkID{{From: a, To: b}, {From: b, To: a}} {
			d.parts.Links = append(d.parts.Links, fabric.Link{LinkID: l, Capacity: unit.Gbit, Cost: 1})
		}
	}
	return d
}

// change changes one thing.
func (d *variable) change() string {
	d.parts.Hosts, d.parts.Links = slices.Clone(d.parts.Hosts), slices.Clone(d.parts.Links)
	d.parts.Switches = slices.Clone(d.parts.Switches)
	for n := range d.parts.Switches {
		d.parts.Switches[n].Ports = slices.Clone(d.parts.Switches[n].Ports)
	}
	someSwitch := d.r.IntN(len(d.parts.Switches))
	switch kind := d.r.IntN(8); {
	case kind == 0 && len(d.parts.Links) > 0:
		l := d.parts.Links[d.r.IntN(len(d.parts.Links))]
		d.parts.Links = slices.DeleteFunc(d.parts.Links, func(m fabric.Link) bool { return m.From == l.From || m.To == l.From })
		return "a cable is taken"
	case kind == 1 && len(d.parts.Switches) > 1:
		a, b := d.port(someSwitch), d.port((someSwitch+1)%len(d.parts.Switches))
		for _, l := range []fabric.LinkID{{From: a, To: b}, {From: b, To: a}} {
			d.parts.Links = append(d.parts.Links, fabric.Link{LinkID: l, Capacity: unit.Gbit, Cost: 1})
		}
		return "a cable is added"
	case kind == 2 && len(d.parts.Hosts) > 0:
		d.parts.Hosts = slices.Delete(d.parts.Hosts, 0, 1)
		return "a host goes"
	case kind == 3 && len(d.parts.Hosts) > 0:
		d.parts.Hosts[d.r.IntN(len(d.parts.Hosts))].At = d.port(someSwitch)
		return "a host moves"
	case kind == 4 && len(d.parts.Switches) > 2:
		id := d.parts.Switches[someSwitch].ID
		d.parts.Switches = slices.Delete(d.parts.Switches, someSwitch, someSwitch+1)
		d.parts.Hosts = slices.DeleteFunc(d.parts.Hosts, func(h fabric.Host) bool { return h.At.Switch == id })
		d.parts.Links = slices.DeleteFunc(d.parts.Links, func(l fabric.Link) bool { return l.From.Switch == id || l.To.Switch == id })
		return "a switch goes"
	case kind == 5:
		d.parts.Switches[someSwitch].Capabilities = []model{whole, few, oneBare}[d.r.IntN(3)].Capabilities
		return "a switch can do something else"
	case kind == 6 && len(d.labels) > 1:
		a, b := d.parts.Switches[0].ID, d.parts.Switches[len(d.parts.Switches)-1].ID
		d.labels[a], d.labels[b] = d.labels[b], d.labels[a]
		return "two switches have each other's labels"
	}
	d.addHost(someSwitch)
	return "a host comes"
}

// connectivity is what connects the network as it is, with circuits.
func (d *variable) connectivity(before *Connectivity) *Connectivity {
	topology, err := fabric.New(d.parts)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.labels, err = AssignLabels(d.labels, topology.Switches()); err != nil {
		d.t.Fatal(err)
	}
	labels := map[fabric.DPID]uint16{}
	for id, l := range d.labels {
		labels[id] = l
	}
	c := &Connectivity{Topology: topology, Tree: topology.SpanningTree(), Next: topology.NextHops(), Labels: labels, HostPort: func(fabric.PortID) bool { return true }}
	var circuits []Circuit
	for _, l := range topology.Links() {
		if d.r.IntN(4) == 0 {
			circuits = append(circuits, Circuit{Number: uint32(l.From.Switch)<<8 + uint32(l.From.Port), Name: "rest", From: l.From, Rate: unit.Mbit, Unreserved: true})
		}
	}
	if hosts := topology.Hosts(); len(hosts) > 1 && len(topology.Links()) > 0 {
		l := topology.Links()[0]
		from, to := slices.IndexFunc(hosts, func(h fabric.Host) bool { return h.At.Switch == l.From.Switch }), slices.IndexFunc(hosts, func(h fabric.Host) bool { return h.At.Switch == l.To.Switch })
		if from >= 0 && to >= 0 {
			circuits = append(circuits, Circuit{Number: 1, Name: "one", From: hosts[from].At, To: hosts[to].At, Paths: []fabric.Path{{l.LinkID}}, Rate: unit.Mbit, Class: 1})
		}
	}
	if len(circuits) > 0 {
		var had *Circuits
		if before != nil {
			had = before.Circuits
		}
		c.Circuits = PlanCircuits(topology, circuits, nil, had)
	}
	return c
}

// The changes of a switch from one network to another are the same for all of its rules as for the part that Since names.
func TestPart(t *testing.T) {
	needed, whole, all := 0, 0, 0
	same := map[bool]int{}
	for seed := range uint64(400) {
		d := draw(t, seed)
		d.same = same
		before := d.connectivity(nil)
		var what []string
		for range 1 + d.r.IntN(3) {
			what = append(what, d.change())
		}
		after := d.connectivity(before)
		since := after.Since(before)
		d.fingerprints(before, after)
		for _, s := range d.parts.Switches {
			if _, ok := before.Topology.Switch(s.ID); !ok {
				continue
			}
			part := since.Part(s.ID)
			diff := func(part *Part) (out [][]Change, rules int) {
				was, err := before.Part(s.ID, part)
				if err != nil {
					t.Fatal(err)
				}
				is, err := after.Part(s.ID, part)
				if err != nil {
					t.Fatal(err)
				}
				plan, err := Diff(is, *was.State(State{}), Managed)
				if err != nil {
					t.Fatalf("seed %d, switch %v, after %q: %v", seed, s.ID, what, err)
				}
				return plan.Steps, len(was.Flows)
			}
			want, rules := diff(nil)
			got, made := diff(part)
			if a, b := sorted(want), sorted(got); !reflect.DeepEqual(a, b) {
				t.Fatalf("seed %d, switch %v, after %q: the changes of the part are\n%v\nand of all rules\n%v", seed, s.ID, what, b, a)
			}
			needed, all = needed+made, all+rules
			if part == nil {
				whole++
			}
		}
	}
	if same[true] == 0 || same[false] == 0 {
		t.Errorf("fingerprints were the same or not in %v cases", same)
	}
	if whole == 0 || needed > all*9/10 {
		t.Errorf("%d of %d rules were made, and all of %d switches: the test proves nothing", needed, all, whole)
	}
}

// fingerprints checks that those of two networks are the same where the rules are, and count the flows.
func (d *variable) fingerprints(before, after *Connectivity) {
	for _, s := range d.parts.Switches {
		was, err := before.Program(s.ID)
		if err != nil {
			continue // it is new
		}
		is, err := after.Program(s.ID)
		if err != nil {
			d.t.Fatal(err)
		}
		old, _, err := before.Fingerprints(nil).Switch(s.ID)
		if err != nil {
			d.t.Fatal(err)
		}
		sum, flows, err := after.Fingerprints(nil).Switch(s.ID)
		if err != nil {
			d.t.Fatal(err)
		}
		if flows != len(is.Flows) {
			d.t.Fatalf("%d flows are counted of %d", flows, len(is.Flows))
		}
		if sum == 0 || old == 0 {
			continue
		}
		plan, err := Diff(is, *was.State(State{}), Managed)
		if err != nil {
			d.t.Fatal(err)
		}
		if same := len(plan.Steps) == 0; same != (sum == old) {
			d.t.Fatalf("switch %v: the fingerprints are %x and %x, and the changes %v", s.ID, old, sum, plan.Steps)
		}
		if other, _, _ := after.Fingerprints([]byte("another program")).Switch(s.ID); other == sum {
			d.t.Fatalf("switch %v: another program has the same fingerprint", s.ID)
		}
		d.same[sum == old]++
	}
}

// sorted are the messages of each step, without their order within it.
func sorted(steps [][]Change) (out [][]string) {
	for _, step := range steps {
		var all []string
		for _, c := range step {
			all = append(all, fmt.Sprintf("%x", wire(c.Message)))
		}
		slices.Sort(all)
		out = append(out, all)
	}
	return out
}
