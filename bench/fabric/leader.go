package fabric

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
	"headgate.dev/headgate/bench/inmemory"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
)

// reign is what happens to the leader. begin and end are the fault's.
type reign struct {
	id, what string
	// follows reports that another controller becomes the leader.
	follows    bool
	begin, end func(ctx context.Context, c *court, leader *controllers.Controller) error
}

var reigns = []reign{
	{"kill", "the leader gets SIGKILL", true,
		func(_ context.Context, _ *court, l *controllers.Controller) error { return l.Stop(syscall.SIGKILL) },
		func(_ context.Context, _ *court, l *controllers.Controller) error { return l.Start() }},
	{"stop", "the leader gets SIGSTOP, and SIGCONT later", true,
		func(_ context.Context, _ *court, l *controllers.Controller) error {
			return l.Process().Signal(syscall.SIGSTOP)
		},
		func(_ context.Context, _ *court, l *controllers.Controller) error {
			return l.Process().Signal(syscall.SIGCONT)
		}},
	{"partition", "the leader is cut off from the other controllers, and keeps its switches", true,
		func(ctx context.Context, c *court, l *controllers.Controller) error {
			return c.partition(ctx, l, "down")
		},
		func(ctx context.Context, c *court, l *controllers.Controller) error { return c.partition(ctx, l, "up") }},
	{"reconnect", "all switches lose all controllers, and get them back", false,
		func(ctx context.Context, c *court, _ *controllers.Controller) error { return c.channels(ctx, "down") },
		func(ctx context.Context, c *court, _ *controllers.Controller) error { return c.channels(ctx, "up") }},
}

func leaderCases() (out []bench.Case) {
	for n, r := range reigns {
		id := "leader/" + r.id
		claims := []bench.Claim{
			bench.NewClaim(id+"/lost", "datagrams of standing traffic over every switch that are lost from the fault on: "+r.what, lost),
			bench.NewClaim(id+"/counters", "flows whose counters fall, or that are gone", fallen),
			bench.NewClaim(id+"/two", "observations of a switch with two masters, every 10 ms", twoMasters),
		}
		if r.follows {
			claims = append(claims, bench.NewClaim(id+"/master", "until all switches have another master", newMaster))
		}
		out = append(out, bench.Case{Name: id, Claims: claims, Takes: bench.Takes(22*time.Second, 40*time.Second), Run: r.run, Alongside: together("leaders", n/2)})
	}
	return out
}

// core joins the controllers.
const core = "core"

// courtiers are the controllers.
var courtiers = []string{"c1", "c2", "c3"}

// standing is the network: a ring of four switches with a host each.
var standing = ring(4, 4)

// watched are three switches in memory, whose controllers' roles are observed.
var watched = inmemory.Network{Switches: 3, Cables: 3, Seed: 1}

// court is a network with three controllers, which another network joins.
type court struct {
	*network
	child *inmemory.Process
	// channel has the address of each controller as switches reach it.
	channel map[string]*controllers.Controller
}

func (c *court) close() error { return errors.Join(c.child.Close(), c.network.close()) }

// courtTopology is the standing network, with controllers that a router joins.
func courtTopology() *lab.Topology {
	t := standing.topology(ours, courtiers...)
	t.Nodes = append(t.Nodes, lab.NodeSpec{Name: core, Router: true})
	for _, name := range courtiers {
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{name, core}})
	}
	return t
}

