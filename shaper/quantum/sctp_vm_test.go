//go:build vm

package quantum

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// TestSCTP is the seed's experiment with its own transport: four SCTP associations in groups of
// 10, 20, 30 and 40 % of 100,000 bytes of payload per second, which all offer 30 %.
//
//	client ── router ── server, which is limited
//
// The seed has 10.9, 19.5, 30.0 and 30.0 kB/s with the limiter at the sender. Headgate was
// measured with 11.0, 19.5, 30.0 and 30.0, and once 11.2, 17.7, 30.2 and 30.0. An emulated
// processor cannot guarantee these figures, so the test requires four fifths of each guarantee
// and that the limit is kept. Chapter VII found no significant impact of ECN, which SCTP
// enables by default. The same was measured here: 90.5 kB/s in total with ECN and 90.8 without.
func TestSCTP(t *testing.T) {
	const limit = 800 * unit.Kbit
	type found struct {
		sum     float64
		dropped uint64
	}
	var mu sync.Mutex
	all := map[[2]bool]found{} // by direction and ECN
	t.Run("all", func(t *testing.T) {
		for _, c := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			t.Run(fmt.Sprintf("in=%v,ecn=%v", c[0], c[1]), func(t *testing.T) {
				t.Parallel() // each takes 24 s and a hundredth of the emulated machine's capacity
				labtest.Try(t, func(check *labtest.Check) {
					sum, dropped := sctpGroups(t, check, limit, c[0], map[bool]string{false: "0", true: "1"}[c[1]])
					mu.Lock()
					all[c] = found{sum, dropped}
					mu.Unlock()
				})
			})
		}
	})
	for _, in := range []bool{false, true} {
		with, without := all[[2]bool{in, true}], all[[2]bool{in, false}]
		t.Logf("in=%v: %.1f kB/s with ECN and %.1f without; %d and %d packets dropped", in, with.sum, without.sum, with.dropped, without.dropped)
		if with.sum < 0.85*without.sum || with.sum > 1.15*without.sum {
			t.Errorf("in=%v: ECN has an impact: %.1f kB/s with it, %.1f without", in, with.sum, without.sum)
		}
	}
}

func sctpGroups(t *testing.T, c *labtest.Check, limit unit.Rate, in bool, ecn string) (sum float64, dropped uint64) {
	r := rig{t, labtest.Rig(t, lab.RigOptions{})}
	server, client := r.Node("server"), r.Node("client")
	labtest.Run(t, server, "modprobe", "sctp") // the setting does not exist before
	for _, n := range []*lab.Node{server, client} {
		labtest.Run(t, n, "sysctl", "-qw", "net.sctp.ecn_enable="+ecn)
	}
	d := group.Direction{Limit: limit}
	for i := range 4 {
		port := uint16(firstPort + i)
		d.Groups = append(d.Groups, group.Group{
			Name: fmt.Sprintf("g%d", i), Default: i == 0, Guarantee: group.Amount{Share: unit.Share(10*(i+1)) * unit.Whole / 100},
			Match: []group.Selector{{Proto: []uint8{group.SCTP}, DPort: []group.PortRange{{First: port, Last: port}}}},
		})
	}
	resolved, problems := d.Resolve("out", true)
	for _, p := range problems {
		t.Fatal(p)
	}
	plan := shaper.Plan{Dev: "router", Perspective: group.Host}
	from, to := server, client
	if in {
		plan.In, from, to = &resolved, client, server
	} else {
		plan.Out = &resolved
	}
	r.apply(plan)
	// The limit counts payload; a frame is larger.
	offered := unit.Rate(float64(limit) * 0.3 * labtest.SCTPFrame / labtest.SCTPMessage)
	var list []*labtest.Association
	for i := range 4 {
		list = append(list, labtest.Associate(t, from, to, firstPort+i, offered))
	}
	time.Sleep(4 * time.Second)
	st := r.observe()
	before := side(st, in)
	got, _ := labtest.Delivered(20*time.Second, list...)
	st = r.observe()
	after := side(st, in)
	for _, a := range list {
		a.Close()
	}
	marks := uint64(0)
	for i, rate := range got {
		payload := rate * labtest.SCTPMessage / labtest.SCTPFrame
		sum += payload / 8000
		owed := float64(limit) * min(float64(i+1)/10, 0.3)
		g, was := after.Groups[i], before.Groups[i]
		lost := g.Drops - was.Drops
		dropped, marks = dropped+lost, marks+g.Marks-was.Marks
		t.Logf("%s: %.1f kB/s, expected %.1f; %d dropped, %d marked, actual limit %v, %s", g.Path, payload/8000, owed/8000, lost, g.Marks-was.Marks, g.Quantum.Actual, g.Quantum.Mode)
		if payload < 0.8*owed {
			c.Errorf("%s has %.1f kB/s, want %.1f", g.Path, payload/8000, owed/8000)
		}
		if i < 2 && lost == 0 {
			c.Errorf("%s offers more than its guarantee, but has no drops", g.Path)
		}
	}
	if sum > 1.05*float64(limit)/8000 {
		c.Errorf("the total is %.1f kB/s of %.1f", sum, float64(limit)/8000)
	}
	// If the associations did not negotiate ECN, Linux's SCTP still sends packets as
	// ECN-capable, but does not respond to marks.
	if ecn == "1" && marks == 0 {
		c.Errorf("no packet is marked in 20 s at 120 %% of the limit")
	}
	if q := after.Quantum; q.Resets == before.Quantum.Resets || q.Mode != shaper.Enforcement {
		c.Errorf("at 120 %% of its limit the direction was not reset in 20 s, or is not in enforcement mode: %+v", *q)
	}
	if s := strings.TrimSpace(labtest.Run(t, server, "sysctl", "-n", "net.sctp.ecn_enable")); s != ecn {
		t.Fatalf("net.sctp.ecn_enable is %s", s)
	}
	return sum, dropped
}

func side(st shaper.State, in bool) shaper.DirectionState {
	if in {
		return *st.In
	}
	return *st.Out
}
