package htb_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// sizes returns a device's gso_max_size and gro_max_size.
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

// TestSuperPacketSizes: a device's super-packet limits follow the shaping limit, and are
// restored when the device is no longer shaped.
func TestSuperPacketSizes(t *testing.T) {
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

	// A value that another program has set since is left unchanged.
	apply(50*unit.Mbit, "")
	labtest.Run(t, node, "ip", "link", "set", "router", "gso_max_size", "20000")
	apply(50*unit.Mbit, "")
	expect("set by another program", 20000, 13*1550)
	apply(100*unit.Mbit, "")
	expect("left unchanged", 20000, 25*1550)
	clear()
	expect("cleared afterwards", 20000, beforeGRO)
}

// raiseMTU changes the MTU of all devices on the path.
func raiseMTU(t testing.TB, l *lab.Lab, mtu string) {
	for _, end := range [][2]string{{"server", "router"}, {"router", "server"}, {"router", "client"}, {"client", "router"}} {
		labtest.Run(t, l.Node(end[0]), "ip", "link", "set", end[1], "mtu", mtu)
	}
}

// TestMTURaised: traffic continues if the MTU is raised without an apply, and ceilings hold,
// also those of all clients together.
func TestMTURaised(t *testing.T) {
	type raised struct {
		way   string
		limit unit.Rate
		mtu   string
	}
	for _, c := range []raised{
		{"out", 50 * unit.Mbit, "9000"}, {"in", 50 * unit.Mbit, "9000"}, {"out to clients", 50 * unit.Mbit, "9000"}, {"in from clients", 50 * unit.Mbit, "9000"},
		{"out", 130 * unit.Mbit, "16000"}, {"out", 600 * unit.Mbit, "65535"}, {"in", 30 * unit.Mbit, "16000"}, {"guest", 50 * unit.Mbit, "65535"},
	} {
		side, clients, _ := strings.Cut(c.way, " ")
		t.Run(fmt.Sprintf("%s, %v, to %s", c.way, c.limit, c.mtu), func(t *testing.T) {
			labtest.Try(t, func(t *labtest.Check) {
				l := labtest.Rig(t, lab.RigOptions{})
				server := l.Node("server")
				tree := smallAndLarge(t, c.limit)
				if clients != "" {
					tree = eachTree(t, group.Direction{Limit: c.limit, Groups: []group.Group{
						{Name: "users", Default: true, Each: group.Each{Dst: side == "out", IPv4: 32, IPv6: 64}, Clients: 8},
					}}, side)
				}
				plan := shaper.Plan{Dev: "router", Out: tree}
				from, to := "server", "client"
				switch side {
				case "in":
					plan.Out, plan.In = nil, tree
					from, to = to, from
				case "guest": // packets that a guest sends arrive here
					plan.Perspective = group.Guest
					from, to = to, from
				}
				if err := server.Do(func() error { _, err := htb.New().Apply(plan); return err }); err != nil {
					t.Fatal(err)
				}
				raiseMTU(t, l, c.mtu)
				result, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{
					{Name: "tcp", From: from, To: to, Protocol: traffic.TCP, Congestion: "cubic", Schedule: traffic.Constant(traffic.Unlimited)},
				}, traffic.Options{Duration: 3 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				// Counted are bytes read, because the sender's segment size is not that of its
				// packets if the window is smaller than two of 64 KB.
				of := result.Flow("tcp").Between(time.Second, 3*time.Second)
				if got, limit := 8*float64(of.DeliveredBytes)/of.Seconds, float64(c.limit); got < 0.85*limit || got > 1.03*limit {
					t.Errorf("%.1f of %v", got/1e6, c.limit)
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

// TestMTURaisedHoldsRates: a group that sends frames of both lengths after the MTU was raised
// gets its guarantee and its ceiling once, not twice.
//
//	server (router: 40 Mbit/s, capped 10 to 20 %) == router == client
func TestMTURaisedHoldsRates(t *testing.T) {
	port := func(first, last uint16) []group.Selector {
		return []group.Selector{{DPort: []group.PortRange{{First: first, Last: last}}}}
	}
	tree, problems := group.Direction{Limit: 40 * unit.Mbit, Groups: []group.Group{
		{Name: "capped", Guarantee: group.Amount{Share: unit.Whole / 10}, Ceiling: group.Amount{Share: unit.Whole / 5}, Match: port(5001, 5002)},
		{Name: "guaranteed", Guarantee: group.Amount{Share: unit.Whole / 4}, Match: port(5003, 5003)},
		{Name: "rest", Default: true},
	}}.Resolve("out", true)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{})
		if err := l.Node("server").Do(func() error { _, err := htb.New().Apply(shaper.Plan{Dev: "router", Out: &tree}); return err }); err != nil {
			t.Fatal(err)
		}
		raiseMTU(t, l, "9000")
		flow := func(name string, port uint16, rate unit.Rate, payload int) traffic.Flow {
			return traffic.Flow{Name: name, From: "server", To: "client", Protocol: traffic.UDP, DstPort: port, Schedule: traffic.Constant(rate), Payload: payload}
		}
		result, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{
			flow("small", 5001, 12*unit.Mbit, 0), flow("large", 5002, 12*unit.Mbit, 8900), flow("guaranteed", 5003, 12*unit.Mbit, 8900), flow("rest", 5004, 50*unit.Mbit, 0),
		}, traffic.Options{Duration: 4 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		rate := func(name string) float64 {
			return result.Flow(name).Between(time.Second, 4*time.Second).DeliveredRate() / 1e6
		}
		if got := rate("small") + rate("large"); got > 8.3 {
			t.Errorf("%.1f Mbit/s at a ceiling of 8 Mbit/s", got)
		}
		if got := rate("guaranteed"); got < 9.7 {
			t.Errorf("%.1f Mbit/s at a guarantee of 10 Mbit/s", got)
		}
	})
}

// TestTCPBehindASmallGuarantee: TCP in a group with 1 % of 900 Mbit/s has no drops on an idle
// link.
func TestTCPBehindASmallGuarantee(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{})
		server, e := l.Node("server"), htb.New()
		if err := server.Do(func() error {
			_, err := e.Apply(shaper.Plan{Dev: "router", In: onePercent(t, 900*unit.Mbit)})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		result, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{
			{Name: "little", From: "client", To: "server", Protocol: traffic.TCP, Congestion: "cubic", DstPort: 5001, Schedule: traffic.Constant(600 * unit.Mbit)},
		}, traffic.Options{Duration: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		err = server.Do(func() error {
			st, err := e.Observe("router")
			if err == nil && st.In.Groups[0].Drops > 0 {
				t.Errorf("%d packets were dropped", st.In.Groups[0].Drops)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Flow("little").Between(time.Second, 3*time.Second).DeliveredRate(); got < 570e6 {
			t.Errorf("%.0f of 600 Mbit/s were delivered", got/1e6)
		}
	})
}

// TestDeviceChanges: changes of a shaped device by other programs, without an agent, neither
// stop traffic nor lift the limit.
//
//	server (router) == router == client
func TestDeviceChanges(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	server, e := l.Node("server"), htb.New()
	const limit = 20 * unit.Mbit
	tree := smallAndLarge(t, limit)
	if err := server.Do(func() error { _, err := e.Apply(shaper.Plan{Dev: "router", Out: tree, In: tree}); return err }); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		"ip link set router txqueuelen 0", "ip link set router txqueuelen 1", "ethtool -K router tso off gso off gro off", "ethtool -K router tso on gso on gro on",
		"ethtool -K router tx off", "ip link set router gso_max_size 65536", "ip link property add dev router altname uplink0",
		"ip link set router address 02:00:00:00:77:01", "ip link set router mtu 1400", "ip link set router mtu 1500", "ip link set router promisc on",
	} {
		t.Run(change, func(t *testing.T) {
			words := strings.Fields(change)
			labtest.Run(t, server, words[0], words[1:]...)
			labtest.Run(t, l.Node("router"), "ip", "neigh", "flush", "all")
			labtest.Try(t, func(t *labtest.Check) {
				flow := func(name, from, to string) traffic.Flow {
					return traffic.Flow{Name: name, From: from, To: to, Protocol: traffic.TCP, Congestion: "cubic", Schedule: traffic.Constant(traffic.Unlimited)}
				}
				result, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{flow("out", "server", "client"), flow("in", "client", "server")}, traffic.Options{Duration: 1500 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"out", "in"} {
					if got := result.Flow(name).Between(500*time.Millisecond, 1500*time.Millisecond).DeliveredRate(); got < 0.8*float64(limit) || got > 1.05*float64(limit) {
						t.Errorf("%s: %.1f of %v", name, got/1e6, limit)
					}
				}
			})
		})
	}
}
