package htb

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// TestForeignIFBs: an IFB is recognized as Headgate's by its alias, not only by its name.
func TestForeignIFBs(t *testing.T) {
	node := labtest.Rig(t, lab.RigOptions{}).Node("server")
	ip := func(line string) string { t.Helper(); return labtest.Run(t, node, "ip", strings.Fields(line)...) }
	tree, problems := group.Direction{Limit: 10 * unit.Mbit, Groups: []group.Group{{Name: "all", Default: true}}}.Resolve("in", true)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	plan := shaper.Plan{Dev: "router", Perspective: group.Host, In: &tree}
	cycle := func() error {
		return node.Do(func() error {
			_, err := New().Apply(plan)
			return errors.Join(err, New().Clear("router"))
		})
	}
	there := func(name string) bool { return strings.Contains(ip("-br link"), name+" ") }

	for _, line := range []string{"hgi-mine", "hgi9mine", "hgi9997 up", "hgi9998", "hgi9999 up"} {
		ip("link add " + line + " type ifb")
	}
	labtest.Run(t, node, "ip", "link", "set", "hgi9999", "alias", ifbAlias("gone"))
	// Sweep returns the names of removed IFBs, and the next Sweep removes nothing.
	for _, want := range []string{"[hgi9998 hgi9999]", "[]"} {
		if err := node.Do(func() error {
			removed, err := New().Sweep()
			if fmt.Sprint(removed) != want {
				t.Errorf("swept %v, not %s", removed, want)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, stays := range map[string]bool{"hgi-mine": true, "hgi9mine": true, "hgi9997": true, "hgi9998": false, "hgi9999": false} {
		if there(name) != stays {
			t.Errorf("%s exists: %v", name, !stays)
		}
	}

	var own string
	err := node.Do(func() error {
		dev, err := net.InterfaceByName("router")
		if err == nil {
			own = fmt.Sprintf("hgi%d", dev.Index)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ip("link add " + own + " up type ifb")
	if err := cycle(); !errors.Is(err, shaper.ErrForeign) || !strings.Contains(err.Error(), own) || !there(own) {
		t.Errorf("with a foreign %s: %v", own, err)
	}
	ip("link set " + own + " down") // the state that addIFB of earlier versions leaves if it is killed
	if err := cycle(); err != nil || there(own) {
		t.Errorf("with an incomplete %s: %v", own, err)
	}
}

// passes sends a few packets in each direction, and fails if one is lost.
func (r *upgradeRig) passes(what string) {
	r.Helper()
	for node, to := range map[string]string{"server": "10.0.0.1", "client": "10.0.1.2"} {
		out, err := r.lab.Node(node).Command(r.Context(), "ping", "-q", "-c", "3", "-i", "0.02", "-W", "1", to).CombinedOutput()
		if err != nil {
			r.Errorf("%s: from %s to %s: %v\n%s", what, node, to, err, out)
		}
	}
}

// TestIFBDown: the IFB of a device is up from its creation. If another program sets it down,
// plan and Observe report a change, and the next Apply sets it up.
func TestIFBDown(t *testing.T) {
	r := newUpgradeRig(t)
	plan := shaper.Plan{Dev: shaped, Perspective: group.Host, In: fourGroups(t, 100*unit.Mbit)}
	r.apply(plan)
	r.passes("applied")
	var ifb string
	r.do(func() error {
		l, err := netlink.LinkByName(shaped)
		ifb = ifbName(l.Attrs().Index)
		return err
	})
	labtest.Run(t, r.server, "ip", "link", "set", ifb, "down")
	want := fmt.Sprintf("[change in device %s: down -> up]", ifb)
	if st := r.observe(); fmt.Sprint(st.Drift) != want {
		t.Errorf("Observe reports %v for an IFB that is down, want %s", st.Drift, want)
	}
	if changes := r.apply(plan); fmt.Sprint(changes) != want {
		t.Errorf("Apply makes the changes %v", changes)
	}
	r.passes("set up again")
	if st := r.observe(); len(st.Drift) > 0 {
		t.Errorf("drift after the repair: %v", st.Drift)
	}

	// The state that a process leaves if it is killed after it has created the IFB.
	r.do(func() error { return r.engine.Clear(shaped) })
	r.do(func() error {
		return with(shaped, func(c *nl.Conn, k *kernel) error {
			if err := k.addIFB(c); err != nil {
				return err
			}
			if !isUp(k.sides[ingress].qdisc) || k.sides[ingress].qdisc.Attrs().Alias != ifbAlias(shaped) {
				t.Errorf("a new IFB is %+v", k.sides[ingress].qdisc.Attrs())
			}
			return nil
		})
	})
	r.passes("with an unused IFB")
	r.apply(plan)
	r.passes("applied again")
}
