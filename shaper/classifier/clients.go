package classifier

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/group"
)

// Clients of groups with each (bpf/client.h) occupy preallocated classes, called places. Their
// minor numbers are above those of groups.
const (
	FirstClient = 0x4000
	lastClient  = 0x7fff
)

// Names of the client maps.
const (
	Clients      = "clients"
	ClientPlaces = "client_places"
	clientGroups = "client_groups"
)

// clientNobody is FAMILY_NOBODY.
const clientNobody = 0xff

// clientKey is struct client_key.
type clientKey struct {
	Address [16]byte
	Group   uint16
	Family  uint8
	_       uint8
}

// clientPlace is struct client.
type clientPlace struct {
	LastNS, SinceNS, Bytes uint64
	Key                    clientKey
	Above                  uint32
	_                      [4]uint32
}

// clientGroup is struct client_group.
type clientGroup struct {
	Mask4        [4]byte
	Mask6        [16]byte
	Dst          uint32
	First, Count uint32
	Hand, Looked uint32
	FullUntilNS  uint64
}

// ClientRange is the range of minor numbers of a group's clients: Count numbers from First on.
type ClientRange struct{ First, Count uint16 }

// end returns the number after the last.
func (p ClientRange) end() int { return int(p.First) + int(p.Count) }

// AllocateClientRanges allocates the range of every group with clients, by path: the present one,
// extended or shortened at the end, or the first range that no group has now or had before.
func AllocateClientRanges(t group.Tree, have map[string]ClientRange) (map[string]ClientRange, error) {
	out := map[string]ClientRange{}
	var taken []ClientRange
	isFree := func(p ClientRange, among []ClientRange) bool {
		return p.end() <= lastClient+1 && !slices.ContainsFunc(among, func(o ClientRange) bool {
			return p.First < uint16(o.end()) && int(o.First) < p.end()
		})
	}
	var fresh []group.Node
	for _, n := range t.Nodes {
		if n.Clients.IsZero() {
			continue
		}
		fresh = append(fresh, n)
	}
	// First the groups whose ranges do not change, then those that grow or shrink.
	for _, sameSize := range []bool{true, false} {
		fresh = slices.DeleteFunc(fresh, func(n group.Node) bool {
			old, ok := have[n.Path]
			p := ClientRange{old.First, uint16(n.Clients.Most)}
			if !ok || sameSize && p != old || !isFree(p, taken) {
				return false
			}
			out[n.Path], taken = p, append(taken, p)
			return true
		})
	}
	var old []ClientRange
	for _, p := range have {
		old = append(old, p)
	}
	for _, n := range fresh {
		p, ok := gap(uint16(n.Clients.Most), slices.Concat(taken, old), isFree)
		if !ok { // reuse the range of a removed group
			p, ok = gap(uint16(n.Clients.Most), taken, isFree)
		}
		if !ok {
			return nil, fmt.Errorf("group %s: no free range for %d clients between those of other groups: lower clients, or clear the device first", n.Path, n.Clients.Most)
		}
		out[n.Path], taken = p, append(taken, p)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// gap returns the first free range of a size.
func gap(count uint16, among []ClientRange, isFree func(ClientRange, []ClientRange) bool) (ClientRange, bool) {
	starts := []uint16{FirstClient}
	for _, p := range among {
		if p.end() <= lastClient {
			starts = append(starts, uint16(p.end()))
		}
	}
	slices.Sort(starts)
	for _, first := range starts {
		if p := (ClientRange{first, count}); isFree(p, among) {
			return p, true
		}
	}
	return ClientRange{}, false
}

// LastPlace returns the highest minor number of all places plus one, or 0.
func LastPlace(places map[string]ClientRange) (last uint32) {
	for _, p := range places {
		last = max(last, uint32(p.end()))
	}
	return last
}

// ClientMaps lists the client maps: a program reuses all or none.
var ClientMaps = []string{Clients, ClientPlaces, clientGroups}

// SizeClients sets the sizes of the client maps.
func SizeClients(spec *ebpf.CollectionSpec, places map[string]ClientRange) {
	if last := LastPlace(places); last > 0 && spec.Maps[Clients] != nil {
		spec.Maps[ClientPlaces].MaxEntries = last - FirstClient
		spec.Maps[Clients].MaxEntries = 2 * (last - FirstClient)
		spec.Maps[clientGroups].MaxEntries = spec.Maps[Counters].MaxEntries
	}
}

// FillClients writes groups and their places into the new maps of a program. above returns the
// parent classes of a node's clients (bpf/queue.h, STAMP_LEVELS).
func FillClients(maps map[string]*ebpf.Map, t group.Tree, r Record, above func(node int) uint32) error {
	var minors, indices []uint32
	var groups []clientGroup
	var empty []clientPlace
	for node, n := range t.Nodes {
		p, ok := r.Places[n.Path]
		if !ok {
			continue
		}
		levels := above(node)
		g := clientGroupOf(n.Clients.Each, p)
		minors, groups = append(minors, uint32(r.Class(n))), append(groups, g)
		for i := range uint32(p.Count) {
			indices = append(indices, g.First+i-FirstClient)
			empty = append(empty, clientPlace{Key: clientKey{Group: r.Class(n), Family: clientNobody}, Above: levels})
		}
	}
	err := PutAll(maps[clientGroups], minors, groups)
	if err == nil {
		err = PutAll(maps[ClientPlaces], indices, empty)
	}
	if err != nil {
		return fmt.Errorf("cannot write the client maps: %w", err)
	}
	return nil
}

func clientGroupOf(e group.Each, p ClientRange) clientGroup {
	g := clientGroup{First: uint32(p.First), Count: uint32(p.Count)}
	binary.BigEndian.PutUint32(g.Mask4[:], ^uint32(0)<<(32-e.IPv4))
	for bit := range e.IPv6 {
		g.Mask6[bit/8] |= 0x80 >> (bit % 8)
	}
	if e.Dst {
		g.Dst = 1
	}
	return g
}

// SamePlaces reports whether the programs of both records can share their clients.
func SamePlaces(a, b *Record) bool {
	if a == nil || b == nil || len(a.Places) == 0 || len(a.Places) != len(b.Places) || !a.Tree().SameClients(*b.Tree()) {
		return false
	}
	for path, p := range a.Places {
		if b.Places[path] != p {
			return false
		}
		for at := path; at != ""; at, _ = group.Split(at) {
			if a.Classes[at+"/"] != b.Classes[at+"/"] {
				return false
			}
		}
	}
	return true
}

// Client is a client that occupies a place.
type Client struct {
	Minor  uint16
	Group  uint16        // minor number of the group's class
	Prefix netip.Prefix  // the zero Prefix for packets without an address
	Since  time.Duration // by the eBPF clock
	Last   time.Duration
	Bytes  uint64
}

// ReadClients returns the clients that have sent since a time of the eBPF clock, by place.
func ReadClients(m *ebpf.Map, t group.Tree, r Record, since time.Duration) ([]Client, error) {
	if m == nil || len(r.Places) == 0 {
		return nil, nil
	}
	each := map[uint16]group.Each{}
	for _, n := range t.Nodes {
		if !n.Clients.IsZero() {
			each[r.Class(n)] = n.Clients.Each
		}
	}
	var out []Client
	err := Each(m, func(index uint32, p clientPlace) {
		e, ok := each[p.Key.Group]
		if !ok || p.LastNS == 0 || time.Duration(p.LastNS) < since || p.Key.Family == clientNobody {
			return
		}
		out = append(out, Client{
			Minor: uint16(FirstClient + index), Group: p.Key.Group, Prefix: p.Key.prefix(e),
			Since: time.Duration(p.SinceNS), Last: time.Duration(p.LastNS), Bytes: p.Bytes,
		})
	})
	slices.SortFunc(out, func(a, b Client) int { return cmp.Compare(a.Minor, b.Minor) })
	return out, err
}

func (k clientKey) prefix(e group.Each) netip.Prefix {
	switch k.Family {
	case 4:
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(k.Address[12:])), int(e.IPv4))
	case 6:
		return netip.PrefixFrom(netip.AddrFrom16(k.Address), int(e.IPv6))
	}
	return netip.Prefix{}
}
