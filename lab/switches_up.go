package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// quietSysctl keeps the kernel of the switches' namespace from answering on the ports of switches: it
// sees their packets, too.
var quietSysctl = map[string]string{
	"net.ipv4.conf.default.arp_ignore":   "8",
	"net.ipv6.conf.all.disable_ipv6":     "1",
	"net.ipv6.conf.default.disable_ipv6": "1",
}

// makeSwitches makes the namespace of the switches, and their management links.
func (l *Lab) makeSwitches() error {
	t := l.Topology
	if len(t.Switches) == 0 {
		return nil
	}
	n, err := l.makeNode(NodeSpec{Name: switchesName, Sysctl: quietSysctl})
	if err != nil {
		return err
	}
	l.switches = &ovs{node: n, dir: switchesDir(t.Name)}
	for i, name := range t.controllerNodes() {
		if err := l.makeManagementLink(i, name); err != nil {
			return fmt.Errorf("management link to %s: %w", name, permitted(err))
		}
	}
	return nil
}

// startSwitches starts Open vSwitch and returns when every switch can forward.
func (l *Lab) startSwitches(ctx context.Context) error {
	t := l.Topology
	if len(t.Switches) == 0 {
		return nil
	}
	if err := l.switches.node.waitUsable(ctx); err != nil {
		return err
	}
	if err := l.switches.create(ctx, t); err != nil {
		return err
	}
	var args []string
	for _, s := range t.Switches {
		targets, err := l.targets(s.Controllers)
		if err != nil {
			return err
		}
		if len(targets) > 0 {
			args = append(args, setControllers(s.Name, targets)...)
		}
	}
	if len(args) > 0 {
		if _, err := l.switches.vsctl(ctx, args...); err != nil {
			return err
		}
	}
	return l.waitTrees(ctx)
}

// treePatience is the time limit for a spanning tree: RSTP's slowest transition takes twice its forward
// delay of 15 s.
const treePatience = 35 * time.Second

// waitTrees waits until RSTP has given every port of a link its state.
func (l *Lab) waitTrees(ctx context.Context) error {
	t := l.Topology
	if !slices.ContainsFunc(t.Switches, func(s SwitchSpec) bool { return s.RSTP }) {
		return nil
	}
	ports := t.ports()
	limit := time.Now().Add(treePatience)
	for {
		status, err := l.switches.read(ctx, "port", "name", "rstp_status")
		if err != nil {
			return err
		}
		changing := ""
		for _, s := range t.Switches {
			for _, p := range ports[s.Name] {
				text := status[p.Device]
				settled := strings.Contains(text, "rstp_port_state=Forwarding") ||
					strings.Contains(text, "rstp_port_state=Discarding") && (strings.Contains(text, "rstp_port_role=Alternate") || strings.Contains(text, "rstp_port_role=Backup"))
				if s.RSTP && !settled {
					changing = fmt.Sprintf("port %s of switch %s: %s", p.Device, s.Name, text)
				}
			}
		}
		switch {
		case changing == "":
			return nil
		case time.Now().After(limit):
			return fmt.Errorf("after %v RSTP has no tree: %s", treePatience, changing)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
