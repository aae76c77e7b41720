package host

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"headgate/collective"
	"headgate/lab/labtest"
)

// Sets become others while they run: what is not concerned stays as it is, also what was learnt,
// and connections go where the rules say now.
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
	// where is how many connections each set has, in their order, and the weights in db.
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
		troubles, err := r.Change(policies)
		if err != nil {
			t.Fatal(err)
		}
		return troubles
	}
	none := func(troubles map[string]error) {
		t.Helper()
		if len(troubles) > 0 {
			t.Errorf("there are troubles: %v", troubles)
		}
	}
	cycles := func() (all []control) {
		r.asks.Do(func() {
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
		t.Errorf("the weights are %v in all, want 3", w)
	}
	if now := cycles(); now[0] != before[0] || now[1] != before[1] {
		t.Error("with other weights it learns anew")
	}
	wide := other
	wide.Rules = append([]collective.Rule{dport(ports[1], 0)}, other.Rules...)
	none(change(db(4), wide))
	if w := where("one goes over", 1, 2); w != 4 {
		t.Errorf("the weight is %v, want 4", w)
	}
	if now := cycles(); now[0] != before[0] || now[1] != before[1] {
		t.Error("with other rules it learns anew")
	}
	bad := db(4)
	bad.Join = []string{"headgate-no-such"}
	if troubles := change(bad, wide); len(troubles) != 1 || troubles["db"] == nil || !strings.Contains(troubles["db"].Error(), "nobody joins") {
		t.Errorf("a user that is not there: %v", troubles)
	}
	where("it stays as it was", 1, 2)
	none(change(db(4)))
	where("the other is gone", 1)
	none(change(db(4), other))
	where("it is there again", 1, 1)
	each := db(4)
	each.PerDestination = true
	none(change(each, other))
	where("by destination", 1, 1)
	none(change(other))
	where("the first is gone", 1)
}
