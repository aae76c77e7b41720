package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// The nodes. aside is a server to which no agent carries connections.
const (
	client, near, far, server, aside = "client", "near", "far", "server", "aside"
	controllerNode                   = "c"
)

// The ports of servers: connections to those of relayedPort are redirected.
const relayedPort, directPort = 5001, 5002

// explicitPort is that of the near agent at which it listens for applications.
const explicitPort = 7001

// path is one of the two paths between the edge switches.
type path struct {
	rate  unit.Rate
	delay time.Duration // in each direction
	loss  float64
}

// design is a network.
type design struct {
	paths   [2]path
	streams int // of each path, 0 lets the agent choose
	// aside is the switch of the node of this name, s2 if it is empty.
	aside string
}

func (d design) topology() *lab.Topology {
	t := &lab.Topology{Name: lab.UniqueName("bench")}
	for _, name := range []string{client, near, far, server, aside, controllerNode} {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: name})
	}
	for n, name := range switches {
		t.Switches = append(t.Switches, lab.SwitchSpec{Name: name, ID: uint64(n + 1), FailMode: lab.Secure, Protocols: []string{"OpenFlow13"}, Controllers: []string{controllerNode + ":" + controllers.OpenFlowPort}})
	}
	for _, ends := range [][2]string{{client, "s1"}, {near, "s1"}, {far, "s2"}, {server, "s2"}, {aside, cmp.Or(d.aside, "s2")}} {
		t.Links = append(t.Links, lab.LinkSpec{Ends: ends})
	}
	for n, p := range d.paths {
		core := fmt.Sprint("c", n+1)
		half := lab.Path{Spec: link.Spec{Rate: p.rate, Delay: p.delay / 2, Loss: link.Loss{Probability: p.loss / 2}}}
		if p.rate > 0 {
			half.Queue = link.Amount{Time: max(2*p.delay, 50*time.Millisecond)}
		}
		for _, ends := range [][2]string{{"s1", core}, {core, "s2"}} {
			t.Links = append(t.Links, lab.LinkSpec{Ends: ends, Forward: half, Back: half})
		}
	}
	return t
}

// switches are the two at the edge and the two in the core, with datapath ids from 1 on.
var switches = []string{"s1", "s2", "c1", "c2"}

// network is a network that a controller leads.
type network struct {
	*lab.Lab
	design design
	place  *controllers.Place
	addr   map[string]netip.Addr
	agents map[string]*agent
}

// agent is a relay agent.
type agent struct {
	cmd  *lab.Cmd
	said *bench.Tail
	file string
}

// up creates the network, and waits until its hosts reach each other. No agent runs.
func (d design) up(ctx context.Context) (_ *network, err error) {
	n := &network{design: d, addr: map[string]netip.Addr{}, agents: map[string]*agent{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.Lab, err = lab.Up(ctx, d.topology()); err != nil {
		return nil, err
	}
	for _, name := range []string{client, near, far, server, aside} {
		if n.addr[name], err = n.Node(name).Addr(false); err != nil {
			return nil, err
		}
	}
	if n.place, err = controllers.Start(ctx, nil, controllers.Alone(n.Node(controllerNode))); err != nil {
		return nil, err
	}
	if err := n.configure(ctx); err != nil {
		return nil, err
	}
	for _, pair := range [][2]string{{client, server}, {client, aside}, {client, near}, {near, far}, {far, server}} {
		if err := n.reach(ctx, pair[0], pair[1]); err != nil {
			return nil, err
		}
	}
	return n, n.write()
}

// configure gives the controller the network's file.
func (n *network) configure(ctx context.Context) error {
	var b strings.Builder
	fmt.Fprintf(&b, "kind: Network\nname: bench\nlisten: [{address: \"0.0.0.0:%s\", tls: false}]\nswitches:\n", controllers.OpenFlowPort)
	for i, name := range switches {
		fmt.Fprintf(&b, "  - {id: %d, name: %s}\n", i+1, name)
	}
	b.WriteString("links:\n")
	for i, p := range n.design.paths {
		for _, edge := range switches[:2] {
			core := fmt.Sprint("c", i+1)
			from, err1 := n.Switch(edge).Port(core)
			to, err2 := n.Switch(core).Port(edge)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			fmt.Fprintf(&b, "  - {ends: [%s/%d, %s/%d], capacity: %v}\n", edge, from.Number, core, to.Number, p.rate)
		}
	}
	fmt.Fprintf(&b, "relays:\n  agents: [%v, %v]\n  redirect: [{name: bulk, to: [%v, %v], ports: %d}]\n", n.addr[near], n.addr[far], n.addr[server], n.addr[aside], relayedPort)
	return n.apply(ctx, "network.yaml", b.String(), "network", "apply", "-f")
}

func (n *network) controller() *controllers.Controller { return n.place.Controllers[0] }

func (n *network) reach(ctx context.Context, from, to string) error {
	return n.eventually(ctx, from+" reaches "+to, func() error {
		out, err := n.Node(from).Command(ctx, "ping", "-c", "1", "-W", "1", n.addr[to].String()).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, bench.LastLines(string(out)))
		}
		return nil
	})
}

