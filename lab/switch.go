package lab

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// Switch is a switch of a lab.
type Switch struct {
	Name string

	lab   *Lab
	index int // in Topology.Switches
}

// Switch returns the switch of a name. It panics if there is none, as Node does.
func (l *Lab) Switch(name string) *Switch {
	for i, s := range l.Topology.Switches {
		if s.Name == name {
			return &Switch{name, l, i}
		}
	}
	panic(fmt.Sprintf("lab %s has no switch %q", l.Topology.Name, name))
}

// DatapathID returns the switch's datapath id (OpenFlow 1.3.5, section 7.3.1).
func (s *Switch) DatapathID() uint64 { return s.lab.Topology.datapathID(s.index) }

// Ports returns the switch's ports, by number.
func (s *Switch) Ports() []Port { return s.lab.Topology.ports()[s.Name] }

// Port returns the port of the switch's first link towards peer, a node or a switch.
func (s *Switch) Port(peer string) (Port, error) {
	for _, p := range s.Ports() {
		if p.Peer == peer {
			return p, nil
		}
	}
	return Port{}, configErrorf("no link between %q and %q", s.Name, peer)
}

// Command is a command in the switches' namespace, with the environment variables OVS_RUNDIR, by which
// ovs-ofctl, ovs-vsctl and ovs-appctl find the lab's Open vSwitch, and OVS_DB, the address of its
// database. In arguments a switch has its own name: "ovs-ofctl", "dump-flows", "s1".
func (s *Switch) Command(ctx context.Context, name string, args ...string) *Cmd {
	return s.lab.switches.command(ctx, name, args...)
}

// Command returns a command in a node, or a command for a switch (Switch.Command).
func (l *Lab) Command(ctx context.Context, at, name string, args ...string) (*Cmd, error) {
	if n, ok := l.nodes[at]; ok {
		return n.Command(ctx, name, args...), nil
	}
	if l.Topology.isSwitch()(at) {
		return l.Switch(at).Command(ctx, name, args...), nil
	}
	return nil, configErrorf("there is no node %q in lab %q, and no switch of that name", at, l.Topology.Name)
}

// SwitchesDir returns the directory of the lab's Open vSwitch: database, sockets and logs.
func (l *Lab) SwitchesDir() string { return switchesDir(l.Topology.Name) }

// SwitchesDatabase returns the address of the switches' database (RFC 7047), "unix:/run/...".
func (l *Lab) SwitchesDatabase() string { return "unix:" + l.SwitchesDir() + "/db.sock" }

// SetControllers replaces the switch's controllers, which have the notation of SwitchSpec.Controllers.
// A node among them must be the controller of a switch in the topology, because Up makes the management
// links.
func (s *Switch) SetControllers(ctx context.Context, controllers ...string) error {
	targets, err := s.lab.targets(controllers)
	if err != nil {
		return fmt.Errorf("switch %s: %w", s.Name, err)
	}
	_, err = s.lab.switches.vsctl(ctx, setControllers(s.Name, targets)...)
	return err
}

// setControllers returns the arguments of ovs-vsctl that replace a switch's controllers. A switch tries
// to connect every second; Open vSwitch's default is a pause of up to 8 s.
func setControllers(name string, targets []string) []string {
	var args, ids []string
	for i, target := range targets {
		id := fmt.Sprintf("@%s-%d", name, i)
		args = append(args, "--", "--id="+id, "create", "controller", fmt.Sprintf("target=%q", target), "max_backoff=1000")
		ids = append(ids, id)
	}
	return append(args, "--", "set", "bridge", name, "controller=["+strings.Join(ids, ",")+"]")
}

// targets returns controllers in Open vSwitch's notation.
func (l *Lab) targets(controllers []string) (out []string, err error) {
	for _, text := range controllers {
		c, err := parseController(text)
		if err != nil {
			return nil, kindError{ErrConfig, err}
		}
		if c.socket != "" {
			out = append(out, "unix:"+l.SwitchesDir()+"/"+c.socket)
			continue
		}
		to, err := l.ManagementAddr(c.node)
		if err != nil {
			return nil, err
		}
		out = append(out, "tcp:"+netip.AddrPortFrom(to, c.port).String())
	}
	return out, nil
}

// KillSwitches kills ovs-vswitchd, which forwards the packets of all switches. Their configuration
// stays in the database; their flows, groups and meters are lost. Only the process that created the
// lab can do so.
func (l *Lab) KillSwitches() error {
	if l.switches == nil || l.switches.vswitchd == nil {
		return configErrorf("lab %q has no switches, or belongs to another process", l.Topology.Name)
	}
	return l.switches.vswitchd.kill()
}

// RestartSwitches starts ovs-vswitchd again after KillSwitches, and returns when all ports have their
// numbers.
func (l *Lab) RestartSwitches(ctx context.Context) error {
	if err := l.KillSwitches(); err != nil {
		return err
	}
	if err := l.switches.startVswitchd(ctx, l.Topology); err != nil {
		return err
	}
	return l.waitTrees(ctx)
}
