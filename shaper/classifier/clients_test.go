package classifier

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"headgate/group"
)

func eachTree(counts map[string]int, order []string) (t group.Tree) {
	for _, path := range order {
		n := group.Node{Path: path, Parent: -1, Depth: 1, Leaf: true}
		if counts[path] > 0 {
			n.Clients = group.Clients{Each: group.Each{IPv4: 32, IPv6: 64}, Most: counts[path]}
		}
		t.Nodes = append(t.Nodes, n)
	}
	return t
}

// Through any changes of groups, places are as many as are wanted, nobody else's, and stay where
// their number stays; a group that comes gets none that another had just now, if there are others.
func TestPlacesOf(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		var have map[string]Places
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			counts, left := map[string]int{}, group.MaxClients
			for _, name := range names {
				if rapid.Bool().Draw(t, "there") {
					counts[name] = rapid.IntRange(1, max(1, min(left, 9000))).Draw(t, "clients")
					left -= counts[name]
				}
				if left < 1 {
					break
				}
			}
			now, err := PlacesOf(eachTree(counts, names), have)
			if err != nil {
				if !strings.Contains(err.Error(), "lower clients, or clear the device") {
					t.Fatal(err)
				}
				have = nil // as clear leaves it
				continue
			}
			taken := map[uint16]string{}
			for name, p := range now {
				if int(p.Count) != counts[name] || p.First < FirstClient || p.end() > lastClient+1 {
					t.Fatalf("%s has %+v for %d clients", name, p, counts[name])
				}
				for i := range p.Count {
					if other := taken[p.First+i]; other != "" {
						t.Fatalf("%x is of %s and of %s", p.First+i, other, name)
					}
					taken[p.First+i] = name
				}
				if old, ok := have[name]; ok && old.Count == p.Count && old != p {
					t.Fatalf("%s moved from %+v to %+v", name, old, p)
				}
			}
			for name := range counts {
				if now[name].Count == 0 {
					t.Fatalf("%s has no places", name)
				}
			}
			have = now
		}
	})
	first, err := PlacesOf(eachTree(map[string]int{"a": 100}, names), nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := PlacesOf(eachTree(map[string]int{"b": 100}, names), first)
	if err != nil || second["b"] != (Places{FirstClient + 100, 100}) {
		t.Errorf("in the place of %v come %v, %v", first, second, err)
	}
}

// The masks that the classifier has give the prefix that people see.
func TestClientMasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := group.Each{IPv4: uint8(rapid.IntRange(1, 32).Draw(t, "IPv4")), IPv6: uint8(rapid.IntRange(1, 128).Draw(t, "IPv6"))}
		g := clientGroupOf(e, Places{FirstClient, 1})
		bytes := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")
		for _, a := range []netip.Addr{netip.AddrFrom4([4]byte(bytes[:4])), netip.AddrFrom16([16]byte(bytes))} {
			key := clientKey{Family: 6}
			if a.Is4() {
				key.Family = 4
				for i, b := range a.AsSlice() {
					key.Address[12+i] = b & g.Mask4[i]
				}
			} else {
				for i, b := range a.AsSlice() {
					key.Address[i] = b & g.Mask6[i]
				}
			}
			if got, want := key.prefix(e), e.Client(group.Packet{Src: a, Dst: a}); got != want && !a.Is4In6() {
				t.Fatalf("%v: %v, want %v", a, got, want)
			}
		}
	})
}
