package reservations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// controllerNode is the node of the controller.
const controllerNode = "c"

// design is a network of switches, or of Linux routers in their place. They have numbers from 1, and so have hosts: s1, h1.
type design struct {
	nodes  int
	cables []cable
	hosts  []host
	// routers are Linux routers with agents instead of switches.
	routers bool
	// agents are the hosts that have one.
	agents []string
	// scheme is that of the controller, "" is the default.
	scheme string
	// three are three controllers, which a router joins, instead of one.
	three bool
}

// cable is between two switches, with its rate in each direction.
type cable struct {
	a, b int
	rate unit.Rate
	cost int // 0 is the default
}

// host is at a switch, with the rate of its line; 0 is as fast as the machine.
type host struct {
	at    int
	rate  unit.Rate
	delay time.Duration // of its line, in each direction
}

// thesis is the network of figure 5.1, with links of a rate between switches, and hosts of three fifths of it:
//
//	h1 h2 h3 - s1 -.             .- s4 - h6 h7 h8
//	               s2 --------- s5
//	   h4 h5 - s3 -'             '- s6 - h9 h10
func thesis(rate unit.Rate) design {
	d := design{nodes: 6, cables: []cable{{1, 2, rate, 0}, {3, 2, rate, 0}, {2, 5, rate, 0}, {5, 4, rate, 0}, {5, 6, rate, 0}}}
	for _, at := range []int{1, 1, 1, 3, 3, 4, 4, 4, 6, 6} {
		d.hosts = append(d.hosts, host{at: at, rate: rate * 3 / 5})
	}
	return d
}

// dumbbell is senders at s1 and receivers at s2, with a link of a rate between them. Host i sends to host i + pairs.
func dumbbell(rate unit.Rate, pairs int) design {
	d := design{nodes: 2, cables: []cable{{1, 2, rate, 0}}}
	for i := range 2 * pairs {
		d.hosts = append(d.hosts, host{at: 1 + i/pairs})
	}
	return d
}

func hostName(n int) string { return fmt.Sprint("h", n) }

// core is the router between several controllers.
const core = "core"

// leaders returns the nodes of the controllers.
func (d design) leaders() []string {
	if d.three {
		return []string{"c1", "c2", "c3"}
	}
	return []string{controllerNode}
}

// channels returns where switches reach the controllers.
func (d design) channels() (all []string) {
	for _, name := range d.leaders() {
		all = append(all, name+":"+controllers.OpenFlowPort)
	}
	return all
}

// name returns the name of a switch, or of the router in its place.
func (d design) name(n int) string { return bench.Pick(d.routers, "r", "s") + fmt.Sprint(n) }

// topology returns the lab. Links of routers have a delay, so that the emulator holds their rate: the agents need the queues of the devices.
func (d design) topology() *lab.Topology {
	t := &lab.Topology{Name: lab.UniqueName("bench")}
	for n := range d.nodes {
		if d.routers {
			t.Nodes = append(t.Nodes, lab.NodeSpec{Name: d.name(n + 1), Router: true})
		} else {
			t.Switches = append(t.Switches, lab.SwitchSpec{Name: d.name(n + 1), ID: uint64(n + 1), FailMode: lab.Secure, Protocols: []string{"OpenFlow13"}, Controllers: d.channels()})
		}
	}
	path := func(rate unit.Rate, delay time.Duration) lab.Path {
		if rate > 0 && d.routers {
			delay = max(delay, 500*time.Microsecond)
		}
		spec := link.Spec{Rate: rate, Delay: delay}
		if rate > 0 {
			spec.Queue = link.Amount{Time: 50 * time.Millisecond}
		}
		return lab.Path{Spec: spec}
	}
	for _, c := range d.cables {
		p := path(c.rate, 0)
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{d.name(c.a), d.name(c.b)}, Forward: p, Back: p})
	}
	for n, h := range d.hosts {
		name := hostName(n + 1)
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: name})
		p := path(h.rate, h.delay)
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{name, d.name(h.at)}, Forward: p, Back: p})
	}
	if d.three {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: core, Router: true})
		for _, name := range d.leaders() {
			t.Nodes = append(t.Nodes, lab.NodeSpec{Name: name})
			t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{name, core}})
		}
		return t
	}
	t.Nodes = append(t.Nodes, lab.NodeSpec{Name: controllerNode})
	if d.routers || len(d.agents) > 0 {
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{controllerNode, d.name(1)}})
	}
	return t
}

