package group

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"

	"headgate.dev/headgate/unit"
)

// Limits of the clients of a group with Each.
const (
	// DefaultClients is the default maximum of clients that are active at the same time.
	DefaultClients = 2048
	// MaxClients is the maximum total of clients of a direction: each client has a class.
	MaxClients = 16000
	// ClientIdle is the number of seconds without a packet after which a client's slot may be
	// reused by another client (CLIENT_IDLE_NS in bpf/client.h).
	ClientIdle = 4
)

// Default client prefix lengths in bits, used if only the length of the other IP version is
// given.
const (
	oneIPv4 = 32
	oneIPv6 = 64
)

// Each defines a client: all packets whose source, or destination, has the same prefix. The
// zero Each means "not given".
type Each struct {
	Dst  bool  // use the destination instead of the source
	IPv4 uint8 // prefix length in bits
	IPv6 uint8
}

// IsZero reports whether Each was not given.
func (e Each) IsZero() bool { return e == Each{} }

var errEach = errors.New("write src or dst and a prefix length, such as src/32 or dst/64, or one for each IP version: src/32,src/56")

// ParseEach parses "src/32", "dst/64" or, with lengths for IPv4 and IPv6, "src/24,src/56". A
// single length above 32 is for IPv6, and every IPv4 address is then a client. A single length
// up to 32 is for IPv4, and every IPv6 /64 network is then a client.
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
			return Each{}, fmt.Errorf("%q is not a client prefix: %w", strings.TrimSpace(part), errEach)
		}
		if n < 1 || n > 128 {
			return Each{}, fmt.Errorf("%q has no valid prefix length: write 1 to 32 for IPv4, or up to 128 for IPv6", strings.TrimSpace(part))
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
		return Each{}, fmt.Errorf("%q mixes src and dst: a client is identified by one of them: write src twice, or dst twice", s)
	case lengths[0] > 32:
		return Each{}, fmt.Errorf("%q has an IPv4 prefix length of %d, and the maximum is 32: write the length for IPv4 first, and then that for IPv6", s, lengths[0])
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

// MarshalText formats Each for JSON, with both lengths.
func (e Each) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText parses Each with ParseEach; empty text is the zero Each.
func (e *Each) UnmarshalText(b []byte) (err error) {
	*e = Each{}
	if len(b) > 0 {
		*e, err = ParseEach(string(b))
	}
	return err
}

// Client returns the prefix that identifies the client of a packet. Packets without an address
// belong to one client, the zero Prefix.
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

// Clients describes the clients of a node with Each. The Guarantee and Ceiling of the node
// itself are those of all clients together.
type Clients struct {
	Each Each `json:"each"`
	Most int  `json:"most"` // maximum that is active at the same time
	// Guarantee and Ceiling apply to each client.
	Guarantee unit.Rate `json:"guarantee"`
	Ceiling   unit.Rate `json:"ceiling"`
}

// IsZero reports whether the node has no clients.
func (c Clients) IsZero() bool { return c == Clients{} }

// GuaranteedClients returns the number of active clients whose guarantees can be met at the same time, and
// whether these are all clients that may be active.
func (n Node) GuaranteedClients() (clients int, all bool) {
	c := n.Clients
	if c.Guarantee == 0 || unit.Rate(c.Most) <= n.Guarantee/c.Guarantee {
		return c.Most, true
	}
	return int(n.Guarantee / c.Guarantee), false
}

// SameClients reports whether both trees have the same Each and the same maximum number of
// clients in the same nodes, regardless of rates.
func (t Tree) SameClients(o Tree) bool {
	return maps.Equal(t.clientsByPath(), o.clientsByPath())
}

// clientsByPath returns Each and the maximum number of clients of each node with clients, by node path.
func (t Tree) clientsByPath() map[string]Clients {
	out := map[string]Clients{}
	for _, n := range t.Nodes {
		if !n.Clients.IsZero() {
			out[n.Path] = Clients{Each: n.Clients.Each, Most: n.Clients.Most}
		}
	}
	return out
}

// clients completes the node of a group with Each. On entry, the node's rates are those of one
// client. The guarantee of all clients together is limited to the part of the parent's
// guarantee that the sibling groups leave; groups with Each share this part in proportion to
// the sum of their clients' guarantees.
func (r *resolver) clients(n *Node, g Group, where string, s scope) {
	if g.Each.IsZero() {
		if g.Clients != 0 {
			r.problem(where+".clients", "clients requires each: write each: src/32, or remove clients")
		}
		return
	}
	if len(g.Groups) > 0 {
		r.problem(where+".each", "a parent group cannot have each: write each in one of its groups, or remove it")
		return
	}
	if n.Depth >= MaxDepth {
		r.problem(where+".each", "clients would be nested %d levels deep, and the maximum is %d: write each in a group one level up", n.Depth+1, MaxDepth)
	}
	if g.Clients < 0 || g.Clients > MaxClients {
		r.problem(where+".clients", "%d clients are out of range: write how many may be active at the same time, 1 to %d", g.Clients, MaxClients)
		return
	}
	n.Clients = Clients{Each: g.Each, Most: g.Clients, Guarantee: n.Guarantee, Ceiling: n.Ceiling}
	if g.Clients == 0 {
		n.Clients.Most = DefaultClients
	}
	r.busy += n.Clients.Most
	n.Guarantee, n.Ceiling = s.each.of(unit.Rate(n.Clients.Most)*n.Guarantee), s.ceiling
}

// eachShare is the guarantee that is left for the groups with Each of one level, and the sum of
// the guarantees of their clients.
type eachShare struct{ left, demanded unit.Rate }

func (e eachShare) of(wants unit.Rate) unit.Rate {
	if e.demanded <= e.left {
		return wants
	}
	return unit.Rate(float64(e.left) * (float64(wants) / float64(e.demanded)))
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
		e.demanded += unit.Rate(min(max(most, 0), MaxClients)) * min(guarantee, unit.MaxRate)
	}
	return e
}
