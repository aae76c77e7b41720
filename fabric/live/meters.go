package live

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/unit"
)

// limitTimeout is how long a switch may take to answer a change of meters, or a reading of them.
const limitTimeout = 5 * time.Second

// metering is the meters that a switch has for circuits, and what they have counted. A change of a meter sets its counters to 0 (measured with
// Open vSwitch 3.1), so that they are read in the same moment, and what they had is added up.
type metering struct {
	busy chan struct{} // has one element while messages about meters are under way, in whose order the rest is kept
	has  map[openflow.MeterID]*circuitMeter
	// pending reports that sendLimits waits, for the meters in changed, whose limits may be others than those that the switch has. n.mu must be held for both.
	pending bool
	changed map[openflow.MeterID]bool
	flows   map[uint32]counts        // of circuits, at the last reading
	reply   openflow.MeterStatsReply // memory for the next one
}

// circuitMeter is a meter of circuits in a switch.
type circuitMeter struct {
	program.Meter
	numbers []uint32
	// read are its counters at the last reading, and counted reports whether there was one, or they began at 0.
	read    volume
	counted bool
	sum     volume // since the last call of ReadCircuits
	// age is that of the meter at the last reading, by the clock of its switch, and since that at the last call of ReadCircuits: 0 if it is not
	// known. They are of use if they are fine: not in whole seconds.
	age, since time.Duration
	fine       bool
}

// counts are what the flows of a circuit have counted, and the age of the newest.
type counts struct {
	bytes uint64
	age   time.Duration
}

// volume is bytes before and after a meter.
type volume struct {
	offered, passed uint64
	// took is the time in which they were counted if timed, which is 0 if the switch has not counted since. Else only the controller's clock knows it.
	took  time.Duration
	timed bool
	// known reports that they were counted, and gap that a part was not: the counter began again, or is a new one.
	known, gap bool
}

func newMetering() metering {
	return metering{busy: make(chan struct{}, 1), has: map[openflow.MeterID]*circuitMeter{}, changed: map[openflow.MeterID]bool{}, flows: map[uint32]counts{}}
}

