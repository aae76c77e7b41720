package classifier

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/group"
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

// TestPlacesOf: after any sequence of changes, each group has the configured number of places,
// no two groups share a place, and ranges of unchanged size do not move. A new group gets no
// place that another group had just before, if others are free.
func TestPlacesOf(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		var have map[string]ClientRange
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
			now, err := AllocateClientRanges(eachTree(counts, names), have)
			if err != nil {
				if !strings.Contains(err.Error(), "lower clients, or clear the device") {
					t.Fatal(err)
				}
				have = nil // as after clear
				continue
			}
			taken := map[uint16]string{}
			for name, p := range now {
				if int(p.Count) != counts[name] || p.First < FirstClient || p.end() > lastClient+1 {
					t.Fatalf("%s has %+v for %d clients", name, p, counts[name])
				}
				for i := range p.Count {
					if other := taken[p.First+i]; other != "" {
						t.Fatalf("place %x belongs to %s and to %s", p.First+i, other, name)
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
	first, err := AllocateClientRanges(eachTree(map[string]int{"a": 100}, names), nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := AllocateClientRanges(eachTree(map[string]int{"b": 100}, names), first)
	if err != nil || second["b"] != (ClientRange{FirstClient + 100, 100}) {
		t.Errorf("after %v: got %v, %v", first, second, err)
	}
}

// TestClientMasks: the classifier's masks give the displayed prefix.
func TestClientMasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := group.Each{IPv4: uint8(rapid.IntRange(1, 32).Draw(t, "IPv4")), IPv6: uint8(rapid.IntRange(1, 128).Draw(t, "IPv6"))}
		g := clientGroupOf(e, ClientRange{FirstClient, 1})
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
