package group

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"

	"headgate/unit"
)

// Clients of a group with Each.
const (
	// DefaultClients is how many may be busy at the same time if nothing is said.
	DefaultClients = 2048
	// MaxClients is the most of all such groups of a direction: each has a class.
	MaxClients = 16000
	// ClientIdle is after how many seconds without a packet a client's place may be
	// another's (CLIENT_IDLE_NS in bpf/client.h).
	ClientIdle = 4
)

// What IPv4 and IPv6 addresses of one client have in common, in bits, if only the other
// length is given.
const (
	oneIPv4 = 32
	oneIPv6 = 64
)

// Each says what a client is: packets whose source, or destination, has the same first
// bits. The zero Each is "not given".
type Each struct {
	Dst  bool  // of the destination, not of the source
	IPv4 uint8 // length of the prefix in bits
	IPv6 uint8
}

// IsZero tells whether it was not given.
func (e Each) IsZero() bool { return e == Each{} }

var errEach = errors.New("write src or dst and the length of a prefix, such as src/32 or dst/64, or one for each version of IP: src/32,src/56")

// ParseEach reads "src/32", "dst/64" or, with the lengths of IPv4 and IPv6, "src/24,src/56".
// A single length above 32 is of IPv6; IPv4 addresses are then clients by themselves. One up
// to 32 is of IPv4, and IPv6 networks of 64 bits are then clients.
func ParseEach(s string) (Each, error) {
	parts := strings.Split(s, ",")
	if len(parts) > 2 {
		return Each{}, fmt.Errorf("%q names more than two prefixes: %w", s, errEach)
	}
	var ends []string
	var lengths []uint64
	for _, part := range parts {
		end, length, _ := strings.Cut(strings.TrimSpace(part), "/")
		n, err := strconv.ParseUint(length, 10, 8)
		if end != "src" && end != "dst" || err != nil {
			return Each{}, fmt.Errorf("%q is not a client: %w", strings.TrimSpace(part), errEach)
		}
		if n < 1 || n > 128 {
			return Each{}, fmt.Errorf("%q has no length of a prefix: write 1 to 32 for IPv4, or up to 128 for IPv6", strings.TrimSpace(part))
		}
		ends, lengths = append(ends, end), append(lengths, n)
	}
	e := Each{Dst: ends[0] == "dst", IPv4: oneIPv4, IPv6: oneIPv6}
	switch {
	case len(parts) == 1 && lengths[0] > 32:
		e.IPv6 = uint8(lengths[0])
	case len(parts) == 1:
		e.IPv4 = uint8(lengths[0])
	case ends[0] != ends[1]:
		return Each{}, fmt.Errorf("%q has both ends of a packet: a client is known by one, so write src twice, or dst", s)
	case lengths[0] > 32:
		return Each{}, fmt.Errorf("%q has %d bits of an IPv4 address, which has 32: write the length for IPv4 first, and then that for IPv6", s, lengths[0])
	default:
		e.IPv4, e.IPv6 = uint8(lengths[0]), uint8(lengths[1])
	}
	return e, nil
}

func (e Each) String() string {
	if e.IsZero() {
		return ""
	}
	end := e.end()
	return fmt.Sprintf("%s/%d,%s/%d", end, e.IPv4, end, e.IPv6)
}

func (e Each) end() string {
	if e.Dst {
		return "dst"
	}
	return "src"
}

// MarshalText prints both lengths, for JSON.
func (e Each) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText is ParseEach.
func (e *Each) UnmarshalText(b []byte) (err error) {
	*e = Each{}
	if len(b) > 0 {
		*e, err = ParseEach(string(b))
	}
	return err
}

// Client is the prefix by which a packet's client is known; the zero Prefix is what
// has no address, which counts as one client.
func (e Each) Client(p Packet) netip.Prefix {
	address := p.Src
	if e.Dst {
		address = p.Dst
	}
	if p.Link != "" || !address.IsValid() {
		return netip.Prefix{}
	}
	bits := int(e.IPv6)
	if address.Is4() {
		bits = int(e.IPv4)
	}
	prefix, _ := address.Prefix(bits)
	return prefix
}

