package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// The nodes.
const (
	client, entry, exit, server = "client", "entry", "exit", "server"
)

// path is one path between entry and exit.
type path struct {
	rate unit.Rate
	rtt  time.Duration
	loss float64 // probability, in both directions
}

// spec returns the properties of each direction of the path, at a rate.
func (p path) spec(rate unit.Rate) lab.Path {
	queue := max(p.rtt, link.DefaultQueue)
	bytes := unit.Bytes(max(float64(p.rate)/8*queue.Seconds(), 128<<10))
	return lab.Path{Spec: link.Spec{Rate: rate, Delay: p.rtt / 2, Loss: link.Loss{Probability: p.loss}, Queue: link.Amount{Bytes: bytes}}}
}

// sum returns the rate of all paths.
func sum(paths []path) (all unit.Rate) {
	for _, p := range paths {
		all += p.rate
	}
	return all
}

// buffers let one connection fill a long fast path.
var buffers = map[string]string{
	"net.ipv4.tcp_rmem": "4096 131072 134217728",
	"net.ipv4.tcp_wmem": "4096 16384 134217728",
}

// topology returns the network. Link n+1 is path n. tuned raises the limits of the buffers.
func topology(paths []path, tuned bool) *lab.Topology {
	var sysctl map[string]string
	if tuned {
		sysctl = buffers
	}
	t := &lab.Topology{Name: lab.UniqueName("bench")}
	for _, n := range []string{client, entry, exit, server} {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: n, Router: n == entry || n == exit, Sysctl: maps.Clone(sysctl)})
	}
	t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{client, entry}})
	for n, p := range paths {
		t.Links = append(t.Links, lab.LinkSpec{Name: pathName(n), Ends: [2]string{entry, exit}, Forward: p.spec(p.rate), Back: p.spec(p.rate), Backend: lab.Emulator, Seed: 1})
	}
	t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{exit, server}})
	return t
}

func pathName(n int) string { return fmt.Sprintf("path%d", n+1) }

// exitAddress returns the exit's address on a path: link n has the network 10.0.n.0/24.
func exitAddress(path int) string { return fmt.Sprintf("10.0.%d.2", path+1) }

// serverNetwork returns the network of the server.
func serverNetwork(paths int) string { return fmt.Sprintf("10.0.%d.0/24", paths+1) }

// trial is a network, how connections cross it, and what happens in it.
type trial struct {
	paths    []path
	method   method
	flows    []traffic.Flow
	timeline []lab.Event
	length   time.Duration
	interval time.Duration
}

// greedy is a connection that sends as much as it can.
func greedy(congestion string) traffic.Flow {
	return traffic.Flow{Name: "f", From: client, To: server, Protocol: traffic.TCP, DstPort: 5001, Congestion: congestion, Schedule: traffic.Constant(traffic.Unlimited)}
}

// up creates a network in which a method's programs run, until down is called.
func (m method) up(ctx context.Context, t *lab.Topology, paths []path) (l *lab.Lab, a *agents, down func() error, err error) {
	if l, err = lab.Up(ctx, t); err != nil {
		return nil, nil, nil, err
	}
	a, err = m.start(ctx, l, paths)
	down = func() error { return errors.Join(a.end(), l.Close()) }
	if err != nil {
		return nil, nil, nil, errors.Join(err, down())
	}
	return l, a, down, nil
}

// listen and dial open TCP sockets at a node.
func listen(n *lab.Node, at string) (l net.Listener, err error) {
	err = n.Do(func() (err error) {
		l, err = net.Listen("tcp", at)
		return err
	})
	return l, err
}

func dial(n *lab.Node, to string) (c net.Conn, err error) {
	err = n.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", to, 20*time.Second)
		return err
	})
	return c, err
}

// run runs the trial in a network of its own.
func (t trial) run(ctx context.Context) (_ *lab.RunResult, usage usage, err error) {
	topology := topology(t.paths, t.method.tuned)
	topology.Flows, topology.Timeline, topology.Duration = t.flows, t.timeline, t.length
	l, agents, down, err := t.method.up(ctx, topology, t.paths)
	if err != nil {
		return nil, usage, err
	}
	defer func() { err = errors.Join(err, down()) }()
	before := agents.usage()
	r, err := l.Run(ctx, lab.RunOptions{Interval: t.interval})
	if err != nil {
		return nil, usage, err
	}
	return r, agents.usage().minus(before), errors.Join(r.Failure(), ctx.Err())
}
