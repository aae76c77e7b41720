package htb

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/bpfobj"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/unit"
)

// kernelHas returns the traffic control of all devices, and the devices, as printed by tc and
// ip. Classes of fq_codel are omitted, because they exist only while a queue is in use.
func (r *upgradeRig) kernelHas() string {
	r.Helper()
	text := labtest.Run(r.T, r.server, "sh", "-c", `for d in $(ip -o link 2>&1 | sed -n 's/^[0-9]*: \([^:@]*\).*/\1/p'); do
		tc -d qdisc show dev $d; tc -d class show dev $d; tc -d filter show dev $d ingress; tc -d filter show dev $d egress; ip -d link show $d; done 2>&1`)
	return regexp.MustCompile(` refcnt \d+|Error: Peer netns reference is invalid.\n|class fq_codel .*\n`).ReplaceAllString(text, "")
}

// applyWith applies the plan with a modified transition.
func (r *upgradeRig) applyWith(p shaper.Plan, change func(*transition)) error {
	return r.server.Do(func() error {
		return with(p.Dev, func(c *nl.Conn, k *kernel) error {
			m, err := newTransition(k, p)
			if err != nil {
				return err
			}
			change(m)
			return m.make(c)
		})
	})
}

// impossible adds a request that every kernel rejects.
func impossible(m *transition, side int) {
	m.sides[side].set = append(m.sides[side].set, step{add: func(b *nl.Batch, ifindex int) { b.DeleteClass(ifindex, nl.MakeHandle(major, lastMinor)) }})
}

// overtake adds a foreign filter in the place of Headgate's.
func (r *upgradeRig) overtake(side int) {
	r.Helper()
	hook := [2]string{"egress", "ingress"}[side]
	labtest.Run(r.T, r.server, "tc", "qdisc", "add", "dev", shaped, "clsact")
	labtest.Run(r.T, r.server, "tc", strings.Fields("filter add dev "+shaped+" "+hook+" pref 1 protocol all u32 match u32 0 0 classid 7:7")...)
}

// TestRefusedRequest: a batch in which one request fails is rolled back. Packets take their
// previous path, nothing remains on a device that was not shaped before, and the next Apply
// succeeds once the cause is gone.
func TestRefusedRequest(t *testing.T) {
	r := newUpgradeRig(t)
	plan := func(out, in unit.Rate) shaper.Plan {
		return shaper.Plan{Dev: shaped, Perspective: group.Host, Out: fourGroups(t, out), In: fourGroups(t, in)}
	}
	first, second := plan(100*unit.Mbit, 80*unit.Mbit), plan(60*unit.Mbit, 40*unit.Mbit)
	// A new limit needs a new program; a new guarantee needs only a new record.
	amounts := plan(100*unit.Mbit, 80*unit.Mbit)
	amounts.Out.Nodes[1].Guarantee -= unit.Mbit
	amounts.In.Nodes[1].Guarantee -= unit.Mbit
	onlyOut := plan(60*unit.Mbit, unit.Mbit)
	onlyOut.In = nil
	pristine := r.kernelHas()
	for _, c := range []struct {
		name   string
		change func(*transition)
	}{
		{"a request for out", func(m *transition) { impossible(m, egress) }},
		{"a request for in", func(m *transition) { impossible(m, ingress) }},
	} {
		check := func(what string, p shaper.Plan, before string) {
			t.Helper()
			err := r.applyWith(p, c.change)
			if err == nil || !strings.Contains(err.Error(), "device "+shaped+" was rolled back: cannot remove the class 4847:3ffe") {
				t.Errorf("%s, %s is refused: %v", what, c.name, err)
			}
			if after := r.kernelHas(); after != before {
				t.Errorf("%s, %s is refused: before:\n%s\nafter:\n%s", what, c.name, before, after)
			}
			r.passes(what + ", " + c.name + " is refused")
		}
		check("the first apply", first, pristine)
		r.apply(first)
		before := r.kernelHas()
		for what, next := range map[string]shaper.Plan{"a change of the limit": second, "a change of amounts": amounts, "one direction removed": onlyOut} {
			if next.In == nil && c.name == "a request for in" {
				continue
			}
			check(what, next, before)
			if st := r.observe(); !st.Plan.Equal(first) || len(st.Drift) > 0 {
				t.Errorf("%s, %s is refused: in force is %+v, drift %v", what, c.name, st.Plan, st.Drift)
			}
		}
		r.apply(second)
		if st := r.observe(); !st.Plan.Equal(second) || len(st.Drift) > 0 {
			t.Errorf("after the successful apply: plan %+v, drift %v", st.Plan, st.Drift)
		}
		r.passes("then applied")
		r.do(func() error { return r.engine.Clear(shaped) })
		if after := r.kernelHas(); after != pristine {
			t.Errorf("before all:\n%s\nafter clear:\n%s", pristine, after)
		}
	}
}

