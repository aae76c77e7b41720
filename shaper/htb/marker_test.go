package htb_test

import (
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// TestMarker runs the marker in the kernel, with two groups on 50 Mbit/s:
//
//	server == router == client
//	  groups small 20 %, large 80 %
//
// Rates are wire rates, and may be a tenth lower than ideal: the benchmark measures the exact
// rates.
func TestMarker(t *testing.T) {
	labtest.NeedRoot(t)
	const limit = 50 * unit.Mbit
	tcp := func(name string, port uint16, r unit.Rate) traffic.Flow {
		return traffic.Flow{Name: name, From: "server", To: "client", Protocol: traffic.TCP, Congestion: "cubic", DstPort: port, Schedule: traffic.Constant(r)}
	}
	datagrams := tcp("large", 5002, 60*unit.Mbit)
	datagrams.Protocol, datagrams.Congestion = traffic.UDP, ""
	for _, c := range []struct {
		name   string
		rtt    time.Duration
		flows  []traffic.Flow
		least  map[string]unit.Rate
		marked map[string]bool // whether a group must have marks
		drops  bool
		gso    group.GSO
	}{
		{"a full group has marks instead of drops", time.Millisecond, []traffic.Flow{tcp("small", 5001, traffic.Unlimited)},
			map[string]unit.Rate{"small": limit * 9 / 10}, map[string]bool{"small": true}, false, ""},
		{"a longer path stays full", 20 * time.Millisecond, []traffic.Flow{tcp("small", 5001, traffic.Unlimited)},
			map[string]unit.Rate{"small": limit * 9 / 10}, map[string]bool{"small": true}, false, ""},
		{"groups that compete keep their guarantees", time.Millisecond,
			[]traffic.Flow{tcp("small", 5001, traffic.Unlimited), tcp("large", 5002, traffic.Unlimited)},
			map[string]unit.Rate{"small": 9 * unit.Mbit, "large": 36 * unit.Mbit}, map[string]bool{"small": true}, false,
			// With packets sized to the limit, the host's TCP has two packets in the queue,
			// which is never too long.
			group.KeepGSO},
		{"a group below its limit has no marks", time.Millisecond, []traffic.Flow{tcp("large", 5002, 20*unit.Mbit)},
			map[string]unit.Rate{"large": 18 * unit.Mbit}, map[string]bool{"large": false}, false, ""},
		{"packets that are not ECN-capable are dropped", time.Millisecond, []traffic.Flow{datagrams},
			map[string]unit.Rate{"large": limit * 9 / 10}, map[string]bool{"large": false}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			labtest.Try(t, func(t *labtest.Check) {
				l := labtest.Rig(t, lab.RigOptions{RTT: c.rtt, Sysctl: map[string]string{"net.ipv4.tcp_ecn": "1"}})
				e := htb.New()
				plan := shaper.Plan{Dev: "router", Perspective: group.Host, Out: smallAndLarge(t, limit), GSO: c.gso}
				if err := l.Node("server").Do(func() error { _, err := e.Apply(plan); return err }); err != nil {
					t.Fatal(err)
				}
				const settle, all = time.Second, 4 * time.Second
				result, err := traffic.Run(t.Context(), l.Host, c.flows, traffic.Options{Duration: all})
				if err != nil {
					t.Fatal(err)
				}
				for name, least := range c.least {
					if got := result.Flow(name).Between(settle, all).DeliveredRate(); got < float64(least) {
						t.Errorf("%s: %.1f Mbit/s delivered, want at least %v", name, got/1e6, least)
					}
				}
				var st shaper.State
				if err := l.Node("server").Do(func() (err error) { st, err = e.Observe("router"); return err }); err != nil {
					t.Fatal(err)
				}
				for _, g := range st.Out.Groups {
					if want, named := c.marked[g.Path]; named && (g.Marks > 0) != want {
						t.Errorf("%s: %d packets marked, want some: %v", g.Path, g.Marks, want)
					}
					if want := c.drops && g.Path == "large"; (g.Drops > 0) != want {
						t.Errorf("%s: %d packets dropped, want some: %v", g.Path, g.Drops, want)
					}
				}
				for _, f := range c.flows {
					want, named := c.marked[f.Name]
					if ce := result.Flow(f.Name).Total.DeliveredCE; named && f.Protocol == traffic.TCP && (ce > 0) != want {
						t.Errorf("%s: the receiver saw %d marks, want some: %v", f.Name, ce, want)
					}
				}
			})
		})
	}
}

func smallAndLarge(t testing.TB, limit unit.Rate) *group.Tree {
	port := func(p uint16) []group.Selector {
		return []group.Selector{{DPort: []group.PortRange{{First: p, Last: p}}}}
	}
	tree, problems := group.Direction{Limit: limit, Groups: []group.Group{
		{Name: "small", Guarantee: group.Amount{Share: 200_000}, Match: port(5001), Default: true},
		{Name: "large", Guarantee: group.Amount{Share: 800_000}, Match: port(5002)},
	}}.Resolve("out", true)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &tree
}
