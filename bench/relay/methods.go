package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
)

// method is how connections cross the network.
type method struct {
	name       string
	congestion string // of the connection
	tuned      bool   // large buffers
	mptcp      bool
	// setUp starts what the method needs; nil is nothing.
	setUp func(ctx context.Context, l *lab.Lab, paths []path) (*agents, error)
}

func (m method) start(ctx context.Context, l *lab.Lab, paths []path) (*agents, error) {
	if m.setUp == nil {
		return &agents{}, nil
	}
	return m.setUp(ctx, l, paths)
}

// The methods that are compared. Applications use CUBIC.
var (
	directCUBIC  = method{name: "direct CUBIC", congestion: "cubic", tuned: true}
	defaultCUBIC = method{name: "default CUBIC", congestion: "cubic"}
	directBBR    = method{name: "direct BBR", congestion: "bbr", tuned: true}
	mptcp        = method{name: "MPTCP", congestion: "cubic", tuned: true, mptcp: true, setUp: startMPTCP}
	proxy        = proxyAt("splitting proxy", entry)
	exitProxy    = proxyAt("splitting proxy at the exit", exit)
	ours         = relayed(bench.Ours, agentOptions{})
)

// agentOptions are keys of the relay's configuration that a case sets.
type agentOptions struct {
	plain bool
	path  string // keys of each path: "streams: 4"
	exit  string // keys of the exit: "engine: sos"
	take  string // keys of the rule; "" takes all connections to the server
}

// relayed returns a method with the relay.
func relayed(name string, o agentOptions) method {
	return method{name: name, congestion: "cubic", setUp: func(ctx context.Context, l *lab.Lab, paths []path) (*agents, error) {
		return startAgents(ctx, l, paths, o)
	}}
}

// thesis returns the thesis's scheme.
func thesis(streams, queue, block int) method {
	return relayed("thesis", agentOptions{
		plain: true, path: "congestion: cubic",
		exit: fmt.Sprintf("engine: sos, sos: {streams: %d, queue: %d, block: %d}", streams, queue, block),
	})
}

// startAgents starts the relay's agents, as a user would.
func startAgents(ctx context.Context, l *lab.Lab, paths []path, o agentOptions) (_ *agents, err error) {
	a := &agents{}
	if a.dir, err = os.MkdirTemp("", "headgate-bench-"); err != nil {
		return a, err
	}
	self, err := os.Executable()
	if err != nil {
		return a, err
	}
	key := filepath.Join(a.dir, "relay.key")
	if out, err := l.Node(entry).Command(ctx, self, "relay", "key", key).CombinedOutput(); err != nil {
		return a, fmt.Errorf("headgate relay key: %w: %s", err, out)
	}
	begin := fmt.Sprintf("kind: Relay\nkey: %s\nencrypt: %v\n", key, !o.plain)
	destinations := serverNetwork(len(paths))
	configs := [...]struct{ node, text string }{
		{exit, begin + fmt.Sprintf("name: exit\naccept: {listen: \"0.0.0.0:8424\", destinations: [%s], keep_source: true}\n", destinations)},
		{entry, begin + fmt.Sprintf("name: entry\ntake: [{%s}]\nexits:\n  - {%s}\n", cmp.Or(o.take, "dst: "+destinations), strings.Join(exitKeys(paths, destinations, o), ", "))},
	}
	for _, c := range configs {
		file := filepath.Join(a.dir, c.node+".yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			return a, err
		}
		if err := a.start(ctx, l.Node(c.node), "is ready", self, "relay", "run", "-f", file); err != nil {
			return a, err
		}
	}
	longest := time.Duration(0)
	for _, p := range paths {
		longest = max(longest, p.rtt)
	}
	return a, bench.Sleep(ctx, 2*time.Second+6*longest)
}

// exitKeys returns the keys of the entry's exit.
func exitKeys(paths []path, destinations string, o agentOptions) []string {
	keys := []string{fmt.Sprintf("address: \"%s:8424\", destinations: [%s]", exitAddress(0), destinations)}
	if o.exit != "" {
		keys = append(keys, o.exit)
	}
	var each []string
	for n := range paths {
		p := fmt.Sprintf("name: %s, address: \"%s:8424\"", pathName(n), exitAddress(n))
		if o.path != "" {
			p += ", " + o.path
		}
		each = append(each, "{"+p+"}")
	}
	return append(keys, "paths: ["+strings.Join(each, ", ")+"]")
}

// startMPTCP lets the kernel's multipath TCP use all paths between entry and exit: the exit announces its other
// addresses (RFC 8684, 3.4).
func startMPTCP(ctx context.Context, l *lab.Lab, paths []path) (*agents, error) {
	run := func(node string, args ...string) error {
		if out, err := l.Node(node).Command(ctx, "ip", append([]string{"mptcp"}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip mptcp: %w: %s", err, out)
		}
		return nil
	}
	err := errors.Join(run(entry, "limits", "set", "subflow", "8", "add_addr_accepted", "8"), run(exit, "limits", "set", "subflow", "8", "add_addr_accepted", "8"))
	for n := 1; n < len(paths); n++ {
		err = errors.Join(err, run(exit, "endpoint", "add", exitAddress(n), "signal"))
	}
	return &agents{}, err
}

// proxyRules let the kernel hand the connections to the proxy, and what servers answer, too.
const proxyRules = `table inet splitting {
	chain prerouting {
		type filter hook prerouting priority mangle; policy accept;
		meta l4proto tcp socket transparent 1 meta mark set 1 accept
		ip daddr %s meta l4proto tcp meta mark set 1 tproxy ip to :8424 accept
	}
}
`

// proxyConfig is HAProxy's configuration. It copies in user space, because splicing is off.
const proxyConfig = `global
	maxconn 1000
defaults
	mode tcp
	timeout connect 10s
	timeout client 1h
	timeout server 1h
frontend all
	bind 0.0.0.0:8424 transparent
	default_backend all
backend all
	source 0.0.0.0 usesrc client
	server server %s
`

// proxyAt returns the method with HAProxy at a node.
func proxyAt(name, node string) method {
	return method{name: name, congestion: "cubic", tuned: true, setUp: func(ctx context.Context, l *lab.Lab, paths []path) (*agents, error) {
		return startProxy(ctx, l, node, paths)
	}}
}

// startProxy starts HAProxy at a node.
func startProxy(ctx context.Context, l *lab.Lab, node string, paths []path) (_ *agents, err error) {
	a := &agents{}
	if a.dir, err = os.MkdirTemp("", "headgate-bench-"); err != nil {
		return a, err
	}
	to, err := l.Node(server).Addr(false)
	if err != nil {
		return a, err
	}
	rules, config := filepath.Join(a.dir, "rules"), filepath.Join(a.dir, "haproxy.cfg")
	err = errors.Join(
		os.WriteFile(rules, fmt.Appendf(nil, proxyRules, serverNetwork(len(paths))), 0o600),
		os.WriteFile(config, fmt.Appendf(nil, proxyConfig, to), 0o600),
	)
	for _, c := range []string{"nft -f " + rules, "ip rule add fwmark 1 lookup 100", "ip route add local default dev lo table 100"} {
		words := strings.Fields(c)
		if out, failed := l.Node(node).Command(ctx, words[0], words[1:]...).CombinedOutput(); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w: %s", c, failed, out))
		}
	}
	if err != nil {
		return a, err
	}
	if err := a.start(ctx, l.Node(node), "", "haproxy", "-db", "-f", config); err != nil {
		return a, err
	}
	return a, bench.Sleep(ctx, time.Second)
}
