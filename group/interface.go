package group

import (
	"strings"

	"headgate/unit"
)

// Interface is the bandwidth of one network device, divided.
type Interface struct {
	// Dev is a device name, or a pattern in the sense of path.Match ("veth*"),
	// which takes in devices that appear later: see Takes.
	Dev         string      `json:"dev"`
	Perspective Perspective `json:"perspective,omitempty"`
	Engine      Engine      `json:"engine,omitempty"`
	Overhead    Overhead    `json:"overhead,omitzero"`
	GSO         GSO         `json:"gso,omitempty"`
	QuantumOptions
	// Out and In are the two directions as the owner of the traffic sees them;
	// a nil direction is not limited.
	Out *Direction `json:"out,omitempty"`
	In  *Direction `json:"in,omitempty"`
}

// Perspective says whose traffic a device carries.
type Perspective string

const (
	// Host is the ordinary case: what the device transmits is "out".
	Host Perspective = "host"
	// Guest is a VM's tap or a container's veth seen from outside: what the
	// guest sends arrives at the device, so "out" is the device's ingress.
	Guest Perspective = "guest"
)

// Engine names the mechanism that enforces an Interface.
type Engine string

const (
	// HTB is the default: an HTB tree with an eBPF classifier.
	HTB Engine = "htb"
	// Quantum is the bwaas seed's own algorithm, as an eBPF policer.
	Quantum Engine = "quantum"
)

// GSO says what becomes of the device's limits of super-packets, gso_max_size and
// gro_max_size. The empty GSO is SizedGSO.
type GSO string

const (
	// SizedGSO lowers them to what takes a quarter of a millisecond at the limit; clear
	// puts them back.
	SizedGSO GSO = "sized"
	// KeepGSO leaves them as they are.
	KeepGSO GSO = "keep"
)

// Overhead is what the link adds to each packet that the kernel does not count.
type Overhead struct {
	// Frame is added to the length of every packet (PPPoE: 8 bytes).
	Frame unit.Bytes `json:"frame"`
	// Minimum is the length that a shorter packet is counted as (DOCSIS: 64).
	Minimum unit.Bytes `json:"minimum"`
}

// Direction is the limit of one direction and its division.
type Direction struct {
	Limit  unit.Rate `json:"limit"`
	Spare  Spare     `json:"spare,omitempty"`
	Groups []Group   `json:"groups"`
}

// Spare says how bandwidth that its owner leaves idle is lent.
type Spare string

const (
	// Proportional lends in proportion to the guarantees.
	Proportional Spare = "proportional"
	// Equal lends to all alike.
	Equal Spare = "equal"
	// Priority lends to the lowest Group.Priority first, alike within one.
	Priority Spare = "priority"
)

// MaxPriority is the largest (last served) Group.Priority. HTB has eight
// priorities (TC_HTB_NUMPRIO); the first is kept for control traffic.
const MaxPriority = 6

// MaxDepth is how deep groups may nest: tenant, VM, group.
const MaxDepth = 3

// Group is a share of its parent, or of the direction's limit.
type Group struct {
	// Name is unique among its siblings. A group is called by its path:
	// "tenant/vm/web".
	Name string `json:"name"`
	// Guarantee is what the group gets whenever it wants it, of the parent's
	// guarantee if a share.
	Guarantee Amount `json:"guarantee,omitzero"`
	// Ceiling is the most it ever gets, of the parent's ceiling if a share; the
	// zero Amount is the parent's ceiling.
	Ceiling Amount `json:"ceiling,omitzero"`
	// Priority orders lending under Spare Priority: 0 is served first.
	Priority int `json:"priority,omitempty"`
	// Match are alternatives: a packet belongs to the group if one matches. In a
	// group with child groups they bound what the children's own rules see.
	Match []Selector `json:"match,omitempty"`
	// Default takes what no rule matches: of the direction, or, in a child of a
	// group that has Match, of that group. Exactly one leaf of a direction
	// (outside such groups) is its default.
	Default bool `json:"default,omitempty"`
	// Join are users of the host, by name or number, whose programs may put
	// connections of their own in the group, and in those below it.
	Join []string `json:"join,omitempty"`
	// Each makes of a group without groups one for every client that appears:
	// Guarantee and Ceiling are then each client's, and Clients is how many may be
	// busy at the same time; 0 is DefaultClients.
	Each    Each    `json:"each,omitzero"`
	Clients int     `json:"clients,omitempty"`
	Groups  []Group `json:"groups,omitempty"`
}

// Amount is a rate, given as such or as a share of the parent's. The zero Amount
// is "not given".
type Amount struct {
	Rate  unit.Rate
	Share unit.Share
}

// Of is the amount as a rate when the whole is r.
func (a Amount) Of(r unit.Rate) unit.Rate {
	if a.Share > 0 {
		return a.Share.Of(r)
	}
	return a.Rate
}

// IsZero tells whether the amount was not given.
func (a Amount) IsZero() bool { return a == Amount{} }

// ParseAmount reads a rate ("100Mbit") or a share ("40%").
func ParseAmount(s string) (a Amount, err error) {
	if strings.HasSuffix(s, "%") {
		a.Share, err = unit.ParseShare(s)
	} else {
		a.Rate, err = unit.ParseRate(s)
	}
	return a, err
}

// MarshalText prints the exact form, for JSON.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is ParseAmount.
func (a *Amount) UnmarshalText(b []byte) (err error) { *a, err = ParseAmount(string(b)); return err }

func (a Amount) String() string {
	if a.Share > 0 {
		return a.Share.String()
	}
	return a.Rate.String()
}
