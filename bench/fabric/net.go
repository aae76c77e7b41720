package fabric

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/lab"
)

// controllerNode is the node of a network's controller.
const controllerNode = "c"

// shape is the switches, cables and hosts of a network. Switches and hosts have numbers from 1: s1, h1.
type shape struct {
	switches int
	cables   [][2]int // between switches
	spare    int      // the last of them are those that close loops
	hosts    []int    // the switch of each host
}

// ring is a ring of switches with hosts distributed over them, and further cables.
func ring(switches, hosts int, more ...[2]int) shape {
	s := shape{switches: switches}
	for n := 1; n < switches; n++ {
		s.cables = append(s.cables, [2]int{n, n + 1})
	}
	s.cables = append(append(s.cables, [2]int{switches, 1}), more...)
	s.spare = 1 + len(more)
	for n := range hosts {
		s.hosts = append(s.hosts, n%switches+1)
	}
	return s
}

func switchName(n int) string { return fmt.Sprint("s", n) }
func hostName(n int) string   { return fmt.Sprint("h", n) }

// topology returns the lab of a shape for a method. A network with controllers has their nodes.
func (s shape) topology(m method, names ...string) *lab.Topology {
	t := &lab.Topology{Name: lab.UniqueName("fabric")}
	for n := range s.switches {
		one := lab.SwitchSpec{Name: switchName(n + 1), ID: uint64(n + 1)}
		if m.rstp {
			one.RSTP, one.FailMode = true, lab.Standalone
		}
		t.Switches = append(t.Switches, one)
	}
	cables := s.cables
	if m.tree {
		cables = cables[:len(cables)-s.spare]
	}
	for _, c := range cables {
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{switchName(c[0]), switchName(c[1])}})
	}
	for n, at := range s.hosts {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: hostName(n + 1)})
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{hostName(n + 1), switchName(at)}})
	}
	if !m.rstp {
		controlled(t, names...)
	}
	return t
}

// controlled makes all switches of a topology those of controllers, which get nodes.
func controlled(t *lab.Topology, names ...string) {
	for _, name := range names {
		if !slices.ContainsFunc(t.Nodes, func(n lab.NodeSpec) bool { return n.Name == name }) {
			t.Nodes = append(t.Nodes, lab.NodeSpec{Name: name})
		}
	}
	for i := range t.Switches {
		s := &t.Switches[i]
		s.FailMode, s.Protocols, s.Controllers = lab.Secure, []string{"OpenFlow13"}, nil
		for _, name := range names {
			s.Controllers = append(s.Controllers, name+":"+controllers.OpenFlowPort)
		}
	}
}

// network is a network of real switches that a method connects.
type network struct {
	*lab.Lab
	place  *controllers.Place // of Headgate
	runner *runner
}

func (n *network) close() error {
	if n == nil {
		return nil
	}
	err := errors.Join(n.runner.close(), n.place.Close())
	if n.Lab != nil {
		err = errors.Join(err, n.Lab.Close())
	}
	return err
}

// controller returns the only controller.
func (n *network) controller() *controllers.Controller { return n.place.Controllers[0] }

// up creates a network that a method connects, and waits until it is connected.
func (m method) up(ctx context.Context, s shape) (n *network, err error) {
	if n, err = m.raise(ctx, s.topology(m, controllerNode)); err != nil || m.rstp {
		return n, err // lab.Up waits for the tree of RSTP
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	began, err := n.attach(ctx, controllerNode)
	switch {
	case err != nil:
		return n, err
	case m.start != nil:
		return n, bench.Sleep(ctx, m.settles)
	}
	_, err = n.complete(ctx, expectedOf(n.Topology), began, discoveryLimit)
	return n, err
}

// raise creates a network, and starts the method's controller. The switches have no controller yet.
func (m method) raise(ctx context.Context, t *lab.Topology) (n *network, err error) {
	n = &network{}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.Lab, err = lab.Up(ctx, t); err != nil || m.rstp {
		return n, err
	}
	for _, s := range t.Switches {
		if err := n.Switch(s.Name).SetControllers(ctx); err != nil {
			return n, err
		}
		if m.kernel {
			if _, err := n.switches(ctx, "ovs-vsctl", "--db="+n.SwitchesDatabase(), "--timeout=30", "set", "bridge", s.Name, "datapath_type=system"); err != nil {
				return n, err
			}
		}
	}
	if m.start == nil {
		n.place, err = controllers.Start(ctx, controllers.AcceptSwitches, controllers.Alone(n.Node(controllerNode)))
	} else {
		n.runner, err = m.start(ctx, n.Node(controllerNode).Do)
	}
	return n, err
}

// attach gives all switches controllers, one switch after the other, and returns the time before the last got them.
func (n *network) attach(ctx context.Context, names ...string) (began time.Time, err error) {
	var at []string
	for _, c := range names {
		at = append(at, c+":"+controllers.OpenFlowPort)
	}
	for _, s := range n.Topology.Switches {
		began = time.Now()
		if err := n.Switch(s.Name).SetControllers(ctx, at...); err != nil {
			return began, err
		}
	}
	return began, nil
}

// complete waits until the controller shows exactly what is expected, and returns the time since began.
func (n *network) complete(ctx context.Context, want expected, began time.Time, limit time.Duration) (time.Duration, error) {
	return completeAt(ctx, n.controller(), want, began, limit)
}

func completeAt(ctx context.Context, c *controllers.Controller, want expected, began time.Time, limit time.Duration) (time.Duration, error) {
	for {
		got, err := c.Show(ctx)
		took := time.Since(began)
		wrong := "nothing is shown"
		if err == nil {
			if wrong = want.differs(shownBy(got)); wrong == "" {
				return took, nil
			}
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if took > limit {
			return 0, errors.Join(fmt.Errorf("after %v the network is not shown right: %s", limit, wrong), err)
		}
	}
}

// switches runs a command in the namespace of the switches.
func (n *network) switches(ctx context.Context, name string, args ...string) (string, error) {
	out, err := n.Switch(n.Topology.Switches[0].Name).Command(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// device returns the device of a switch towards a peer, and the number of its port.
func (n *network) device(of, towards string) (lab.Port, error) { return n.Switch(of).Port(towards) }

// dial opens a TCP connection from a namespace.
func dial(do func(func() error) error, to string) (c net.Conn, err error) {
	err = do(func() (err error) {
		c, err = net.DialTimeout("tcp", to, 5*time.Second)
		return err
	})
	return c, err
}
