package group

import (
	"encoding/json"
	"reflect"
	"testing"

	"headgate.dev/headgate/unit"
)

func nested() *Direction {
	return links(
		Group{Name: "acme", Guarantee: share(40), Ceiling: rate(500 * unit.Mbit), Match: []Selector{{Src: prefixes("10.1.0.0/16")}}, Groups: []Group{
			{Name: "vm", Guarantee: share(50), Groups: []Group{{Name: "web", Priority: 1}, {Name: "db", Default: true}}},
		}},
		rest,
	)
}

func TestEdit(t *testing.T) {
	d := nested()
	for path, want := range map[string]bool{"acme": true, "acme/vm/web": true, "acme/vm/": false, "": false, "vm": false, "acme/vm/web/x": false} {
		g := d.Find(path)
		if (g != nil) != want {
			t.Errorf("At(%q) is %v", path, g)
		}
		if _, name := Split(path); g != nil && g.Name != name {
			t.Errorf("At(%q) is called %q", path, g.Name)
		}
	}
	for _, c := range []struct {
		parent, name string
		want         bool
	}{{"acme/vm", "new", true}, {"acme/vm", "new", false}, {"", "acme", false}, {"", "other", true}, {"acme/x", "new", false}} {
		if got := d.Add(c.parent, Group{Name: c.name}); got != c.want {
			t.Errorf("Add %s to %q: %v, want %v", c.name, c.parent, got, c.want)
		}
	}
	if d.Find("acme/vm/new") == nil || d.Find("other") == nil {
		t.Error("an added group is missing")
	}
	for _, path := range []string{"acme/vm/new", "other"} {
		if !d.Remove(path) || d.Remove(path) {
			t.Errorf("Remove(%q) does not remove exactly once", path)
		}
	}
	if !reflect.DeepEqual(d, nested()) {
		t.Errorf("after the edits: %+v", d)
	}
}

func TestClone(t *testing.T) {
	d := nested()
	c := d.Clone()
	c.Find("acme/vm/web").Priority = 5
	c.Find("acme").Match[0] = Selector{VLAN: []Range{{1, 1}}}
	c.Remove("acme/vm/db")
	if !reflect.DeepEqual(d, nested()) {
		t.Errorf("changing the clone changed the original: %+v", d)
	}
	if (*Direction)(nil).Clone() != nil {
		t.Error("the clone of nil is not nil")
	}
}

// TestInterfaceJSON: an Interface survives a JSON round trip.
func TestInterfaceJSON(t *testing.T) {
	i := Interface{Dev: "veth*", Perspective: Guest, Overhead: Overhead{Frame: 8}, Out: nested()}
	text, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	var back Interface
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(i, back) {
		t.Errorf("%s reads back as %+v, %v", text, back, err)
	}
}
