package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Node is a host or router of a lab: a network namespace.
type Node struct {
	Name   string
	Router bool

	lab *Lab
	ns  *os.File
	nl  *netlink.Handle
}

// baseSysctl makes a namespace quiet and fast: addresses are usable at once, there is no router
// solicitation, and no TCP connection learns from an earlier one (a cached ssthresh makes the second
// run of a test differ from the first).
var baseSysctl = [][2]string{
	{"net.ipv6.conf.all.accept_dad", "0"},
	{"net.ipv6.conf.default.accept_dad", "0"},
	{"net.ipv6.conf.default.dad_transmits", "0"},
	{"net.ipv6.conf.default.router_solicitations", "0"},
	{"net.ipv6.conf.default.accept_ra", "0"},
	{"net.ipv4.conf.all.rp_filter", "0"},
	{"net.ipv4.conf.default.rp_filter", "0"},
	{"net.ipv4.tcp_no_metrics_save", "1"},
}

var routerSysctl = [][2]string{
	{"net.ipv4.ip_forward", "1"},
	{"net.ipv6.conf.all.forwarding", "1"},
	{"net.ipv6.conf.default.forwarding", "1"},
	// A redirect would remove the router from the path.
	{"net.ipv4.conf.all.send_redirects", "0"},
	{"net.ipv4.conf.default.send_redirects", "0"},
}

func (l *Lab) makeNode(spec NodeSpec) (*Node, error) {
	f, err := newNamespace(namespaceName(l.Topology.Name, spec.Name))
	if err != nil {
		return nil, err
	}
	f.Close()
	n, err := openNode(l, spec)
	if err != nil {
		return nil, err
	}
	if err := n.configure(spec); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// configure marks the namespace as the lab's, applies its sysctls and sets its loopback device up.
func (n *Node) configure(spec NodeSpec) error {
	// Set before the kernel chooses an id itself.
	if _, err := identify(int(n.ns.Fd())); err != nil {
		return permitted(fmt.Errorf("cannot give the namespace an id: %w", err))
	}
	return n.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetAlias(lo, markPrefix+n.lab.Topology.Name); err != nil {
			return permitted(err)
		}
		settings := slices.Clone(baseSysctl)
		if spec.Router {
			settings = append(settings, routerSysctl...)
		}
		for _, s := range settings {
			if err := writeSysctl(s[0], s[1]); err != nil {
				return err
			}
		}
		for _, key := range slices.Sorted(maps.Keys(spec.Sysctl)) {
			if err := writeSysctl(key, spec.Sysctl[key]); err != nil {
				return kindError{ErrConfig, err}
			}
		}
		return netlink.LinkSetUp(lo)
	})
}

