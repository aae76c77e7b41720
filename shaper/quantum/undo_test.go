package quantum

import (
	"strings"
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/unit"
)

// TestRefusedFilter: another program adds a filter in the place of Headgate's between the read
// of the device state and the batch. The changes of the other direction are rolled back.
func TestRefusedFilter(t *testing.T) {
	server := labtest.Rig(t, lab.RigOptions{}).Node("server")
	tc := func(args string) string { t.Helper(); return labtest.Run(t, server, "tc", strings.Fields(args)...) }
	g := group.Group{Name: "all", Default: true, Guarantee: group.Amount{Rate: unit.Mbit}}
	tree, problems := group.Direction{Limit: unit.Mbit, Groups: []group.Group{g}}.Resolve("out", true)
	for _, p := range problems {
		t.Fatal(p)
	}
	plan := shaper.Plan{Dev: "router", Perspective: group.Host, Out: &tree, In: &tree}
	for _, hook := range []string{"egress", "ingress"} {
		err := server.Do(func() error {
			return with("router", func(c *nl.Conn, d *attach.Device) error {
				m, err := newTransition(d, plan)
				if err != nil {
					return err
				}
				tc("qdisc add dev router clsact")
				tc("filter add dev router " + hook + " pref 1 protocol all u32 match u32 0 0 classid 7:7")
				return m.make(c)
			})
		})
		if err == nil || !strings.Contains(err.Error(), "device router was rolled back: cannot attach headgate") {
			t.Errorf("%s: %v", hook, err)
		}
		all := tc("filter show dev router ingress") + tc("filter show dev router egress")
		if strings.Contains(all, " bpf ") || !strings.Contains(all, "pref 1 u32") {
			t.Errorf("%s: a Headgate filter is left, or the foreign filter is missing:\n%s", hook, all)
		}
		tc("qdisc del dev router clsact")
		if err := server.Do(func() error { _, err := New().Apply(plan); return err }); err != nil {
			t.Errorf("%s: second apply: %v", hook, err)
		}
		if err := server.Do(func() error { return New().Clear("router") }); err != nil {
			t.Error(err)
		}
	}
}