// eventually repeats something until it succeeds.
func (n *network) eventually(ctx context.Context, what string, do func() error) error {
	for limit := time.Now().Add(30 * time.Second); ; {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(limit):
			return fmt.Errorf("not after 30 s: %s: %w", what, err)
		}
		if err := bench.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// write writes the files of the agents.
func (n *network) write() error {
	key := filepath.Join(n.place.Dir, "relay.key")
	if _, err := n.controller().Headgate(context.Background(), "relay", "key", key); err != nil {
		return err
	}
	for name, at := range map[string]string{near: "s1", far: "s2"} {
		dev, err := n.Node(name).Device(at)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("kind: Relay\nname: %s\nkey: %s\nnetwork: %s\n", n.agentName(name), key, dev)
		if name == far {
			text += fmt.Sprintf("accept: {listen: [\"%[1]v:8424\", \"%[1]v:8425\"], destinations: [%[2]v/32], keep_source: true}\n", n.addr[far], n.addr[server])
		} else {
			streams := ""
			if n.design.streams > 0 {
				streams = fmt.Sprintf(", streams: %d", n.design.streams)
			}
			text += fmt.Sprintf("take: [{}]\nforward: [{listen: \"%v:%d\", to: \"%[3]v:%d\"}]\nexits:\n  - address: %[5]v:8424\n    destinations: [%[3]v/32]\n    paths: [{name: one, address: \"%[5]v:8424\"%[6]s}, {name: two, address: \"%[5]v:8425\"%[6]s}]\n",
				n.addr[near], explicitPort, n.addr[server], relayedPort, n.addr[far], streams)
		}
		file := filepath.Join(n.place.Dir, name+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		n.agents[name] = &agent{file: file}
	}
	return nil
}

// agentName is unique on the machine, as the names of their sockets must be.
func (n *network) agentName(node string) string { return node + "-" + n.Topology.Name }

// start starts an agent.
func (n *network) start(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	a := n.agents[name]
	a.cmd, a.said = n.Node(name).Command(context.Background(), self, "relay", "run", "-f", a.file), &bench.Tail{Keep: 1 << 16}
	a.cmd.Stderr = a.said
	return a.cmd.Start()
}

// relay starts both agents, and waits until the network redirects connections to them.
func (n *network) relay(ctx context.Context) error {
	for _, name := range []string{far, near} {
		if n.agents[name].cmd != nil {
			continue
		}
		if err := n.start(name); err != nil {
			return err
		}
	}
	if err := n.eventually(ctx, "the network knows both agents", func() error {
		s, err := n.controller().Show(ctx)
		if err != nil {
			return err
		}
		if s.Relays == nil || len(*s.Relays) < 2 || !hasExit(*s.Relays) {
			return fmt.Errorf("it knows %+v; the agents said %s%s", s.Relays, bench.LastLines(n.agents[near].said.String()), bench.LastLines(n.agents[far].said.String()))
		}
		return nil
	}); err != nil {
		return err
	}
	return bench.Sleep(ctx, time.Second) // switches ask, and the streams have their paths
}

func hasExit(all []api.NetworkRelay) bool {
	for _, r := range all {
		if len(r.Exits) > 0 {
			return true
		}
	}
	return false
}

// kill kills an agent.
func (n *network) kill(name string) error {
	a := n.agents[name]
	err := a.cmd.Process.Kill()
	_ = a.cmd.Wait()
	a.cmd = nil
	return err
}

// relayedCookie selects the flows of redirected connections (fabric/program, KindRelayed).
const relayedCookie = "cookie=0x4847830000000000/0xffffff0000000000"

// flows returns how many flows of redirected connections the switches have.
func (n *network) flows(ctx context.Context) (count int, err error) {
	for _, name := range switches {
		out, err := n.Switch(name).Command(ctx, "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", name, relayedCookie).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("cannot read the flows of %s: %w: %s", name, err, out)
		}
		count += strings.Count(string(out), " cookie=")
	}
	return count, nil
}

func (n *network) close() error {
	if n == nil || n.Lab == nil {
		return nil
	}
	for _, a := range n.agents {
		if a.cmd == nil {
			continue
		}
		_ = controllers.Terminate(a.cmd)
	}
	return errors.Join(n.place.Close(), n.Lab.Close())
}
