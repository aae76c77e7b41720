package host

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/lab/labtest"
)

// Sets change while they run. Unchanged ones keep what they learned, and connections move
// as the new rules say.
func TestChange(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := "/" + filepath.Base(labtest.Cgroup(t))
	var ports [3]uint16
	var conns [3]*net.TCPConn
	for i := range conns {
		conns[i], _ = pipe(t, "127.0.0.1:0")
		ports[i] = uint16(conns[i].RemoteAddr().(*net.TCPAddr).Port)
	}
	db := func(weights ...float64) collective.Policy {
		p := collective.Policy{Name: "db", Cgroup: cgroup}
		for i, w := range weights {
			p.Rules = append(p.Rules, dport(ports[i], w))
		}
		return p
	}
	other := collective.Policy{Name: "other", Cgroup: cgroup, Rules: []collective.Rule{dport(ports[2], 0)}}
	r := run(t, instance(), 64, db(0, 0), other)
	// where waits for the number of connections of each set, in order, and returns the
	// total of the weights in db.
	where := func(what string, want ...int) (weights float64) {
		t.Helper()
		states := r.wait(t, what, func(states []State) bool {
			speak(t, conns[:]...)
			for i, n := range want {
				if len(states) != len(want) || len(states[i].Connections) != n {
					return false
				}
			}
			return true
		})
		for _, c := range states[0].Connections {
			weights += c.Weight
		}
		return weights
	}
	change := func(policies ...collective.Policy) map[string]error {
		t.Helper()
		errs, err := r.Change(policies)
		if err != nil {
			t.Fatal(err)
		}
		return errs
	}
	none := func(errs map[string]error) {
		t.Helper()
		if len(errs) > 0 {
			t.Errorf("change failed: %v", errs)
		}
	}
	cycles := func() (all []control) {
		r.requests.Do(func() {
			for _, s := range r.sets {
				for _, p := range s.parts {
					all = append(all, p.control)
				}
			}
		})
		return all
	}
	where("at first", 2, 1)
	before := cycles()
	none(change(db(1, 2), other))
	if w := where("with weights", 2, 1); w != 3 {
		t.Errorf("total weight is %v, want 3", w)
	}
	if now := cycles(); now[0] != before[0] || now[1] != before[1] {
		t.Error("a change of weights discards what was learned")
	}
	wide := other
	wide.Rules = append([]collective.Rule{dport(ports[1], 0)}, other.Rules...)
	none(change(db(4), wide))
	if w := where("one connection moves", 1, 2); w != 4 {
		t.Errorf("total weight is %v, want 4", w)
	}
	if now := cycles(); now[0] != before[0] || now[1] != before[1] {
		t.Error("a change of rules discards what was learned")
	}
	bad := db(4)
	bad.Join = []string{"headgate-no-such"}
	if errs := change(bad, wide); len(errs) != 1 || errs["db"] == nil || !strings.Contains(errs["db"].Error(), "cannot resolve user") {
		t.Errorf("unknown user: %v", errs)
	}
	where("unchanged after the error", 1, 2)
	none(change(db(4)))
	where("without the other set", 1)
	none(change(db(4), other))
	where("with the other set again", 1, 1)
	each := db(4)
	each.PerDestination = true
	none(change(each, other))
	where("by destination", 1, 1)
	none(change(other))
	where("without the first set", 1)
}
