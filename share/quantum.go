package share

import "slices"

// QuantumConfig is what the quantum algorithm divides, in payload bytes per
// quantum. QuantumForRate makes one from rates.
type QuantumConfig struct {
	// Limit is the total of all groups (the source's ReqMaxBandwidth). A packet
	// that would reach it is dropped, so at most Limit-1 bytes pass.
	Limit uint64
	// Configured is each group's guarantee (configuredByteLimit). The source does
	// not check that the sum fits the limit, and neither does the model.
	Configured []uint64
	// Step is what an idle group gives up at each quantum (SCTP_DEFAULT_MINWINDOW).
	Step uint64
	// MTU is the path MTU. The source asks the connection; here it is one for all.
	MTU uint64
	// Overdraft is the second remedy of chapter VII. When the limit is reached, a
	// packet inside its group's guarantee passes all the same, unless the quantum
	// before was overdrawn too: over-use lasts one quantum at most. The first
	// remedy, a shorter quantum, is a smaller Limit with Tick called more often.
	Overdraft bool
}

// QuantumGroup is the state of one group, in payload bytes.
type QuantumGroup struct {
	Configured uint64 // the guarantee
	Actual     uint64 // what it may use now: less when it idled, more when it borrowed
	Bytes      uint64 // passed since the last Tick
	Dropped    uint64 // dropped since the last Tick
}

// Verdict is the answer for one packet. The zero Verdict lets it pass unmarked.
type Verdict struct {
	Drop bool
	// CE tells the connection that the total is nearly used. A dropped packet
	// can carry it too: the source sets a flag of the connection, not of the
	// packet.
	CE bool
}

// Quantum is the seed's bandwidth controller (chapter IV, appendix B) for one
// direction of one interface. It has no clock: the owner calls Tick when a
// quantum ends. The zero value has no groups, and passes everything.
type Quantum struct {
	cfg    QuantumConfig
	groups []QuantumGroup
	used   uint64 // by all groups since the last Tick
	pool   uint64 // given up by idle groups, not yet borrowed
	resets uint64 // since the start

	overdrawn bool // this quantum
	barred    bool // the quantum before was overdrawn
}

// NewQuantum starts with every group at its guarantee and an empty pool.
func NewQuantum(cfg QuantumConfig) *Quantum {
	q := &Quantum{}
	q.Reconfigure(cfg)
	q.resets = 0
	return q
}

// Reconfigure changes the limit, the guarantees and the options, and resets. The
// counts of the quantum are kept, by group number. (In the source a new limit
// leaves the guarantees at their share of the old one until each group is added
// again, and adding a group does not take its bytes back from the pool, so that
// limits and pool add up to more than was configured. Neither is kept.)
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

// Packet asks for one packet with the given payload in bytes: the data of a TCP
// segment, or of an SCTP DATA chunk without its 16-byte header. A packet of no
// group (-1) and one without payload pass uncounted: the source lets all but
// DATA chunks through, to keep connections alive.
//
// The mark is decided last, with this packet counted if it passed, and whether
// or not it passed. Figure IV.1 marks passing packets only.
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
	// The total is asked first, so a group inside its guarantee is dropped when
	// the others have used everything: the covetous effect (chapter VII).
	if q.used+payload >= q.cfg.Limit {
		q.Reset()
		return q.overdraw(g, payload)
	}
	if g.Bytes+payload <= g.Actual {
		return true
	}
	// The whole packet is borrowed, also when only its last byte was too much.
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
	if !q.cfg.Overdraft || q.barred || g.Bytes+payload > g.Configured {
		return false
	}
	q.overdrawn = true
	return true
}

// Tick ends the quantum: each group that left a step or more unused is lowered by
// one step, which goes to the pool, and the counts start again. (Chapter III
// lowers a group that is below its configured limit, by 15,000 bytes; figure IV.2
// one that is below its actual limit, by one MTU.)
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
	q.barred, q.overdrawn = q.overdrawn, false
}

// Reset puts every group back to its guarantee and empties the pool; the counts
// of the quantum stay, so a group that has borrowed may be over its limit until
// the next Tick. The source resets when the limit is reached, when a depressed
// group wants its guarantee back, when a connection is added, and when the limit
// changes; the owner calls Reset for an added connection. (Chapter III puts the
// reset into the following quantum.)
func (q *Quantum) Reset() {
	for i := range q.groups {
		q.groups[i].Actual = q.groups[i].Configured
	}
	q.pool = 0
	q.resets++
}

// Groups is a copy of the state of all groups.
func (q *Quantum) Groups() []QuantumGroup { return slices.Clone(q.groups) }

// Copy is another Quantum in the same state.
func (q *Quantum) Copy() *Quantum {
	c := *q
	c.groups = slices.Clone(q.groups)
	return &c
}

// Pool is the number of bytes that any group may borrow now.
func (q *Quantum) Pool() uint64 { return q.pool }

// Used is the number of bytes that all groups have passed since the last Tick.
func (q *Quantum) Used() uint64 { return q.used }

// Resets counts the resets since the start.
func (q *Quantum) Resets() uint64 { return q.resets }