// TestRefusedFilter: another program adds a filter in the place of Headgate's between the read
// of the device state and the batch, so that Headgate's filter is rejected.
func TestRefusedFilter(t *testing.T) {
	r := newUpgradeRig(t)
	plan := shaper.Plan{Dev: shaped, Perspective: group.Host, Out: fourGroups(t, 100*unit.Mbit), In: fourGroups(t, 80*unit.Mbit)}
	pristine := r.kernelHas()
	for _, side := range []int{egress, ingress} {
		err := r.applyWith(plan, func(*transition) { r.overtake(side) })
		if err == nil || !strings.Contains(err.Error(), "was rolled back: cannot attach headgate") {
			t.Errorf("side %d: %v", side, err)
		}
		if got := r.kernelHas(); strings.Contains(got, "htb") || strings.Contains(got, "hgi") || strings.Contains(got, " bpf ") || !strings.Contains(got, "pref 1 u32") {
			t.Errorf("side %d: a Headgate object is left, or the foreign filter is missing:\n%s", side, got)
		}
		r.passes("a refused filter")
		labtest.Run(t, r.server, "tc", "qdisc", "del", "dev", shaped, "clsact")
		if got := r.kernelHas(); got != pristine {
			t.Errorf("side %d: before:\n%s\nafter:\n%s", side, pristine, got)
		}
		r.apply(plan)
		r.passes("then applied")
		r.do(func() error { return r.engine.Clear(shaped) })
	}
}

// TestInForce: the description of the state if a transition can be neither completed nor rolled
// back.
func TestInForce(t *testing.T) {
	r := newUpgradeRig(t)
	plan := func(out, in unit.Rate) shaper.Plan {
		return shaper.Plan{Dev: shaped, Perspective: group.Host, Out: fourGroups(t, out), In: fourGroups(t, in)}
	}
	says := func(m *transition, want string, made ...*classifier.Program) {
		t.Helper()
		if got := m.inForce([2]*classifier.Program(append(made, nil, nil)[:2])); got != want {
			t.Errorf("the state is described as %q, want %q", got, want)
		}
	}
	_ = r.applyWith(plan(100*unit.Mbit, 80*unit.Mbit), func(m *transition) { says(m, "out is not limited, in is not limited") })
	_ = r.applyWith(plan(60*unit.Mbit, 40*unit.Mbit), func(m *transition) {
		says(m, "out has its old groups, in has its old groups")
		labtest.Run(t, r.server, "tc", "class", "del", "dev", shaped, "classid", "4847:10")
		labtest.Run(t, r.server, "tc", "filter", "del", "dev", shaped, "ingress", "pref", "1")
		says(m, "out has its old rules and partly new queues, "+
			"in is not limited, and has unused queues")
		labtest.Run(t, r.server, "tc", "qdisc", "del", "dev", shaped, "root")
		says(m, "out has rules without queues, and is not limited, "+
			"in is not limited, and has unused queues")
	})
}

// TestRefusedLeaf: the kernel lacks the requested queues.
func TestRefusedLeaf(t *testing.T) {
	r := newUpgradeRig(t)
	plan := shaper.Plan{Dev: shaped, Perspective: group.Host, Out: fourGroups(t, 100*unit.Mbit), In: fourGroups(t, 80*unit.Mbit)}
	r.do(func() error {
		return with(shaped, func(_ *nl.Conn, k *kernel) error { k.flowQueues(); return nil })
	})
	if fqCodel.has {
		t.Log("this kernel has fq_codel, and rejects nothing")
		return
	}
	defer func() { fqCodel.has = false }()
	pristine := r.kernelHas()
	fqCodel.has = true
	err := r.server.Do(func() error { _, err := r.engine.Apply(plan); return err })
	if err == nil || !strings.Contains(err.Error(), "was rolled back") {
		t.Errorf("with queues that the kernel lacks: %v", err)
	}
	if got := r.kernelHas(); got != pristine {
		t.Errorf("before:\n%s\nafter:\n%s", pristine, got)
	}
	r.passes("refused queues")
	fqCodel.has = false
	r.apply(plan)
	r.passes("then applied")
}

