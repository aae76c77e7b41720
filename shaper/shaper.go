package shaper

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// Plan is the desired state of one device, validated and resolved.
type Plan struct {
	Dev         string            `json:"dev"`
	Perspective group.Perspective `json:"perspective"`
	Overhead    group.Overhead    `json:"overhead"`
	GSO         group.GSO         `json:"gso,omitempty"`
	// Quantum applies only to the engine of that name.
	Quantum group.QuantumOptions `json:"quantum,omitzero"`
	Out     *group.Tree          `json:"out,omitempty"`
	In      *group.Tree          `json:"in,omitempty"`
}

// NewPlan returns the plan of a device with the configuration of an interface, which may name a pattern.
func NewPlan(dev string, i group.Resolved) Plan {
	return Plan{Dev: dev, Perspective: i.Perspective, Overhead: i.Overhead, GSO: i.GSO, Quantum: i.QuantumOptions, Out: i.OutTree, In: i.InTree}
}

// Equal reports whether both plans describe the same desired state.
func (p Plan) Equal(o Plan) bool {
	return p.Dev == o.Dev && p.Perspective == o.Perspective && p.Overhead == o.Overhead && p.GSO == o.GSO && p.Quantum == o.Quantum &&
		group.EqualTrees(p.Out, o.Out) && group.EqualTrees(p.In, o.In)
}

// Leaf returns the path of the leaf group with this path or last path element, in any
// direction. A group of a reservation is an error.
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
	if p.adjustable(path) {
		return "", fmt.Errorf("group %q is that of a reservation, whose traffic the reservation names: change the reservation, or choose another group", path)
	}
	return path, nil
}

// adjustable reports whether a path is that of an adjustable group.
func (p Plan) adjustable(path string) bool {
	return p.Out != nil && slices.ContainsFunc(p.Out.Nodes, func(n group.Node) bool { return n.Adjustable && n.Path == path })
}

// Shaper enforces plans in the network namespace of the calling thread.
type Shaper interface {
	// Diff returns the changes that Apply would make, in order, and changes nothing. An empty
	// list means that the actual state is the desired one.
	Diff(Plan) ([]Change, error)
	// Apply makes the plan the actual state. If the device has foreign traffic control that
	// conflicts, Apply changes nothing and returns ErrForeign. If the kernel rejects a part,
	// Apply rolls back, or, if the rollback fails too, returns an error that describes the
	// state in force. If the process dies, the device has the old or the new state.
	Apply(Plan) ([]Change, error)
	// Observe reads the actual state of the device and its counters. It returns ErrNotShaped
	// for a device without shaping by this engine.
	Observe(dev string) (State, error)
	// Assign assigns connections to groups, with precedence over all rules. A connection that
	// is already assigned moves to the new group. Unassign removes assignments, so that the
	// rules apply again.
	Assign(dev string, a []Assignment) error
	Unassign(dev string, c []Conn) error
	// Assigned returns the group that a connection is assigned to, or "" if there is none.
	Assigned(dev string, c Conn) (group string, err error)
	// Clear removes everything that Headgate created on the device. A device without shaping by
	// this engine is not an error.
	Clear(dev string) error
}

// Adjuster is a Shaper that changes the limits of Adjustable groups while they carry packets.
type Adjuster interface {
	Shaper
	// Adjust sets the limits of Adjustable groups of "out", by path, in bit/s. It changes the groups'
	// classes alone: packets stay in their queues and counters go on. A limit below the engine's minimum
	// or above the limit of the tree is clamped. A group that does not exist is an error that names it;
	// the limits of the others are set. Apply keeps the limits, and Observe returns them as ceilings.
	Adjust(dev string, limits map[string]unit.Rate) error
}

// Errors that callers distinguish.
var (
	ErrNotShaped  = errors.New("has no bandwidth groups: create some with \"headgate apply -f FILE\"")
	ErrForeign    = errors.New("has foreign traffic control")
	ErrNoDevice   = errors.New("no such device")
	ErrPermission = errors.New("permission denied: requires CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN (run as root)")
)

// WithPermission adds ErrPermission to a permission error of a file; other errors are unchanged.
func WithPermission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrPermission, err)
	}
	return err
}

// Change is one step from the actual state to the desired state.
type Change = group.Change

// State is the actual state of a device.
type State struct {
	Dev    string          `json:"dev"`
	Engine group.Engine    `json:"engine"`
	Plan   Plan            `json:"plan"`
	At     time.Time       `json:"at"`
	Owner  string          `json:"owner,omitempty"` // who configures the device, if known
	Out    *DirectionState `json:"out,omitempty"`
	In     *DirectionState `json:"in,omitempty"`
	// Offloads lists device settings that the engine has changed, or that it would change if
	// another program had not changed them since.
	Offloads []DeviceSetting `json:"offloads,omitempty"`
	Foreign  []string        `json:"foreign,omitempty"` // descriptions of foreign traffic control
	Drift    []Change        `json:"drift,omitempty"`   // the changes that an Apply of Plan would make
}

// DeviceSetting is one of a device's packet offloads, in bytes.
type DeviceSetting struct {
	Name   string `json:"name"` // as named by "ip link": gso_max_size
	Value  uint32 `json:"value"`
	Before uint32 `json:"before,omitempty"` // the value that Clear restores; 0 if Clear does not change the setting
	// ChangedByOther is set if another program has set the value since. Headgate then leaves it
	// unchanged.
	ChangedByOther bool `json:"left_alone,omitempty"`
}