// network is a network that a controller leads.
type network struct {
	*lab.Lab
	design design
	place  *controllers.Place
	addr   map[string]netip.Addr // of hosts
}

// up creates the network, and waits until its hosts reach each other. Host i sends to host i + n/2 of n.
func (d design) up(ctx context.Context) (_ *network, err error) {
	n := &network{design: d, addr: map[string]netip.Addr{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.Lab, err = lab.Up(ctx, d.topology()); err != nil {
		return nil, err
	}
	for i := range d.hosts {
		if n.addr[hostName(i+1)], err = n.Node(hostName(i + 1)).Addr(false); err != nil {
			return nil, err
		}
	}
	for _, s := range n.Topology.Switches {
		if err := n.Switch(s.Name).SetControllers(ctx); err != nil {
			return nil, err
		}
	}
	if err := n.lead(ctx); err != nil {
		return nil, err
	}
	if err := n.reach(ctx); err != nil {
		return nil, err
	}
	names := d.agents
	if d.routers {
		for i := range d.nodes {
			names = append(names, d.name(i+1))
		}
	}
	for _, name := range names {
		if err := n.join(ctx, name); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// lead starts the controller, and gives it the network's file and the switches.
func (n *network) lead(ctx context.Context) (err error) {
	d := n.design
	var args []string
	if d.scheme != "" {
		args = append(args, "--reservation-scheme", d.scheme)
	}
	if d.routers || len(d.agents) > 0 {
		at, err := n.Node(controllerNode).Addr(false)
		if err != nil {
			return err
		}
		args = append(args, "--listen", "0.0.0.0", "--certificate-for", at.String())
	}
	seats := []controllers.Seat{}
	for _, name := range d.leaders() {
		seat := controllers.Alone(n.Node(name))
		if d.three {
			a, err := n.Node(name).Addr(false)
			if err != nil {
				return err
			}
			seat.Address = a.String()
		}
		seats = append(seats, seat)
	}
	if n.place, err = controllers.Start(ctx, args, seats...); err != nil {
		return err
	}
	file := filepath.Join(n.place.Dir, "network.yaml")
	text, err := n.file()
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil {
		return err
	}
	if err := n.retry(ctx, "network", "apply", "-f", file); err != nil {
		return err
	}
	for _, s := range n.Topology.Switches {
		if err := n.Switch(s.Name).SetControllers(ctx, d.channels()...); err != nil {
			return err
		}
	}
	return nil
}

// file returns the network's file.
func (n *network) file() (string, error) {
	d := n.design
	var b strings.Builder
	b.WriteString("kind: Network\nname: bench\n")
	end := func(of, to string) (string, error) {
		if d.routers {
			return of + "/" + to, nil // a device has the name of its peer
		}
		p, err := n.Switch(of).Port(to)
		return fmt.Sprintf("%s/%d", of, p.Number), err
	}
	if d.routers {
		b.WriteString("routers:\n")
		for i := range d.nodes {
			fmt.Fprintf(&b, "  - {name: %s}\n", d.name(i+1))
		}
	} else {
		b.WriteString("listen: [{address: \"0.0.0.0:" + controllers.OpenFlowPort + "\", tls: false}]\nswitches:\n")
		for i := range d.nodes {
			fmt.Fprintf(&b, "  - {id: %d, name: %s}\n", i+1, d.name(i+1))
		}
	}
	b.WriteString("links:\n")
	for _, c := range d.cables {
		from, err1 := end(d.name(c.a), d.name(c.b))
		to, err2 := end(d.name(c.b), d.name(c.a))
		if err := errors.Join(err1, err2); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "  - {ends: [%s, %s], capacity: %v, cost: %d}\n", from, to, c.rate, max(c.cost, 1))
	}
	if !d.routers {
		return b.String(), nil
	}
	b.WriteString("hosts:\n")
	for i, h := range d.hosts {
		name, router := hostName(i+1), d.name(h.at)
		var mac net.HardwareAddr
		if err := n.Node(name).Do(func() error {
			dev, err := net.InterfaceByName(router)
			if err == nil {
				mac = dev.HardwareAddr
			}
			return err
		}); err != nil {
			return "", err
		}
		capacity := h.rate
		if capacity == 0 {
			capacity = unit.Gbit
		}
		fmt.Fprintf(&b, "  - {name: %s, mac: %q, addresses: [%v], at: %s/%s, capacity: %v}\n", name, mac, n.addr[name], router, name, capacity)
	}
	return b.String(), nil
}

// join starts an agent in a node, as one that joins a service.
func (n *network) join(ctx context.Context, name string) error {
	at, err := n.Node(controllerNode).Addr(false)
	if err != nil {
		return err
	}
	return n.place.Join(ctx, n.Node(name), at)
}

// limitHost gives the interface of a host with an agent a limit.
func (n *network) limitHost(ctx context.Context, name string, limit unit.Rate) error {
	dev, err := n.Node(name).Device(n.Topology.Links[n.lineOf(name)].Ends[1])
	if err != nil {
		return err
	}
	file := filepath.Join(n.place.Dir, name+".yaml")
	text := fmt.Sprintf("kind: Interface\ndev: %s\nout: {limit: %v, groups: [{name: rest, default: true}]}\n", dev, limit)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return n.retry(ctx, "apply", "--server", "default", "--host", name, "-f", file)
}

// lineOf returns the index of the link of a host.
func (n *network) lineOf(name string) int {
	return slices.IndexFunc(n.Topology.Links, func(l lab.LinkSpec) bool { return l.Ends[0] == name })
}

// reach waits until each host has reached its peer.
func (n *network) reach(ctx context.Context) error {
	half := len(n.design.hosts) / 2
	for i := 1; i <= half; i++ {
		from, to := hostName(i), n.addr[hostName(i+half)].String()
		for limit := time.Now().Add(30 * time.Second); ; {
			out, err := n.Node(from).Command(ctx, "ping", "-c", "1", "-W", "1", to).CombinedOutput()
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if time.Now().After(limit) {
				return fmt.Errorf("%s does not reach %s: %s", from, to, bench.LastLines(string(out)))
			}
		}
	}
	return nil
}

// run runs one of this program's commands as a user of the first controller that runs.
func (n *network) run(ctx context.Context, args ...string) ([]byte, error) {
	for _, c := range n.place.Controllers {
		if c.Running() {
			return c.Headgate(ctx, args...)
		}
	}
	return nil, errors.New("no controller runs")
}

// promise is a reservation from a host to its peer.
type promise struct {
	name     string
	from, to string
	rate     unit.Rate
	class    int
	protocol string
	port     int
	more     []string // further flags
}

// reserve creates reservations and waits until all are in force, and have been measured.
func (n *network) reserve(ctx context.Context, all ...promise) error {
	for _, p := range all {
		args := []string{"reserve", "create", p.name, "--from", n.addr[p.from].String(), "--to", n.addr[p.to].String(), "--rate", p.rate.String(), "--class", fmt.Sprint(p.class), "--for", "12h"}
		if p.protocol != "" {
			args = append(args, "--protocol", p.protocol, "--port", fmt.Sprint(p.port))
		}
		if err := n.retry(ctx, append(args, p.more...)...); err != nil {
			return err
		}
	}
	for limit := time.Now().Add(30 * time.Second); ; {
		now, err := n.usage(ctx)
		held := 0
		for _, u := range now {
			if u.HeldBy != "nowhere" && u.Seconds > 0 {
				held++
			}
		}
		if held >= len(all) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(limit) {
			return errors.Join(fmt.Errorf("after 30 s %d of %d reservations are in force", held, len(all)), err)
		}
		if err := bench.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// retry runs a command again while a leader has not taken over yet, or the hosts are not known.
func (n *network) retry(ctx context.Context, args ...string) error {
	for limit := time.Now().Add(20 * time.Second); ; {
		_, err := n.run(ctx, args...)
		if err == nil || time.Now().After(limit) || ctx.Err() != nil {
			return err
		}
		if err := bench.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// reading is one that "headgate reserve top -o json" prints.
type reading struct {
	Time  time.Time              `json:"time"`
	Items []api.ReservationUsage `json:"items"`
}

// usage returns what the reservations do now.
func (n *network) usage(ctx context.Context) ([]api.ReservationUsage, error) {
	text, err := n.run(ctx, "reserve", "top", "--once", "-o", "json")
	if err != nil {
		return nil, err
	}
	var r reading
	return r.Items, json.Unmarshal(text, &r)
}

func (n *network) close() error {
	if n == nil || n.Lab == nil {
		return nil
	}
	return errors.Join(n.place.Close(), n.Lab.Close())
}
