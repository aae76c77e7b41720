package shaper

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"headgate/group"
	"headgate/unit"
)

// Plan is the desired state of one device, checked and resolved.
type Plan struct {
	Dev         string            `json:"dev"`
	Perspective group.Perspective `json:"perspective"`
	Overhead    group.Overhead    `json:"overhead"`
	GSO         group.GSO         `json:"gso,omitempty"`
	// Quantum is of the engine of that name alone.
	Quantum group.QuantumOptions `json:"quantum,omitzero"`
	Out     *group.Tree          `json:"out,omitempty"`
	In      *group.Tree          `json:"in,omitempty"`
}

// Equal tells whether both plans ask for the same.
func (p Plan) Equal(o Plan) bool {
	return p.Dev == o.Dev && p.Perspective == o.Perspective && p.Overhead == o.Overhead && p.GSO == o.GSO && p.Quantum == o.Quantum &&
		group.EqualTrees(p.Out, o.Out) && group.EqualTrees(p.In, o.In)
}

// Leaf is the path of the leaf that a user calls name, in the directions that have it.
func (p Plan) Leaf(name string) (path string, err error) {
	var first error
	for _, t := range []*group.Tree{p.Out, p.In} {
		if t == nil {
			continue
		}
		i, err := t.Find(name)
		switch {
		case err != nil:
			if first == nil {
				first = err
			}
		case path != "" && path != t.Nodes[i].Path:
			return "", fmt.Errorf("%q is ambiguous: write %q or %q", name, path, t.Nodes[i].Path)
		default:
			path = t.Nodes[i].Path
		}
	}
	if path == "" {
		return "", first
	}
	return path, nil
}

// Shaper enforces plans in the network namespace of the calling thread.
type Shaper interface {
	// Diff tells what Apply would do, in the order in which it would do it, and
	// changes nothing. An empty list means that the kernel has the plan already.
	Diff(Plan) ([]Change, error)
	// Apply makes the plan so. It fails without having changed anything if the
	// device has shaping that is not ours (ErrForeign); undoes what it did if the
	// kernel refuses a part, or says what is in force where that is refused too; and
	// leaves the old or the new state if the process dies.
	Apply(Plan) ([]Change, error)
	// Observe reads what is in force on the device and what it has carried.
	// A device without shaping of this engine gives ErrNotShaped.
	Observe(dev string) (State, error)
	// Assign puts connections into groups, before every rule; a connection that
	// is assigned already moves. Unassign returns them to the rules.
	Assign(dev string, a []Assignment) error
	Unassign(dev string, c []Conn) error
	// Assigned is the group that a connection is assigned to, "" if it is to none.
	Assigned(dev string, c Conn) (group string, err error)
	// Clear takes away all that is ours on the device. A device without shaping
	// of this engine is no error.
	Clear(dev string) error
}

// Errors that callers tell apart.
var (
	ErrNotShaped  = errors.New("has no bandwidth groups")
	ErrForeign    = errors.New("has traffic control that is not Headgate's")
	ErrNoDevice   = errors.New("there is no such device")
	ErrPermission = errors.New("this needs CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN (run it as root)")
)

// Change is one step from the kernel's state to the plan's.
type Change struct {
	Verb   string `json:"verb"`   // "add", "change" or "remove"
	Object string `json:"object"` // "out group web"
	Detail string `json:"detail,omitempty"`
}

func (c Change) String() string {
	s := fmt.Sprintf("%-6s %s", c.Verb, c.Object)
	if c.Detail != "" {
		s += ": " + c.Detail
	}
	return s
}

// State is what is in force on a device.
type State struct {
	Dev    string          `json:"dev"`
	Engine group.Engine    `json:"engine"`
	Plan   Plan            `json:"plan"`
	At     time.Time       `json:"at"`
	Owner  string          `json:"owner,omitempty"` // who keeps it so, as far as whoever shows it knows
	Out    *DirectionState `json:"out,omitempty"`
	In     *DirectionState `json:"in,omitempty"`
	// Offloads are settings of the device itself that an engine has changed, or would, if somebody
	// else had not changed them since.
	Offloads []DeviceSetting `json:"offloads,omitempty"`
	Foreign  []string        `json:"foreign,omitempty"` // traffic control that is not ours, in words
	Drift    []Change        `json:"drift,omitempty"`   // what an Apply of Plan would mend
}

// DeviceSetting is one of a device's packet offloads, in bytes.
type DeviceSetting struct {
	Name   string `json:"name"` // as "ip link" calls it: gso_max_size
	Value  uint32 `json:"value"`
	Before uint32 `json:"before,omitempty"` // what a Clear sets it to; 0 if it leaves it alone
	// LeftAlone tells that somebody else has set it since, to Value, and that it is theirs.
	LeftAlone bool `json:"left_alone,omitempty"`
}