// Clients are those of a node with Each. The node's own Guarantee and Ceiling are of all
// together.
type Clients struct {
	Each Each `json:"each"`
	Most int  `json:"most"` // busy at the same time
	// Guarantee and Ceiling are each client's.
	Guarantee unit.Rate `json:"guarantee"`
	Ceiling   unit.Rate `json:"ceiling"`
}

// IsZero tells whether the node has none.
func (c Clients) IsZero() bool { return c == Clients{} }

// AtOnce is of how many busy clients the guarantees can be met, and whether that is all of
// them.
func (n Node) AtOnce() (clients int, all bool) {
	c := n.Clients
	if c.Guarantee == 0 || unit.Rate(c.Most) <= n.Guarantee/c.Guarantee {
		return c.Most, true
	}
	return int(n.Guarantee / c.Guarantee), false
}

// SameClients tells whether both trees have the same kinds of clients, and as many, in the
// same nodes, whatever their rates.
func (t Tree) SameClients(o Tree) bool {
	return maps.Equal(t.kinds(), o.kinds())
}

// kinds are the kinds of clients and how many there are, by the path of their node.
func (t Tree) kinds() map[string]Clients {
	out := map[string]Clients{}
	for _, n := range t.Nodes {
		if !n.Clients.IsZero() {
			out[n.Path] = Clients{Each: n.Clients.Each, Most: n.Clients.Most}
		}
	}
	return out
}

// clients makes a node of a group with Each: what it has so far is of one client. What all
// are sure of is as much as the groups beside leave, of which groups with Each have parts by
// what their clients would have.
func (r *resolver) clients(n *Node, g Group, where string, s scope) {
	if g.Each.IsZero() {
		if g.Clients != 0 {
			r.problem(where+".clients", "clients are of a group that has one group for each: write each: src/32, or leave clients out")
		}
		return
	}
	if len(g.Groups) > 0 {
		r.problem(where+".each", "a group that has groups cannot be one for each client: write each in one of its groups, or leave it out")
		return
	}
	if n.Depth >= MaxDepth {
		r.problem(where+".each", "clients would be nested %d deep here, and %d is the most: write each in a group one level further out", n.Depth+1, MaxDepth)
	}
	if g.Clients < 0 || g.Clients > MaxClients {
		r.problem(where+".clients", "%d clients are not possible: write how many may be busy at the same time, 1 to %d", g.Clients, MaxClients)
		return
	}
	n.Clients = Clients{Each: g.Each, Most: g.Clients, Guarantee: n.Guarantee, Ceiling: n.Ceiling}
	if g.Clients == 0 {
		n.Clients.Most = DefaultClients
	}
	r.busy += n.Clients.Most
	n.Guarantee, n.Ceiling = s.each.of(unit.Rate(n.Clients.Most)*n.Guarantee), s.ceiling
}

// eachShare is what groups with Each of one level are sure of together, and what their
// clients would have.
type eachShare struct{ left, wanted unit.Rate }

func (e eachShare) of(wants unit.Rate) unit.Rate {
	if e.wanted <= e.left {
		return wants
	}
	return unit.Rate(float64(e.left) * (float64(wants) / float64(e.wanted)))
}

func eachShareOf(groups []Group, s scope) (e eachShare) {
	e.left = s.guarantee
	for _, g := range groups {
		guarantee := g.Guarantee.Of(s.guarantee)
		if g.Each.IsZero() {
			e.left -= min(e.left, guarantee)
			continue
		}
		most := g.Clients
		if most == 0 {
			most = DefaultClients
		}
		e.wanted += unit.Rate(min(max(most, 0), MaxClients)) * min(guarantee, unit.MaxRate)
	}
	return e
}
