package group

import (
	"slices"
	"testing"
)

// TestJoiners: users who may join a group may also join the groups below it.
func TestJoiners(t *testing.T) {
	d := Direction{Groups: []Group{
		{Name: "shop", Join: []string{"shop"}, Groups: []Group{
			{Name: "web"}, {Name: "backup", Join: []string{"1001"}},
		}},
		{Name: "rest", Default: true},
	}}
	for path, want := range map[string][]string{
		"shop": {"shop"}, "shop/web": {"shop"}, "shop/backup": {"shop", "1001"}, "rest": nil,
	} {
		if got, ok := d.Joiners(path); !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", path, got, ok, want)
		}
	}
	for _, path := range []string{"none", "shop/none", "web", "", "rest/web"} {
		if got, ok := d.Joiners(path); ok {
			t.Errorf("%q: got %v for a group that does not exist", path, got)
		}
	}
}

func TestCheckUser(t *testing.T) {
	for name, want := range map[string]bool{
		"backup": true, "_apt": true, "host$": true, "0": true, "4294967295": true,
		"4294967296": false, "-1": false, "two words": false, "": false, "1abc": false, "a/b": false,
	} {
		if err := CheckUser(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}