// openNode opens an existing namespace.
func openNode(l *Lab, spec NodeSpec) (*Node, error) {
	f, err := os.Open(filepath.Join(netnsDir, namespaceName(l.Topology.Name, spec.Name)))
	if err != nil {
		return nil, err
	}
	h, err := netlink.NewHandleAt(netns.NsHandle(f.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		f.Close()
		return nil, permitted(err)
	}
	return &Node{Name: spec.Name, Router: spec.Router, lab: l, ns: f, nl: h}, nil
}

func (n *Node) close() {
	if n.ns != nil {
		n.nl.Close()
		n.ns.Close()
		n.ns = nil
	}
}

// Namespace returns the name of the node's namespace under /run/netns.
func (n *Node) Namespace() string { return namespaceName(n.lab.Topology.Name, n.Name) }

// Do runs fn on a thread in the node's namespace and returns its error. Sockets and netlink handles
// that fn itself creates belong to the node permanently. What fn delegates to other goroutines runs
// outside of the namespace (net.Dial may do so: use a net.Dialer without happy eyeballs, or plain
// sockets).
func (n *Node) Do(fn func() error) error { return inNamespace(int(n.ns.Fd()), fn) }

// Addr returns the address of the node's first link, IPv4 or IPv6.
func (n *Node) Addr(ipv6 bool) (netip.Addr, error) {
	for i, l := range n.lab.Topology.Links {
		for end := range 2 {
			if l.Ends[end] != n.Name {
				continue
			}
			if ipv6 {
				return n.lab.addresses.v6[i][end].Addr(), nil
			}
			return n.lab.addresses.v4[i][end].Addr(), nil
		}
	}
	return netip.Addr{}, configErrorf("node %q has no link and therefore no address", n.Name)
}

// Device returns the name of the node's device on its first link towards peer, a node or a switch.
func (n *Node) Device(peer string) (string, error) {
	for i, l := range n.lab.Topology.Links {
		for end := range 2 {
			if l.Ends[end] == n.Name && l.Ends[1-end] == peer {
				return n.lab.devs[i][end], nil
			}
		}
	}
	return "", configErrorf("no link between %q and %q", n.Name, peer)
}

// Cmd is a command that starts in a node. It is recorded while it runs, so that Down finds it after
// its parent was killed.
type Cmd struct {
	*exec.Cmd
	node *Node
}

// Command is exec.CommandContext for a process in the node's namespace. The process is a direct child
// in the same mount namespace.
func (n *Node) Command(ctx context.Context, name string, args ...string) *Cmd {
	return &Cmd{exec.CommandContext(ctx, name, args...), n}
}

// Start is exec.Cmd.Start in the node. The child is forked on the calling thread, and inherits the
// network namespace of that thread.
func (c *Cmd) Start() error {
	if err := c.node.Do(c.Cmd.Start); err != nil {
		return err
	}
	return c.node.lab.record(func(s *state) {
		s.Processes = append(s.Processes, processOf(c.Process.Pid))
	})
}

// Wait is exec.Cmd.Wait.
func (c *Cmd) Wait() error {
	err := c.Cmd.Wait()
	if c.Process != nil {
		c.node.lab.record(func(s *state) {
			s.Processes = slices.DeleteFunc(s.Processes, func(p process) bool { return p.PID == c.Process.Pid })
		})
	}
	return err
}

// Run is exec.Cmd.Run in the node.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output is exec.Cmd.Output in the node.
func (c *Cmd) Output() ([]byte, error) {
	var out, errs bytes.Buffer
	c.Stdout = &out
	if c.Stderr == nil {
		c.Stderr = &errs
	}
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		exit.Stderr = errs.Bytes()
	}
	return out.Bytes(), err
}

// CombinedOutput is exec.Cmd.CombinedOutput in the node.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.Bytes(), err
}

// record changes the lab's state file, if this process created the lab.
func (l *Lab) record(change func(*state)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.own {
		return nil
	}
	change(l.state)
	return l.state.save()
}

// waitUsable waits until every device has its carrier and no address is tentative. Links come up
// within a few ms; the limit of 10 s is for a very busy machine.
func (n *Node) waitUsable(ctx context.Context) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		missing, err := n.notUsable()
		if err != nil || missing == "" {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after 10 s %s", missing)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (n *Node) notUsable() (string, error) {
	links, err := n.nl.LinkList()
	if errors.Is(err, netlink.ErrDumpInterrupted) {
		return "its devices still change", nil
	}
	if err != nil {
		return "", err
	}
	for _, l := range links {
		a := l.Attrs()
		if a.Name == "lo" {
			continue
		}
		if a.RawFlags&unix.IFF_RUNNING == 0 {
			return "device " + a.Name + " has no carrier", nil
		}
	}
	addrs, err := n.nl.AddrList(nil, unix.AF_INET6)
	if errors.Is(err, netlink.ErrDumpInterrupted) {
		return "its addresses still change", nil
	}
	if err != nil {
		return "", err
	}
	for _, a := range addrs {
		if a.Flags&unix.IFA_F_TENTATIVE != 0 {
			return "address " + a.IPNet.String() + " is tentative", nil
		}
	}
	return "", nil
}