// DirectionState is one direction's groups, in the order of the plan's nodes,
// and after them the class of control traffic (ARP, neighbour discovery, DHCP,
// LLDP, STP, pure ACKs).
type DirectionState struct {
	// At is when its counters were read: those of the other direction, or of another device, a little
	// before or after. Rates are differences of counters over the difference of these.
	At      time.Time    `json:"at,omitzero"`
	Groups  []GroupState `json:"groups"`
	Control GroupState   `json:"control"`
	// RuleHits counts packets by the rule that placed them, in the order of the
	// tree's rules.
	RuleHits []uint64 `json:"rule_hits"`
	// Queues is what the groups' queues are: "fq_codel" keeps the flows of one group
	// apart, "fifo" does not; "" for an engine without queues.
	Queues string `json:"queues,omitempty"`
	// Assigned is the number of connections assigned at run time.
	Assigned int `json:"assigned"`
	// Quantum is what the algorithm of engine quantum has come to; nil for another.
	Quantum *QuantumState `json:"quantum,omitempty"`
}

// QuantumState is one direction's of engine quantum. Bytes are of payload.
type QuantumState struct {
	// Mode is Enforcement if a group is in it.
	Mode string `json:"mode"`
	// Quantum, StepBytes and Overdraft are the options in force.
	Quantum   time.Duration `json:"quantum_ns"`
	StepBytes uint64        `json:"step_bytes"`
	Overdraft bool          `json:"overdraft"`
	// LimitBytes is what may pass in a quantum, and UsedBytes what has in this one.
	LimitBytes uint64 `json:"limit_bytes"`
	UsedBytes  uint64 `json:"used_bytes"`
	// Pool is what groups have lent and none has borrowed yet, a quantum and as a rate.
	PoolBytes uint64    `json:"pool_bytes"`
	Pool      unit.Rate `json:"pool"`
	// Resets counts since the direction was limited.
	Resets uint64 `json:"resets"`
}

// QuantumGroupState is one group's.
type QuantumGroupState struct {
	// Actual is what the group may use now: less than its guarantee when it has lent,
	// more when it has borrowed. In bytes it is that of one quantum.
	Actual      unit.Rate `json:"actual"`
	ActualBytes uint64    `json:"actual_bytes"`
	// Mode is Enforcement if the algorithm dropped packets of the group in this quantum
	// or in the one before (bwaas seed, chapter III), else Normal.
	Mode string `json:"mode"`
}

// Modes of engine quantum.
const (
	Normal      = "normal"
	Enforcement = "enforcement"
)

// GroupState counts since the group was made. Bytes are layer 2.
type GroupState struct {
	Path         string    `json:"path"`
	Class        string    `json:"class"` // the kernel's name: "1:a"
	Guarantee    unit.Rate `json:"guarantee"`
	Ceiling      unit.Rate `json:"ceiling"`
	Bytes        uint64    `json:"bytes"`
	Packets      uint64    `json:"packets"`
	Drops        uint64    `json:"drops"`
	Marks        uint64    `json:"marks"`
	BacklogBytes uint64    `json:"backlog_bytes"`
	// QueueDelay is how long the packet that left last had waited; 0 of a group that is idle.
	QueueDelay time.Duration `json:"queue_delay_ns"`
	// Quantum is of engine quantum alone.
	Quantum *QuantumGroupState `json:"quantum,omitempty"`
	// QueuedFor is for how long in all a packet always waited, and QueuedBytes what left meanwhile; an
	// engine that does not measure it has 0.
	QueuedFor   time.Duration `json:"queued_ns"`
	QueuedBytes uint64        `json:"queued_bytes"`
	// Clients are of a group that is one for every client; its numbers are then of all of
	// them, and it is not measured how long packets waited.
	Clients *ClientsState `json:"clients,omitempty"`
}

// ClientsState counts the clients of a group.
type ClientsState struct {
	Active int `json:"active"` // that have sent in the last group.ClientIdle seconds
	Most   int `json:"most"`
}

// Client is a client of a group that is one for every client, and is active.
type Client struct {
	Direction string `json:"direction"` // "out" or "in"
	Group     string `json:"group"`
	// Client is the prefix of its addresses; the zero Prefix is of what has no address.
	Client netip.Prefix `json:"client"`
	Class  string       `json:"class"`
	// Since is when it appeared, and Bytes what has come for it since then, layer 2.
	Since time.Time `json:"since"`
	Bytes uint64    `json:"bytes"`
	// Passed and Drops count since its class was made, which other clients had before.
	Passed       uint64        `json:"passed_bytes"`
	Drops        uint64        `json:"drops"`
	BacklogBytes uint64        `json:"backlog_bytes"`
	QueueDelay   time.Duration `json:"queue_delay_ns"`
	At           time.Time     `json:"at"` // when its counters were read
}

// Conn is one connection, named by its ends in either order.
type Conn struct {
	Proto uint8          `json:"proto"`
	A     netip.AddrPort `json:"a"`
	B     netip.AddrPort `json:"b"`
}

func (c Conn) String() string {
	return fmt.Sprintf("%s %v %v", group.ProtoName(c.Proto), c.A, c.B)
}

// Assignment puts a connection into a group by path, in each direction in which
// a group of that path exists.
type Assignment struct {
	Conn  Conn   `json:"conn"`
	Group string `json:"group"`
}
