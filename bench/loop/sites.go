package loop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// sites is a network of two switches with a link between them, and two hosts at each:
//
//	a1, a2, c -- s1 -- s2 -- b1, b2
type sites struct {
	rate   unit.Rate // of the link
	delay  time.Duration
	bucket *link.Bucket // the provider's limiter
	agents []string     // the hosts that have one
}

func (s sites) topology() *lab.Topology {
	t := &lab.Topology{Name: lab.UniqueName("bench")}
	for _, name := range []string{"a1", "a2", "b1", "b2", controllerNode} {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: name})
	}
	for n, name := range []string{"s1", "s2"} {
		t.Switches = append(t.Switches, lab.SwitchSpec{Name: name, ID: uint64(n + 1), FailMode: lab.Secure, Protocols: []string{"OpenFlow13"}, Controllers: []string{controllerNode + ":" + controllers.OpenFlowPort}})
	}
	for _, ends := range [][2]string{{"a1", "s1"}, {"a2", "s1"}, {controllerNode, "s1"}, {"b1", "s2"}, {"b2", "s2"}} {
		t.Links = append(t.Links, lab.LinkSpec{Ends: ends})
	}
	between := lab.Path{Spec: link.Spec{Rate: s.rate, Delay: s.delay, Queue: link.Amount{Time: 50 * time.Millisecond}, Bucket: s.bucket}}
	t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{"s1", "s2"}, Forward: between, Back: between})
	return t
}

// up creates the network, with an agent at some hosts.
func (s sites) up(ctx context.Context) (_ *network, err error) {
	n := &network{addr: map[string]netip.Addr{}, agents: map[string]*agent{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.Lab, err = lab.Up(ctx, s.topology()); err != nil {
		return nil, err
	}
	hosts := []string{"a1", "a2", "b1", "b2"}
	for _, name := range append(hosts, controllerNode) {
		if n.addr[name], err = n.Node(name).Addr(false); err != nil {
			return nil, err
		}
	}
	at := n.addr[controllerNode]
	if n.place, err = controllers.Start(ctx, []string{"--listen", "0.0.0.0", "--certificate-for", at.String()}, controllers.Alone(n.Node(controllerNode))); err != nil {
		return nil, err
	}
	if err := s.configure(ctx, n, ""); err != nil {
		return nil, err
	}
	for _, name := range s.agents {
		if err := n.reach(ctx, name, controllerNode); err != nil {
			return nil, err
		}
		if err := n.place.Join(ctx, n.Node(name), at); err != nil {
			return nil, err
		}
	}
	return n, errors.Join(n.reach(ctx, "a1", "b1"), n.reach(ctx, "a2", "b2"))
}

// configure gives the controller the network's file, with further lines.
func (s sites) configure(ctx context.Context, n *network, more string) error {
	var ends [2]int
	for i, names := range [][2]string{{"s1", "s2"}, {"s2", "s1"}} {
		p, err := n.Switch(names[0]).Port(names[1])
		if err != nil {
			return err
		}
		ends[i] = int(p.Number)
	}
	return n.apply(ctx, "network.yaml", fmt.Sprintf("kind: Network\nname: bench\nlisten: [{address: \"0.0.0.0:%s\", tls: false}]\nswitches: [{id: 1, name: s1}, {id: 2, name: s2}]\nlinks: [{ends: [s1/%d, s2/%d], capacity: %v}]\n%s",
		controllers.OpenFlowPort, ends[0], ends[1], s.rate, more), "network", "apply", "-f")
}

// errFull is why a smoke run has no value of a case.
var errFull = errors.New("only in the full benchmark")

// reserve reserves a rate between two hosts for a protocol and ports, and waits until it is in force.
func (n *network) reserve(ctx context.Context, name, from, to, protocol, ports string, rate unit.Rate, class int) error {
	_, err := n.controller().Headgate(ctx, "reserve", "create", name, "--from", n.addr[from].String(), "--to", n.addr[to].String(),
		"--protocol", protocol, "--port", ports, "--rate", rate.String(), "--class", fmt.Sprint(class), "--for", "1h", "--wait")
	return err
}

// apply writes a file, and runs a command with it until that succeeds.
func (n *network) apply(ctx context.Context, name, text string, args ...string) error {
	file := filepath.Join(n.place.Dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	return n.eventually(ctx, strings.Join(args, " ")+" "+name, func() error {
		_, err := n.controller().Headgate(ctx, append(args, file)...)
		return err
	})
}
