package sites

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// The nodes: four hosts with applications, two with relay agents, and the controller.
const (
	App, Files, Relay1 = "app", "files", "relay1" // west
	DB, Store, Relay2  = "db", "store", "relay2"  // east
	Controller         = "controller"
)

// Hosts are those with an agent of the service, which measure the paths between them.
var Hosts = []string{App, Relay1, DB, Relay2}

// Switches are the switches, with datapath ids from 1 on: of each site that of its applications, and one for each long path.
var Switches = []string{"w1", "w2", "w3", "e1", "e2", "e3"}

// NorthEnds are the switches of the north path, the western one first.
var NorthEnds = [2]string{"w2", "e2"}

// OpenFlowPort is where the controller accepts the switches.
const OpenFlowPort = "6653"

// Path is a long path between the sites.
type Path struct {
	Port  unit.Rate     // of the ports at its ends
	Delay time.Duration // in each direction
	Loss  float64       // part of the packets, in each direction
}

// Network is a network of two sites.
type Network struct {
	Seed         uint64
	North, South Path
	// Limiter is the rate of the provider's limiter of the north path: less than the port.
	Limiter unit.Rate
}

// New returns the network of a seed. The ranges are such that the emulated network and what runs in it use about one processor.
func New(seed uint64) Network {
	r := rand.New(rand.NewPCG(seed, 0))
	between := func(low, high int) int { return low + r.IntN(high-low+1) }
	n := Network{Seed: seed}
	n.North = Path{Port: unit.Rate(10*between(4, 6)) * unit.Mbit, Delay: time.Duration(between(5, 15)) * time.Millisecond}
	n.Limiter = n.North.Port * unit.Rate(between(50, 70)) / 100
	n.South = Path{
		Port: whole(n.Limiter * unit.Rate(between(60, 80)) / 100), Delay: time.Duration(between(20, 40)) * time.Millisecond,
		Loss: float64(between(5, 20)) / 10_000,
	}
	return n
}

// long are the two long paths, with the ends of each.
func (n Network) long() []struct {
	Path
	ends [2]string
} {
	return []struct {
		Path
		ends [2]string
	}{{n.North, NorthEnds}, {n.South, [2]string{"w3", "e3"}}}
}

// local are the links within the sites.
var local = [][2]string{{"w1", "w2"}, {"w1", "w3"}, {"e1", "e2"}, {"e1", "e3"}}

// localRate is the capacity of the links within the sites: less than switches in user space forward.
const localRate = 400 * unit.Mbit

// Topology returns the network for the lab.
func (n Network) Topology(name string) *lab.Topology {
	t := &lab.Topology{Name: name}
	attach := func(at string, nodes ...string) {
		for _, node := range nodes {
			t.Nodes = append(t.Nodes, lab.NodeSpec{Name: node})
			t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{node, at}})
		}
	}
	for i, s := range Switches {
		t.Switches = append(t.Switches, lab.SwitchSpec{Name: s, ID: uint64(i + 1), FailMode: lab.Secure, Protocols: []string{"OpenFlow13"}, Controllers: []string{Controller + ":" + OpenFlowPort}})
	}
	attach("w1", App, Files, Controller)
	attach("w2", Relay1)
	attach("e1", DB, Store)
	attach("e2", Relay2)
	for _, ends := range local {
		t.Links = append(t.Links, lab.LinkSpec{Ends: ends})
	}
	for i, l := range n.long() {
		p := lab.Path{Spec: link.Spec{Rate: l.Port, Delay: l.Delay, Queue: link.Amount{Time: max(50*time.Millisecond, 2*l.Delay)}, Loss: link.Loss{Probability: l.Loss}}}
		if i == 0 {
			p.Bucket = &link.Bucket{Rate: n.Limiter, Size: 30_000}
		}
		t.Links = append(t.Links, lab.LinkSpec{Ends: l.ends, Forward: p, Back: p})
	}
	return t
}

// Picture is a drawing of the network as its ports describe it.
func (n Network) Picture() string {
	north, south := n.North, n.South
	return fmt.Sprintf(`  west                                                              east
             relay1 --+                                +-- relay2
                      w2 ==== %-6v  %3d ms =========== e2
  app ---+          /                                    \          +-- db
         +--- w1 --+                                      +-- e1 ---+
  files -+          \                                    /          +-- store
                      w3 ==== %-6v  %3d ms  %.2f %% loss = e3`,
		north.Port, 2*north.Delay.Milliseconds(), south.Port, 2*south.Delay.Milliseconds(), 100*south.Loss)
}

// Document is the document of the network for the controller. port returns the number of the port of a switch to another one, and address that
// of a host.
func (n Network) Document(port func(at, to string) uint32, address func(host string) string, more ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kind: Network\nname: sites\nlisten: [{address: \"0.0.0.0:%s\", tls: false}]\nswitches:\n", OpenFlowPort)
	for i, s := range Switches {
		site := "west"
		if strings.HasPrefix(s, "e") {
			site = "east"
		}
		fmt.Fprintf(&b, "  - {id: %d, name: %s, site: %s}\n", i+1, s, site)
	}
	b.WriteString("sites: [{name: west}, {name: east}]\nlinks:\n")
	one := func(ends [2]string, capacity unit.Rate, more string) {
		fmt.Fprintf(&b, "  - {ends: [%s/%d, %s/%d], capacity: %v%s}\n", ends[0], port(ends[0], ends[1]), ends[1], port(ends[1], ends[0]), capacity, more)
	}
	for _, ends := range local {
		one(ends, localRate, "")
	}
	for i, l := range n.long() {
		more := ", reservable: " + fmt.Sprint(Reservable) + "%"
		if i == 1 {
			more += ", cost: 3"
		}
		one(l.ends, l.Port, more)
	}
	fmt.Fprintf(&b, "relays: {agents: [%s, %s]}\n", address(Relay1), address(Relay2))
	for _, line := range more {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// whole returns the whole Mbit/s of a rate.
func whole(r unit.Rate) unit.Rate { return r / unit.Mbit * unit.Mbit }