func holdCourt(ctx context.Context) (_ *court, err error) {
	t := courtTopology()
	c := &court{network: &network{}, channel: map[string]*controllers.Controller{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.Lab, err = lab.Up(ctx, t); err != nil {
		return nil, err
	}
	for _, s := range t.Switches {
		if err := c.Switch(s.Name).SetControllers(ctx); err != nil {
			return nil, err
		}
	}
	var seats []controllers.Seat
	for _, name := range courtiers {
		a, err := c.Node(name).Addr(false)
		if err != nil {
			return nil, err
		}
		seats = append(seats, controllers.Seat{Name: name, Address: a.String(), Do: c.Node(name).Do})
	}
	if c.place, err = controllers.Start(ctx, controllers.AcceptSwitches, seats...); err != nil {
		return nil, err
	}
	network := watched
	for _, one := range c.place.Controllers {
		a, err := c.ManagementAddr(one.Name)
		if err != nil {
			return nil, err
		}
		at := a.String() + ":" + controllers.OpenFlowPort
		network.Controllers, c.channel[at] = append(network.Controllers, at), one
	}
	if c.child, err = inmemory.StartAt(c.network.Switch(c.network.Topology.Switches[0].Name)); err != nil {
		return nil, err
	}
	if _, err := c.child.Tell(inmemory.Order{Do: "start", Network: &network}); err != nil {
		return nil, err
	}
	if _, err := c.attach(ctx, courtiers...); err != nil {
		return nil, err
	}
	return c, c.shown(ctx, 40*time.Second)
}

// shown waits until a controller shows the whole network.
func (c *court) shown(ctx context.Context, limit time.Duration) error {
	want := expectedOf(standing.topology(ours, courtiers...))
	memory := expectedIn(watched.Plan())
	for k := range memory.Switches {
		want.Switches[k] = true
	}
	for k := range memory.Links {
		want.Links[k] = true
	}
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); {
		for _, one := range c.place.Controllers {
			if !one.Running() {
				continue
			}
			tried, cancel := context.WithTimeout(ctx, 3*time.Second)
			got, failed := one.Show(tried)
			cancel()
			switch {
			case failed != nil:
				err = failed
			case !got.Settled:
				err = errors.New("the switches do not have what they should")
			default:
				wrong := want.differs(shownBy(got))
				if wrong == "" {
					return nil
				}
				err = errors.New(wrong)
			}
		}
		if failed := bench.Sleep(ctx, 100*time.Millisecond); failed != nil {
			return failed
		}
	}
	return fmt.Errorf("after %v the network is not shown right: %w", limit, err)
}

// partition cuts a controller off from the others, or joins it again.
func (c *court) partition(ctx context.Context, l *controllers.Controller, to string) error {
	dev, err := c.Node(core).Device(l.Name)
	if err != nil {
		return err
	}
	if out, err := c.Node(core).Command(ctx, "ip", "link", "set", "dev", dev, to).CombinedOutput(); err != nil {
		return fmt.Errorf("ip link: %w: %s", err, out)
	}
	return nil
}

// channels takes the links between all switches and all controllers, or brings them back.
func (c *court) channels(ctx context.Context, to string) error {
	for _, name := range courtiers {
		if _, err := c.switches(ctx, "ip", "link", "set", "dev", name, to); err != nil {
			return err
		}
	}
	return nil
}

// leader returns the controller that is the master of all observed switches.
func (c *court) leader() (*controllers.Controller, error) {
	r, err := c.child.Tell(inmemory.Order{Do: "look"})
	if err != nil {
		return nil, err
	}
	at, ok := masterOf(r, watched.Switches)
	if l := c.channel[at]; ok && l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("the observed switches have no common master: %v", r.Masters)
}

// masterOf returns the controller that is the newest master of all n switches.
func masterOf(r inmemory.Report, n int) (controller string, ok bool) {
	for _, m := range r.Masters {
		if controller != "" && m.Controller != controller {
			return "", false
		}
		controller = m.Controller
	}
	return controller, len(r.Masters) == n
}

// since returns when the last of n switches got a master other than a controller; false if some have not.
func since(r inmemory.Report, n int, other string) (at int64, ok bool) {
	for _, m := range r.Masters {
		if m.Controller == other {
			return 0, false
		}
		at = max(at, m.Since)
	}
	return at, len(r.Masters) == n
}

// startStanding starts traffic from each host to the one opposite, 200 datagrams a second each.
func (c *court) startStanding(ctx context.Context) (all []*stream, err error) {
	for n := range 4 {
		from, to := c.Node(hostName(n+1)), c.Node(hostName((n+2)%4+1))
		if p, err := ping(ctx, from, to, false); err != nil || !p.another {
			return all, errors.Join(fmt.Errorf("%s does not reach %s", from.Name, to.Name), err)
		}
		s, err := startUDP(ctx, from, to, 5001, 1, 5*time.Millisecond)
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (f reign) run(ctx context.Context, r *bench.Run) (err error) {
	c, err := holdCourt(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	streams, err := c.startStanding(ctx)
	defer func() {
		for _, s := range streams {
			_, _ = s.stop()
		}
	}()
	if err != nil {
		return err
	}
	if err := bench.Sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	leader, err := c.leader()
	if err != nil {
		return err
	}
	old := ""
	for at, one := range c.channel {
		if one == leader {
			old = at
		}
	}
	before, err := c.dump(ctx)
	if err != nil {
		return err
	}
	var first []uint32
	for _, s := range streams {
		first = append(first, s.sent.Load())
	}
	sheet, id := r.Sheet(bench.Ours), "leader/"+f.id
	began := traffic.MonotonicNow()
	if err := f.begin(ctx, c, leader); err != nil {
		return err
	}
	if err := bench.Sleep(ctx, bench.Pick(r.Quick, 8*time.Second, 15*time.Second)); err != nil {
		return err
	}
	during, err := c.child.Tell(inmemory.Order{Do: "look"})
	if err != nil {
		return err
	}
	if f.follows {
		if at, ok := since(during, watched.Switches, old); ok {
			sheet.Set(id+"/master", float64(at-began)/1e9)
		} else {
			sheet.Note(id+"/master", "not all switches have another master: %v", during.Masters)
		}
	}
	if err := f.end(ctx, c, leader); err != nil {
		return err
	}
	if err := bench.Sleep(ctx, bench.Pick(r.Quick, 2*time.Second, 10*time.Second)); err != nil {
		return err
	}
	// What follows the fault is in force, too.
	if err := c.shown(ctx, 20*time.Second); err != nil {
		return err
	}
	after, err := c.dump(ctx)
	if err != nil {
		return err
	}
	final, err := c.child.Tell(inmemory.Order{Do: "look"})
	if err != nil {
		return err
	}
	more, err := c.twoMasters(ctx)
	if err != nil {
		return err
	}
	missing, sent := 0, 0
	for i, s := range streams {
		got, err := s.stop()
		if err != nil {
			return err
		}
		n, _ := got.missing(first[i], s.sent.Load())
		missing, sent = missing+n, sent+int(s.sent.Load()-first[i])
	}
	streams = nil
	gone := fell(before, after)
	sheet.Set(id+"/lost", float64(missing))
	sheet.Note(id+"/lost", "of %d", sent)
	sheet.Set(id+"/counters", float64(len(gone)))
	sheet.Note(id+"/counters", "of %d flows; %d were written again", len(before), younger(before, after, time.Duration(traffic.MonotonicNow()-began)))
	for _, one := range gone[:min(len(gone), 5)] {
		sheet.Note(id+"/counters", "%s", one)
	}
	sheet.Set(id+"/two", float64(final.Two+more))
	sheet.Note(id+"/two", "of %d looks at three switches in memory, and one at the real ones", final.Looks)
	return ctx.Err()
}

// twoMasters returns how many controllers are masters beyond one for each real switch, as Open vSwitch's database says.
func (c *court) twoMasters(ctx context.Context) (int, error) {
	out, err := c.switches(ctx, "ovs-vsctl", "--db="+c.SwitchesDatabase(), "--timeout=10", "--format=csv", "--no-headings", "--columns=role", "list", "controller")
	return max(countWord(out, "master")-len(c.Topology.Switches), 0), err
}
