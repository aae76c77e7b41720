package htb_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"headgate/group"
	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/traffic"
	"headgate/shaper"
	"headgate/shaper/htb"
	"headgate/unit"
)

// sizes are a device's gso_max_size and gro_max_size.
func sizes(t *testing.T, node *lab.Node) (gso, gro uint32) {
	t.Helper()
	if err := node.Do(func() error {
		l, err := netlink.LinkByName("router")
		if err == nil {
			gso, gro = l.Attrs().GSOMaxSize, l.Attrs().GROMaxSize
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return gso, gro
}

// A device's super-packets follow the limit, and are what they were when they are not
// limited any more.
func TestSuperPacketsFollowTheLimit(t *testing.T) {
	node := labtest.Rig(t, lab.RigOptions{}).Node("server")
	e := htb.New()
	beforeGSO, beforeGRO := sizes(t, node)
	apply := func(limit unit.Rate, gso group.GSO) []shaper.Change {
		t.Helper()
		tree := smallAndLarge(t, limit)
		var changes []shaper.Change
		if err := node.Do(func() (err error) {
			changes, err = e.Apply(shaper.Plan{Dev: "router", Out: tree, In: tree, GSO: gso})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return changes
	}
	clear := func() {
		t.Helper()
		if err := node.Do(func() error { return e.Clear("router") }); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, gso, gro uint32) {
		t.Helper()
		if isGSO, isGRO := sizes(t, node); isGSO != gso || isGRO != gro {
			t.Errorf("%s: gso_max_size %d, gro_max_size %d; want %d and %d", when, isGSO, isGRO, gso, gro)
		}
	}
	apply(50*unit.Mbit, "")
	expect("at 50 Mbit/s", 2*1448+384, 13*1550)
	if changes := apply(50*unit.Mbit, ""); len(changes) > 0 {
		t.Errorf("again: %v", changes)
	}
	apply(100*unit.Mbit, "")
	expect("at 100 Mbit/s", 3*1448+384, 25*1550)
	apply(10*unit.Gbit, "")
	expect("at 10 Gbit/s", beforeGSO, beforeGRO)
	apply(50*unit.Mbit, group.KeepGSO)
	expect("kept", beforeGSO, beforeGRO)
	apply(50*unit.Mbit, "")
	clear()
	expect("cleared", beforeGSO, beforeGRO)

	// What somebody else has set since is theirs.
	apply(50*unit.Mbit, "")
	labtest.Run(t, node, "ip", "link", "set", "router", "gso_max_size", "20000")
	apply(50*unit.Mbit, "")
	expect("set by somebody else", 20000, 13*1550)
	apply(100*unit.Mbit, "")
	expect("and left to them", 20000, 25*1550)
	clear()
	expect("cleared after that", 20000, beforeGRO)
}

// Nothing stops when the MTU is raised and nobody applies anew, and ceilings hold; those of clients
// for all of them together.
func TestMTURaised(t *testing.T) {
	for _, name := range []string{"out", "in", "out to clients", "in from clients"} {
		side, clients, _ := strings.Cut(name, " ")
		t.Run(name, func(t *testing.T) {
			labtest.Try(t, func(t *labtest.Check) {
				l := labtest.Rig(t, lab.RigOptions{})
				server := l.Node("server")
				tree := smallAndLarge(t, 50*unit.Mbit)
				if clients != "" {
					tree = eachTree(t, group.Direction{Limit: 50 * unit.Mbit, Groups: []group.Group{
						{Name: "users", Default: true, Each: group.Each{Dst: side == "out", IPv4: 32, IPv6: 64}, Clients: 8},
					}}, side)
				}
				plan := shaper.Plan{Dev: "router", Out: tree}
				from, to := "server", "client"
				if side == "in" {
					plan.Out, plan.In = nil, tree
					from, to = to, from
				}
				if err := server.Do(func() error { _, err := htb.New().Apply(plan); return err }); err != nil {
					t.Fatal(err)
				}
				for _, end := range [][2]string{{"server", "router"}, {"router", "server"}, {"router", "client"}, {"client", "router"}} {
					labtest.Run(t, l.Node(end[0]), "ip", "link", "set", end[1], "mtu", "9000")
				}
				result, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{
					{Name: "tcp", From: from, To: to, Protocol: traffic.TCP, Congestion: "cubic", Schedule: traffic.Constant(traffic.Unlimited)},
				}, traffic.Options{Duration: 3 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				if got := result.Flow("tcp").Between(time.Second, 3*time.Second).DeliveredRate(); got < 0.85*50e6 || got > 1.03*50e6 {
					t.Errorf("%.1f of 50 Mbit/s", got/1e6)
				}
				client, err := l.Node("client").Addr(false)
				if err != nil {
					t.Fatal(err)
				}
				labtest.Run(t, server, "ping", "-c", "2", "-i", "0.2", "-W", "1", "-M", "do", "-s", "8900", client.String())
			})
		})
	}
}