// DirectionState is the state of one direction's groups, in the order of the plan's nodes, and
// of the class of control traffic (ARP, neighbour discovery, DHCP, LLDP, STP, pure ACKs).
type DirectionState struct {
	// At is the time at which the counters of this direction were read. Other directions and
	// devices are read slightly earlier or later. Rates are differences of counters divided by
	// differences of At.
	At      time.Time    `json:"at,omitzero"`
	Groups  []GroupState `json:"groups"`
	Control GroupState   `json:"control"`
	// RuleHits counts the packets that each rule assigned, in the order of the tree's rules.
	RuleHits []uint64 `json:"rule_hits"`
	// Queues is the type of the groups' queues: "fq_codel" separates the flows of a group,
	// "fifo" does not; "" for an engine without queues.
	Queues string `json:"queues,omitempty"`
	// Assigned is the number of connections assigned at run time.
	Assigned int `json:"assigned"`
	// Quantum is the state of the engine quantum; nil for other engines.
	Quantum *QuantumState `json:"quantum,omitempty"`
}

// QuantumState is the state of one direction under the engine quantum. Bytes are payload bytes.
type QuantumState struct {
	// Mode is Enforcement if any group is in Enforcement.
	Mode string `json:"mode"`
	// Quantum, StepBytes and Overdraft are the options in force.
	Quantum   time.Duration `json:"quantum_ns"`
	StepBytes uint64        `json:"step_bytes"`
	Overdraft bool          `json:"overdraft"`
	// LimitBytes is the limit per quantum; UsedBytes is the part used in the current quantum.
	LimitBytes uint64 `json:"limit_bytes"`
	UsedBytes  uint64 `json:"used_bytes"`
	// Pool is the amount that groups have lent and that is not borrowed yet, in bytes per
	// quantum and as a rate.
	PoolBytes uint64    `json:"pool_bytes"`
	Pool      unit.Rate `json:"pool"`
	// Resets counts the resets since the direction was limited.
	Resets uint64 `json:"resets"`
}

// QuantumGroupState is the state of one group under the engine quantum.
type QuantumGroupState struct {
	// Actual is the present limit of the group: lower than its guarantee when it has lent,
	// higher when it has borrowed. ActualBytes is the same limit in bytes per quantum.
	Actual      unit.Rate `json:"actual"`
	ActualBytes uint64    `json:"actual_bytes"`
	// Mode is Enforcement if the algorithm dropped packets of the group in this quantum or in
	// the previous one (bwaas seed, chapter III), otherwise Normal.
	Mode string `json:"mode"`
}

// Modes of the engine quantum.
const (
	Normal      = "normal"
	Enforcement = "enforcement"
)

// GroupState is the state of one group. Counters start when the group is created; bytes are
// layer 2.
type GroupState struct {
	Path  string `json:"path"`
	Class string `json:"class"` // the kernel's name of the class: "1:a"
	// Origin is the group.Origin, if known. Engines do not know it.
	Origin       string    `json:"origin,omitempty"`
	Guarantee    unit.Rate `json:"guarantee"`
	Ceiling      unit.Rate `json:"ceiling"`
	Bytes        uint64    `json:"bytes"`
	Packets      uint64    `json:"packets"`
	Drops        uint64    `json:"drops"`
	Marks        uint64    `json:"marks"`
	BacklogBytes uint64    `json:"backlog_bytes"`
	// QueueDelay is the sojourn time of the packet that left the queue last; 0 if the group is
	// idle.
	QueueDelay time.Duration `json:"queue_delay_ns"`
	// Quantum is set only by the engine quantum.
	Quantum *QuantumGroupState `json:"quantum,omitempty"`
	// QueuedFor is the total time in which the queue was never empty, and QueuedBytes is the
	// number of bytes that left the queue in this time. Both are 0 if the engine does not
	// measure them.
	QueuedFor   time.Duration `json:"queued_ns"`
	QueuedBytes uint64        `json:"queued_bytes"`
	// Clients is set for a group with each. The other fields are then totals of all clients,
	// and queue delays are not measured.
	Clients *ClientsState `json:"clients,omitempty"`
}

// ClientsState counts the clients of a group.
type ClientsState struct {
	Active int `json:"active"` // sent a packet in the last group.ClientIdle seconds
	Max    int `json:"most"`
}

// Client is an active client of a group with each.
type Client struct {
	Direction string `json:"direction"` // "out" or "in"
	Group     string `json:"group"`
	// Client is the prefix of the client's addresses; the zero Prefix stands for all packets
	// without an address.
	Client netip.Prefix `json:"client"`
	Class  string       `json:"class"`
	// Since is the time at which the client appeared, and Bytes counts the bytes that arrived
	// for it since then, layer 2.
	Since time.Time `json:"since"`
	Bytes uint64    `json:"bytes"`
	// Passed and Drops count since the client's class was created, which may include earlier
	// clients.
	Passed       uint64        `json:"passed_bytes"`
	Drops        uint64        `json:"drops"`
	BacklogBytes uint64        `json:"backlog_bytes"`
	QueueDelay   time.Duration `json:"queue_delay_ns"`
	At           time.Time     `json:"at"` // when its counters were read
}

// Name formats the client's prefix.
func (c Client) Name() string {
	if !c.Client.IsValid() {
		return "no address"
	}
	return c.Client.String()
}

// Conn is one connection, identified by its two ends in either order.
type Conn struct {
	Proto uint8          `json:"proto"`
	A     netip.AddrPort `json:"a"`
	B     netip.AddrPort `json:"b"`
}

func (c Conn) String() string {
	return fmt.Sprintf("%s %v %v", group.ProtoName(c.Proto), c.A, c.B)
}

// Assignment assigns a connection to a group by path, in each direction that has a group with
// this path.
type Assignment struct {
	Conn  Conn   `json:"conn"`
	Group string `json:"group"`
}
