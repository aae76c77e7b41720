package group

import (
	"strings"

	"headgate.dev/headgate/unit"
)

// Interface is the configuration of one network device: limits and groups per direction.
type Interface struct {
	// Dev is a device name, or a pattern in the sense of path.Match ("veth*"). A pattern also
	// matches devices that appear later: see MatchesDevice.
	Dev         string      `json:"dev"`
	Perspective Perspective `json:"perspective,omitempty"`
	Engine      Engine      `json:"engine,omitempty"`
	Overhead    Overhead    `json:"overhead,omitzero"`
	GSO         GSO         `json:"gso,omitempty"`
	QuantumOptions
	// Out and In are the two directions as seen by the owner of the traffic. A nil direction is
	// not limited.
	Out *Direction `json:"out,omitempty"`
	In  *Direction `json:"in,omitempty"`
}

// Perspective selects the point of view from which a device's directions are named.
type Perspective string

const (
	// Host is the default: "out" is what the device transmits.
	Host Perspective = "host"
	// Guest is for a VM's tap or a container's veth, seen from the host: packets that the guest
	// sends are received by the device, so "out" is the device's ingress.
	Guest Perspective = "guest"
)

// Engine is the implementation of shaping for an Interface.
type Engine string

const (
	// HTB is the default: an HTB tree with an eBPF classifier.
	HTB Engine = "htb"
	// Quantum is the algorithm of the bwaas seed, as an eBPF policer.
	Quantum Engine = "quantum"
)

// GSO selects what Headgate does to the device's super-packet limits, gso_max_size and
// gro_max_size. The empty GSO means ScaledGSO.
type GSO string

const (
	// ScaledGSO lowers the limits to the bytes that the link sends in a quarter of a millisecond
	// at the configured rate. clear restores the previous values.
	ScaledGSO GSO = "sized"
	// KeepGSO does not change the limits.
	KeepGSO GSO = "keep"
)

// Overhead is the link-layer overhead per packet that the kernel does not count.
type Overhead struct {
	// Frame is added to the length of every packet (PPPoE: 8 bytes).
	Frame unit.Bytes `json:"frame"`
	// Minimum is the length at which shorter packets are counted (DOCSIS: 64).
	Minimum unit.Bytes `json:"minimum"`
}

// Direction is the limit of one direction and its groups.
type Direction struct {
	Limit  unit.Rate `json:"limit"`
	Spare  Spare     `json:"spare,omitempty"`
	Groups []Group   `json:"groups"`
}

// Guaranteed returns the total of the guarantees of the top-level groups.
func (d *Direction) Guaranteed() (sum unit.Rate) {
	if d == nil {
		return 0
	}
	for _, g := range d.Groups {
		sum += g.Guarantee.Of(d.Limit)
	}
	return sum
}

// Spare is the policy that divides unused bandwidth among the groups with demand.
type Spare string

const (
	// Proportional divides in proportion to the guarantees.
	Proportional Spare = "proportional"
	// Equal divides into equal parts.
	Equal Spare = "equal"
	// Priority serves the lowest Group.Priority first, and divides equally within one priority.
	Priority Spare = "priority"
)

// MaxPriority is the largest Group.Priority, which is served last. HTB has eight priorities
// (TC_HTB_NUMPRIO); the first is reserved for control traffic.
const MaxPriority = 6

// MaxDepth is the maximum depth of nested groups: tenant, VM, group.
const MaxDepth = 3

// Group is traffic with one guarantee and one ceiling inside its parent group, or inside the
// direction's limit.
type Group struct {
	// Name is unique among the groups of one parent. A group is identified by its path:
	// "tenant/vm/web".
	Name string `json:"name"`
	// Guarantee is the rate that the group gets whenever it has demand. A share is relative to
	// the parent's guarantee.
	Guarantee Amount `json:"guarantee,omitzero"`
	// Ceiling is the rate that the group never exceeds. A share is relative to the parent's
	// ceiling; the zero Amount means the parent's ceiling.
	Ceiling Amount `json:"ceiling,omitzero"`
	// Priority orders the groups under Spare Priority: 0 is served first.
	Priority int `json:"priority,omitempty"`
	// Match lists alternative rules: a packet belongs to the group if one of them matches. In a
	// parent group, Match limits the packets that the rules of its child groups can match.
	Match []Selector `json:"match,omitempty"`
	// Default makes the leaf group take packets that no rule matches: of the direction, or, in
	// a child of a group that has Match, of that group. Exactly one leaf of a direction
	// (outside groups with Match) is the direction's default.
	Default bool `json:"default,omitempty"`
	// Join lists users of the host, by name or number, whose programs may assign their own
	// connections to this group and to the groups below it.
	Join []string `json:"join,omitempty"`
	// Each turns a leaf group into one group per client. Guarantee and Ceiling then apply to
	// each client. Clients is the maximum number of clients that are active at the same time; 0
	// means DefaultClients.
	Each    Each    `json:"each,omitzero"`
	Clients int     `json:"clients,omitempty"`
	Groups  []Group `json:"groups,omitempty"`
	// Origin is what created the group.
	Origin Origin `json:"origin,omitempty"`
	// Tenant is the tenant of a service to whom a configuration file gives the group. Only files have it: a service stores
	// owners beside the groups, and a host has no tenants.
	Tenant string `json:"-"`
}

// Amount is a rate, or a share of the parent's rate. The zero Amount means "not given".
type Amount struct {
	Rate  unit.Rate
	Share unit.Share
}

// Of converts the amount to a rate. A share (percentage) is of r: the limit, or the parent's guarantee or ceiling.
func (a Amount) Of(r unit.Rate) unit.Rate {
	if a.Share > 0 {
		return a.Share.Of(r)
	}
	return a.Rate
}

// IsZero reports whether the amount was not given.
func (a Amount) IsZero() bool { return a == Amount{} }

// ParseAmount parses a rate ("100Mbit") or a share ("40%").
func ParseAmount(s string) (a Amount, err error) {
	if strings.HasSuffix(s, "%") {
		a.Share, err = unit.ParseShare(s)
	} else {
		a.Rate, err = unit.ParseRate(s)
	}
	return a, err
}

// MarshalText formats the amount for JSON without loss of precision.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText parses the amount with ParseAmount.
func (a *Amount) UnmarshalText(b []byte) (err error) { *a, err = ParseAmount(string(b)); return err }

func (a Amount) String() string {
	if a.Share > 0 {
		return a.Share.String()
	}
	return a.Rate.String()
}
