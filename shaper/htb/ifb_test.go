package htb

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"headgate/group"
	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/shaper"
	"headgate/unit"
)

// TestOthersIFBs: an IFB is ours by its alias, not by its name alone.
func TestOthersIFBs(t *testing.T) {
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
	if err := cycle(); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{"hgi-mine": true, "hgi9mine": true, "hgi9997": true, "hgi9998": false, "hgi9999": false} {
		if there(name) != stays {
			t.Errorf("%s is there: %v", name, !stays)
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
		t.Errorf("with another's %s: %v", own, err)
	}
	ip("link set " + own + " down") // as addIFB leaves it if it is killed at once
	if err := cycle(); err != nil || there(own) {
		t.Errorf("with a half-made %s: %v", own, err)
	}
}
