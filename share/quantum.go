package share

import "slices"

// QuantumConfig is the configuration of the quantum algorithm, in payload bytes per quantum.
// QuantumForRate derives a QuantumConfig from rates.
type QuantumConfig struct {
	// Limit is the total of all groups (ReqMaxBandwidth in the source). A packet that would
	// reach the limit is dropped, so at most Limit-1 bytes pass.
	Limit uint64
	// Configured is the guarantee of each group (configuredByteLimit in the source). Neither
	// the source nor the model checks that the sum fits the limit.
	Configured []uint64
	// Step is the amount that an idle group gives up per quantum (SCTP_DEFAULT_MINWINDOW in the
	// source).
	Step uint64
	// MTU is the path MTU. The source uses the MTU of each connection; the model uses one for
	// all.
	MTU uint64
	// Overdraft is the second remedy of chapter VII. When the limit is reached, a packet within
	// its group's guarantee still passes, unless the previous quantum was overdrawn too:
	// overuse lasts one quantum at most. The first remedy, a shorter quantum, is a smaller
	// Limit with more frequent calls of Tick.
	Overdraft bool
}

// QuantumGroup is the state of one group, in payload bytes.
type QuantumGroup struct {
	Configured uint64 // the guarantee
	Actual     uint64 // the present limit: lower after idle quanta, higher after borrowing
	Bytes      uint64 // passed since the last Tick
	Dropped    uint64 // dropped since the last Tick
}

// Verdict is the decision for one packet. The zero Verdict passes the packet unmarked.
type Verdict struct {
	Drop bool
	// CE means that the total is nearly used up. A dropped packet can carry CE too, because the
	// source sets a flag of the connection, not of the packet.
	CE bool
}

// Quantum is the seed's bandwidth controller (chapter IV, appendix B) for one direction of one
// interface. It has no clock: the caller calls Tick when a quantum ends. The zero value has no
// groups and passes all packets.
type Quantum struct {
	cfg    QuantumConfig
	groups []QuantumGroup
	used   uint64 // by all groups since the last Tick
	pool   uint64 // given up by idle groups and not yet borrowed
	resets uint64 // since NewQuantum

	overdrawn    bool // this quantum was overdrawn
	wasOverdrawn bool // the previous quantum was overdrawn
}

// NewQuantum returns a Quantum with every group at its guarantee and an empty pool.
func NewQuantum(cfg QuantumConfig) *Quantum {
	q := &Quantum{}
	q.Reconfigure(cfg)
	q.resets = 0
	return q
}

// Reconfigure changes the limit, the guarantees and the options, and resets. The counters of
// the current quantum are kept, by group index. The source differs in two ways that the model
// does not reproduce: a new limit leaves the guarantees at their share of the old limit until
// each group is added again, and adding a group does not take its bytes from the pool, so that
// limits and pool total more than was configured.
func (q *Quantum) Reconfigure(cfg QuantumConfig) {
	cfg.Configured = slices.Clone(cfg.Configured)
	groups := make([]QuantumGroup, len(cfg.Configured))
	copy(groups, q.groups)
	for i := range groups {
		groups[i].Configured = cfg.Configured[i]
	}
	q.cfg, q.groups = cfg, groups
	q.Reset()
}

// Packet decides on one packet with the given payload in bytes: the data of a TCP segment, or
// of an SCTP DATA chunk without its 16-byte header. A packet without a group (-1) or without
// payload passes uncounted: the source passes all chunks except DATA chunks, to keep
// connections alive.
//
// The mark is decided last, for passed and dropped packets, and includes this packet if it
// passed. Figure IV.1 marks passed packets only.
func (q *Quantum) Packet(group int, payload uint64) Verdict {
	if group < 0 || group >= len(q.groups) || payload == 0 {
		return Verdict{}
	}
	g := &q.groups[group]
	pass := q.admit(g, payload)
	if pass {
		g.Bytes += payload
		q.used += payload
	} else {
		g.Dropped += payload
	}
	return Verdict{Drop: !pass, CE: q.used+seedMarkMTUs*q.cfg.MTU >= q.cfg.Limit}
}

func (q *Quantum) admit(g *QuantumGroup, payload uint64) bool {
	// The total is checked first, so a packet within its group's guarantee is dropped if the
	// other groups have used up the limit: the covetous effect (chapter VII).
	if q.used+payload >= q.cfg.Limit {
		q.Reset()
		return q.overdraw(g, payload)
	}
	if g.Bytes+payload <= g.Actual {
		return true
	}
	// The whole packet length is borrowed, even if only the last byte exceeded the limit.
	if payload <= q.pool {
		g.Actual += payload
		q.pool -= payload
		return true
	}
	if g.Actual < g.Configured {
		q.Reset()
		return g.Bytes+payload <= g.Actual
	}
	return false
}

func (q *Quantum) overdraw(g *QuantumGroup, payload uint64) bool {
	if !q.cfg.Overdraft || q.wasOverdrawn || g.Bytes+payload > g.Configured {
		return false
	}
	q.overdrawn = true
	return true
}

// Tick ends the quantum: the limit of each group that left a step or more unused is lowered by
// one step, which goes to the pool, and the counters restart. (Chapter III lowers a group that
// is below its configured limit, by 15,000 bytes; figure IV.2 lowers a group that is below its
// actual limit, by one MTU.)
func (q *Quantum) Tick() {
	for i := range q.groups {
		g := &q.groups[i]
		if g.Bytes+q.cfg.Step <= g.Actual {
			g.Actual -= q.cfg.Step
			q.pool += q.cfg.Step
		}
		g.Bytes, g.Dropped = 0, 0
	}
	q.used = 0
	q.wasOverdrawn, q.overdrawn = q.overdrawn, false
}

// Reset restores every group's limit to its guarantee and empties the pool. The counters of the
// quantum are kept, so a group that has borrowed may be over its limit until the next Tick. The
// source resets when the limit is reached, when a lowered group demands its guarantee, when a
// connection is added, and when the limit changes; the caller calls Reset for an added
// connection. (Chapter III resets in the following quantum.)
func (q *Quantum) Reset() {
	for i := range q.groups {
		q.groups[i].Actual = q.groups[i].Configured
	}
	q.pool = 0
	q.resets++
}

// Groups returns a copy of the state of all groups.
func (q *Quantum) Groups() []QuantumGroup { return slices.Clone(q.groups) }

// Clone returns an independent Quantum with the same state.
func (q *Quantum) Clone() *Quantum {
	c := *q
	c.groups = slices.Clone(q.groups)
	return &c
}

// Pool returns the number of bytes that any group may borrow now.
func (q *Quantum) Pool() uint64 { return q.pool }

// Used returns the number of bytes of all groups that passed since the last Tick.
func (q *Quantum) Used() uint64 { return q.used }

// Resets returns the number of resets since NewQuantum.
func (q *Quantum) Resets() uint64 { return q.resets }