// TestRefusedProgram: a classifier that the kernel rejects leaves no registration in the
// departure hook.
func TestRefusedProgram(t *testing.T) {
	r := newUpgradeRig(t)
	plan := shaper.Plan{Dev: shaped, Perspective: group.Host, Out: fourGroups(t, 100*unit.Mbit)}
	// A unique build, so that its hook knows no other devices.
	departures := append(bytes.Clone(_DeparturesBytes), 0)
	// The first "exit" becomes a jump to the next instruction.
	bad := bytes.Replace(_ClassifierBytes, []byte{0x95, 0, 0, 0, 0, 0, 0, 0}, []byte{0x05, 0, 0, 0, 0, 0, 0, 0}, -1)
	r.do(func() error {
		err := WithObjects(bad, departures, func() error { _, err := r.engine.Apply(plan); return err })
		if err == nil || !strings.Contains(err.Error(), "the kernel rejected") {
			t.Errorf("a program without an exit: %v", err)
		}
		return nil
	})
	dir, err := bpfobj.PinDir("headgate")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "departures-"+classifier.Build(departures), pinDevices)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the departure hook still knows the device: %v", err)
	}
}

// TestForget: assignments to a removed group are deleted after the removal, and not by a failed
// change. Leftovers of a killed process are deleted before a new group gets the class ID.
func TestForget(t *testing.T) {
	r := newUpgradeRig(t)
	plan := func(groups int) shaper.Plan {
		var list []group.Group
		for i := range groups {
			list = append(list, group.Group{Name: fmt.Sprintf("g%d", i), Default: i == 0, Guarantee: group.Amount{Share: unit.Whole / 10}})
		}
		tree, problems := group.Direction{Limit: 100 * unit.Mbit, Groups: list}.Resolve("out", true)
		for _, p := range problems {
			t.Fatal(p)
		}
		return shaper.Plan{Dev: shaped, Perspective: group.Host, Out: &tree}
	}
	assigned := func(what string, want int) {
		t.Helper()
		if got := r.observe().Out.Assigned; got != want {
			t.Errorf("%s: %d connections are assigned, not %d", what, got, want)
		}
	}
	r.apply(plan(3))
	r.do(func() error {
		return r.engine.Assign(shaped, []shaper.Assignment{{Conn: some(2)[0], Group: "g1"}, {Conn: some(2)[1], Group: "g2"}})
	})
	if err := r.applyWith(plan(2), func(m *transition) { impossible(m, egress) }); err == nil {
		t.Error("an impossible request succeeded")
	}
	assigned("after a failed change", 2)
	r.apply(plan(2))
	assigned("after the removal of a group", 1)

	// The state that a process leaves if it is killed just before DeleteStaleAssignments.
	left := func(id uint16) {
		t.Helper()
		r.do(func() error {
			return with(shaped, func(_ *nl.Conn, k *kernel) error {
				m := k.sides[egress].Maps[classifier.Assigned]
				for _, key := range classifier.Keys(some(2)[1]) {
					if err := m.Put(key, classifier.AssignedClass(id, false)); err != nil {
						return err
					}
				}
				return nil
			})
		})
		assigned("with leftovers", 2)
	}
	left(firstMinor + 2)
	r.apply(plan(2))
	assigned("applied again", 1)
	left(firstMinor + 2)
	r.apply(plan(3))
	if id := r.observe().Out.Groups[2].Class; id != nl.MakeHandle(major, firstMinor+2).String() {
		t.Fatalf("the new group has class %s: the test is not valid", id)
	}
	assigned("a new group", 1)
}

// TestAssignExactly: a connection is assigned to the group with exactly this path, in the
// directions that have it, and not to another group with the same last element.
func TestAssignExactly(t *testing.T) {
	r := newUpgradeRig(t)
	tree := func(where string, groups ...group.Group) *group.Tree {
		tree, problems := group.Direction{Limit: 100 * unit.Mbit, Groups: append(groups, group.Group{Name: "rest", Default: true})}.Resolve(where, true)
		for _, p := range problems {
			t.Fatal(p)
		}
		return &tree
	}
	web := group.Group{Name: "web"}
	r.apply(shaper.Plan{Dev: shaped, Perspective: group.Host, Out: tree("out", web), In: tree("in", group.Group{Name: "b", Groups: []group.Group{web}})})
	r.do(func() error { return r.engine.Assign(shaped, []shaper.Assignment{{Conn: some(1)[0], Group: "web"}}) })
	if now := r.observe(); now.Out.Assigned != 1 || now.In.Assigned != 0 {
		t.Errorf("assigned to out/web: %d assignments in out, %d in in", now.Out.Assigned, now.In.Assigned)
	}
	for _, path := range []string{"b", "none", ""} {
		err := r.server.Do(func() error { return r.engine.Assign(shaped, []shaper.Assignment{{Conn: some(1)[0], Group: path}}) })
		if err == nil || !strings.Contains(err.Error(), "has no leaf group") {
			t.Errorf("assigned to %q: %v", path, err)
		}
	}
}