// lock waits until no other messages about meters are under way.
func (m *metering) lock(ctx context.Context) error {
	select {
	case m.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryLock reports whether it has locked at once.
func (m *metering) tryLock() bool {
	select {
	case m.busy <- struct{}{}:
		return true
	default:
		return false
	}
}

func (m *metering) unlock() { <-m.busy }

// limit sets the limits that are in force in a program.
func (n *Network) limit(s *attached, c *program.Connectivity, p *program.Program) {
	n.mu.Lock()
	defer n.mu.Unlock()
	limited := map[openflow.MeterID]program.Meter{}
	for _, m := range c.Circuits.Limits(s.id, n.circuits.limits) {
		limited[m.ID] = m
	}
	for i, m := range p.Meters {
		if l, ok := limited[m.ID]; ok {
			p.Meters[i] = l
		}
	}
}

// correct sets in a state that follows from a plan the limits that the switch has by now. One that was read is right.
func (m *metering) correct(state *program.State, read bool) {
	if read {
		return
	}
	for i, one := range state.Meters {
		if has, ok := m.has[one.Meter]; ok {
			state.Meters[i] = openflow.MeterConfig{Flags: has.Flags, Meter: has.ID, Bands: has.Bands}
		}
	}
}

// becomes keeps what meters a switch has by a program.
func (m *metering) becomes(p program.Program, c *program.Circuits, id fabric.DPID) {
	has := map[openflow.MeterID]*circuitMeter{}
	for _, one := range p.Meters {
		if !program.IsCircuitMeter(one.ID) {
			continue
		}
		was := m.has[one.ID] // with its counters
		if was == nil {
			was = &circuitMeter{}
		}
		was.Meter, was.numbers = one, c.Metered(id, one.ID)
		has[one.ID] = was
	}
	m.has = has
}

// applyStep sends changes. If meters of circuits are among them, it reads counters just before: those of the only one, or of all.
func (n *Network) applyStep(ctx context.Context, s *attached, messages []openflow.Message) error {
	var resets []openflow.MeterID
	for _, m := range messages {
		if mod, ok := m.(*openflow.MeterMod); ok && program.IsCircuitMeter(mod.Meter) {
			resets = append(resets, mod.Meter)
		}
	}
	if len(resets) == 0 {
		return s.conn.Apply(ctx, messages...)
	}
	asked := openflow.MeterAll
	if len(resets) == 1 {
		asked = resets[0]
	}
	reply, unread, err := session.AskThenApply[*openflow.MeterStatsReply](ctx, s.conn, &openflow.MeterStatsRequest{Meter: asked}, messages...)
	if unread == nil {
		s.metering.take(reply.Meters)
	}
	for _, id := range resets {
		if m := s.metering.has[id]; m != nil {
			m.read, m.counted = volume{}, err == nil
		}
	}
	return err
}

// take adds what meters have counted since the last reading.
func (m *metering) take(all []openflow.MeterCounters) {
	for _, one := range all {
		has, ok := m.has[one.Meter]
		if !ok {
			continue
		}
		now := volume{offered: one.Bytes, passed: one.Bytes}
		for _, b := range one.Bands {
			now.passed -= min(b.Bytes, now.passed)
		}
		if has.counted && now.offered >= has.read.offered {
			has.sum.offered += now.offered - has.read.offered
			has.sum.passed += now.passed - min(has.read.passed, now.passed)
		} else {
			has.sum.gap = true
		}
		has.read, has.counted, has.age = now, true, 0
		if one.Duration.Known() {
			has.age, has.fine = one.Duration.Duration(), has.fine || one.Duration.Nsec != 0
		}
	}
}

// SetLimits changes the limits of circuits, and leaves those of others as they are. It changes meters alone: each that changes
// takes one message. It does not wait. A limit holds until the next one, or until SetCircuits changes the circuit's own. Circuits that share a meter are
// held to the sum.
func (n *Network) SetLimits(limits map[uint32]program.Limit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.circuits.limits == nil {
		n.circuits.limits = map[uint32]program.Limit{}
	}
	for number, limit := range limits {
		if was, ok := n.circuits.limits[number]; ok && was == limit {
			continue
		}
		n.circuits.limits[number] = limit
		if n.plan == nil {
			continue
		}
		c, ok := n.plan.Circuits.State(number)
		if !ok || c.Meter == 0 {
			continue
		}
		if s := n.switches[c.At()]; s != nil {
			s.metering.changed[c.Meter] = true
			if !s.metering.pending {
				s.metering.pending = true
				go n.sendLimits(s)
			}
		}
	}
}

// sendLimits brings the meters of a switch that changed to the limits in force.
func (n *Network) sendLimits(s *attached) {
	ctx, cancel := context.WithTimeout(n.ctx, stepTimeout)
	defer cancel()
	locked := s.metering.lock(ctx) == nil
	n.mu.Lock()
	m := &s.metering
	m.pending = false // from here on a change comes after this one
	if !locked {
		n.mu.Unlock()
		return
	}
	defer m.unlock()
	changed := m.changed
	m.changed = map[openflow.MeterID]bool{}
	var want []program.Meter
	for id := range changed {
		if n.plan == nil {
			break
		}
		if one, ok := n.plan.Circuits.Limited(s.id, id, n.circuits.limits); ok {
			want = append(want, one)
		}
	}
	n.mu.Unlock()
	slices.SortFunc(want, func(a, b program.Meter) int { return cmp.Compare(a.ID, b.ID) })
	want = slices.DeleteFunc(want, func(one program.Meter) bool {
		// One that the switch does not have yet comes with the plan, and one of others changes with it.
		has, ok := m.has[one.ID]
		return !ok || one.Why != has.Why || reflect.DeepEqual(one, has.Meter)
	})
	if len(want) == 0 {
		return
	}
	messages := make([]openflow.Message, len(want))
	for i, one := range want {
		messages[i] = &openflow.MeterMod{Command: openflow.MeterModify, Flags: one.Flags, Meter: one.ID, Bands: one.Bands}
	}
	if err := n.applyStep(ctx, s, messages); err != nil {
		if s.conn.Err() == nil && n.ctx.Err() == nil {
			n.options.Log.Warn("a switch did not take the limits of circuits", "switch", s.id, "error", err)
		}
		n.mu.Lock()
		maps.Copy(m.changed, changed) // they are sent again with the next ones
		n.mu.Unlock()
		return
	}
	for _, one := range want {
		m.has[one.ID].Meter = one
	}
}

// CircuitReading is what a circuit has carried.
type CircuitReading struct {
	Number uint32 // of the circuit
	// Index is where the list of SetCircuits has it, if it has it and is in force.
	Index int
	// At is when its switch has counted, by a clock of the circuit, and Interval the time since the reading before, 0 if this is the first. It is the
	// time of the switch where that is known: the controller takes an answer some time after the switch counted, which is 1 % of a second or
	// more where it is busy. Where a part of what was carried was not counted, as on a meter that was added since, the clock stands and the sums stay:
	// Interval is 0.
	At       time.Time
	Interval time.Duration
	// Offered and Passed are the mean rates in the interval in bit/s of layer 2: before and after its limit.
	Offered, Passed unit.Rate
	// OfferedBytes and PassedBytes are the sums since the first reading.
	OfferedBytes, PassedBytes uint64
}

// tally is the sum of the readings of a circuit.
type tally struct {
	volume
	at       time.Time // by the clock of the circuit
	answered time.Time
}

// ReadCircuits reads what circuits have carried since they were last read, from their first switches at once, those in of if it is not nil, with one request to
// each; with two to those that have circuits without a meter of their own, whose flows are read. The circuits of switches that do not answer until ctx ends
// are not in the result, nor are those that are sent as best effort. Of circuits that share a meter, each has the same part dropped. One goroutine at a
// time may call it, and the result is valid until the next call.
func (n *Network) ReadCircuits(ctx context.Context, of map[fabric.DPID]bool) []CircuitReading {
	ctx, cancel := context.WithTimeout(ctx, limitTimeout)
	defer cancel()
	n.mu.Lock()
	all := n.readersOf()
	asks := n.reading.asks[:0]
	for id, circuits := range all.at {
		if s := n.switches[id]; s != nil && (of == nil || of[id]) {
			asks = append(asks, circuitsAt{s, circuits})
		}
	}
	n.mu.Unlock()
	r := &n.reading
	r.asks, r.answers = asks, r.answers[:0]
	var waits []waiting
	for _, one := range asks {
		r.asked.Add(1)
		if forget, ok := r.start(one); ok {
			waits = append(waits, waiting{one, forget})
			continue
		}
		go func() {
			defer r.asked.Done()
			r.ask(ctx, one)
		}()
	}
	stop := context.AfterFunc(ctx, func() {
		for _, one := range waits {
			if one.forget() {
				one.metering.unlock()
				r.asked.Done()
			}
		}
	})
	r.asked.Wait()
	stop()
	clear(asks) // their switches may be gone by the next call
	return r.answers
}

// reading is a call of ReadCircuits. The buffers stay for the next one: for 1,000 switches and 20,000 circuits they have 4 MB.
type reading struct {
	asks  []circuitsAt
	asked sync.WaitGroup

	mu      sync.Mutex
	answers []CircuitReading
}

// circuitsAt are the circuits that are read at a switch.
type circuitsAt struct {
	*attached
	circuits []reader
}

// waiting is a switch that is asked, until forget is called.
type waiting struct {
	circuitsAt
	forget func() bool
}

// start asks a switch for its meters alone, if that tells what its circuits have carried and no other messages about meters are under way, and reports
// whether it has asked.
func (r *reading) start(a circuitsAt) (forget func() bool, ok bool) {
	if metered, flows := a.sources(); !metered || flows || !a.metering.tryLock() {
		return nil, false
	}
	forget, err := session.Start(a.conn, &openflow.MeterStatsRequest{Meter: openflow.MeterAll}, &a.metering.reply, func(reply *openflow.MeterStatsReply, err error) {
		defer r.asked.Done()
		defer a.metering.unlock()
		if err == nil {
			a.metering.take(reply.Meters)
			r.take(a, nil)
		}
	})
	if err != nil {
		a.metering.unlock()
		return nil, false // as is found again
	}
	return forget, true
}

// add adds what a circuit has carried, as its switch answered at a moment.
func (t *tally) add(v volume, at time.Time) (r CircuitReading) {
	switch {
	case t.answered.IsZero():
		t.at = at
	case !v.gap:
		t.offered, t.passed = t.offered+v.offered, t.passed+v.passed
		if r.Interval = v.took; !v.timed {
			r.Interval = at.Sub(t.answered)
		}
		t.at = t.at.Add(r.Interval)
		if s := r.Interval.Seconds(); s > 0 {
			r.Offered, r.Passed = unit.Rate(float64(v.offered)*8/s), unit.Rate(float64(v.passed)*8/s)
		}
	}
	t.answered = at
	r.At, r.OfferedBytes, r.PassedBytes = t.at, t.offered, t.passed
	return r
}

// sources returns whether meters and flows tell what the circuits have carried.
func (a circuitsAt) sources() (metered, flows bool) {
	for _, c := range a.circuits {
		metered = metered || c.meter != 0
		flows = flows || c.meter == 0 || c.shares
	}
	return metered, flows
}

// ask asks a switch for all that tells what its circuits have carried, and waits for the answers.
func (r *reading) ask(ctx context.Context, a circuitsAt) {
	m := &a.metering
	if err := m.lock(ctx); err != nil {
		return
	}
	defer m.unlock()
	metered, flows := a.sources()
	var counted map[uint32]volume
	if flows {
		all, err := flowsOf(ctx, a.conn, openflow.FlowsWith(program.CountedBy()))
		if err != nil {
			return
		}
		sums := map[uint32]counts{}
		for _, f := range all {
			number, age := program.CircuitOf(f.Cookie), f.Duration.Duration()
			sum, ok := sums[number]
			if !ok || age < sum.age {
				sum.age = age
			}
			sum.bytes += f.Bytes
			sums[number] = sum
		}
		counted = make(map[uint32]volume, len(sums))
		for number, sum := range sums {
			v := volume{gap: true}
			if before, ok := m.flows[number]; ok && sum.bytes >= before.bytes && sum.age >= before.age {
				v = volume{offered: sum.bytes - before.bytes, passed: sum.bytes - before.bytes}
			}
			counted[number] = v
		}
		m.flows = sums
	}
	if metered {
		reply, err := session.Ask[*openflow.MeterStatsReply](ctx, a.conn, &openflow.MeterStatsRequest{Meter: openflow.MeterAll})
		if err != nil {
			return
		}
		m.take(reply.Meters)
	}
	r.take(a, counted)
}

// take takes what the circuits of a switch have carried since the last call, whose messages about meters are locked. counted are the bytes of flows.
func (r *reading) take(a circuitsAt, counted map[uint32]volume) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now()
	for _, c := range a.circuits {
		if v := a.metering.volume(c, counted); v.known {
			r.answers = append(r.answers, c.tally.add(v, at))
			last := &r.answers[len(r.answers)-1]
			last.Number, last.Index = c.number, c.index
		}
	}
	for _, one := range a.metering.has {
		one.sum, one.since = volume{}, one.age
	}
}

// volume returns what a circuit has carried since the last call of ReadCircuits.
func (m *metering) volume(c reader, counted map[uint32]volume) (v volume) {
	meter, has := m.has[c.meter]
	all, flowed := counted[c.number]
	switch {
	case has && len(meter.numbers) == 1:
		v = meter.sum
		if meter.fine && 0 < meter.since && meter.since <= meter.age {
			v.took, v.timed = meter.age-meter.since, true
		}
	case flowed && has:
		v = all
		if v.gap = v.gap || meter.sum.gap; meter.sum.offered > 0 {
			v.passed = uint64(float64(v.offered) * float64(meter.sum.passed) / float64(meter.sum.offered))
		}
	case flowed && c.meter == 0:
		v = all
	default:
		return v
	}
	v.known = true
	return v
}
