package oftest

import (
	"math"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// flood is one computation of all streams.
type flood struct {
	now      time.Time
	seconds  float64
	meters   map[*meter]*fluidResource
	dirs     []*direction
	order    []*meter
	stream   *Stream
	counting bool // the parts that pass are known, and counters are advanced
}

// Constants of the computation. Rates that depend on each other in a circle are approached step by step.
const (
	maxRounds = 200
	precision = 1e-9
)

// balance finds the parts that meters and cables pass: it offers all streams to them, until the parts no longer change.
func (f *flood) balance(n *Network) {
	for _, c := range n.cables {
		for _, d := range c.dirs {
			d.fluidResource = fluidResource{pass: 1}
			if c.options.Capacity > 0 {
				f.dirs = append(f.dirs, d)
			}
		}
	}
	for range maxRounds {
		for _, d := range f.dirs {
			d.offered, d.packets = 0, 0
		}
		for _, r := range f.meters {
			r.offered, r.packets = 0, 0
		}
		for _, s := range n.streams {
			f.start(s)
		}
		change := 0.0
		set := func(r *fluidResource, capacity float64, offered float64) {
			pass := 1.0
			if offered > capacity {
				pass = capacity / offered
			}
			change = max(change, math.Abs(pass-r.pass))
			r.pass = pass
		}
		for _, d := range f.dirs {
			set(&d.fluidResource, float64(d.cable.options.Capacity), d.offered)
		}
		for _, m := range f.order {
			r := f.meters[m]
			_, capacity := m.tightest(f)
			set(r, capacity, m.units(r))
		}
		if change < precision {
			return
		}
	}
}

// units is what a meter counts of a resource: bit/s or packets/s.
func (m *meter) units(r *fluidResource) float64 {
	if m.flags&openflow.MeterKbps != 0 {
		return r.offered
	}
	return r.packets
}

// perUnit is the tokens of a bit or a packet.
func (m *meter) perUnit() float64 {
	if m.flags&openflow.MeterKbps != 0 {
		return bitTokens
	}
	return unitTokens
}

// tightest returns the band that passes the least, and what it passes in the time of the step, in bit/s or packets/s.
func (m *meter) tightest(f *flood) (least *band, rate float64) {
	rate = math.Inf(1)
	for _, b := range m.bands {
		if r := b.available(m, f) / m.perUnit() / f.seconds; r < rate {
			least, rate = b, r
		}
	}
	return least, rate
}

// available is the tokens that a band has and gets until now.
func (b *band) available(m *meter, f *flood) float64 {
	return float64(b.tokens) + float64(f.now.Sub(m.updated))*float64(b.Rate)
}

// start passes a stream through the network.
func (f *flood) start(s *Stream) {
	if s.root != nil && s.rate > 0 {
		f.pass(s.root, s.rate/8/float64(len(s.frame)))
	}
}

// pass passes a rate in packets/s through the steps of a node.
func (f *flood) pass(n *node, rate float64) {
	for i := range n.steps {
		st := &n.steps[i]
		switch {
		case st.meter != nil:
			rate *= f.metered(st, rate)
		case st.out != nil || st.dir != nil:
			f.send(st, rate)
		case f.counting:
			f.count(st, rate)
		}
	}
}

// metered returns the part of a rate that passes a meter.
func (f *flood) metered(st *traceStep, rate float64) float64 {
	r := f.meters[st.meter]
	if r == nil {
		r = &fluidResource{pass: 1}
		f.meters[st.meter] = r
		f.order = append(f.order, st.meter)
	}
	if !f.counting {
		r.offered += rate * 8 * st.size
		r.packets += rate
		return r.pass
	}
	n := rate * f.seconds
	st.meter.count(n, n*st.size)
	if b, _ := st.meter.tightest(f); r.pass < 1 {
		b.count(n*(1-r.pass), n*(1-r.pass)*st.size)
	}
	return r.pass
}

// send passes a rate out of a port, or out of a host, and on.
func (f *flood) send(st *traceStep, rate float64) {
	d := st.dir
	if d != nil && !f.counting {
		d.offered += rate * 8 * st.size
	}
	if d != nil {
		rate *= d.pass
	}
	n := rate * f.seconds
	if st.out != nil && f.counting {
		st.out.tx.count(n, n*st.size)
	}
	switch {
	case d == nil || d.lost || !d.cable.plugged:
	case d.to.host != nil && f.counting:
		h := d.to.host
		h.frames.count(n, n*st.size)
		if f.stream.delivered == nil {
			f.stream.delivered = map[*Host]float64{}
		}
		f.stream.delivered[h] += rate * 8 * st.size
	case st.next != nil:
		if f.counting {
			st.next.in.rx.count(n, n*st.size)
		}
		f.pass(st.next, rate)
	}
}

// count advances the counters of a table and its flow, or of a group or bucket.
func (f *flood) count(st *traceStep, rate float64) {
	n := rate * f.seconds
	if st.counter != nil {
		st.counter.count(n, n*st.size)
	}
	if st.table == nil {
		return
	}
	st.table.fluid.count(n, 0)
	if st.flow != nil {
		st.table.fluidMatched.count(n, 0)
		st.flow.count(n, n*st.size)
		st.flow.used = f.now
	}
}

// finish takes the tokens of what passed.
func (f *flood) finish() {
	for _, m := range f.order {
		r := f.meters[m]
		used := m.units(r) * r.pass * f.seconds * m.perUnit()
		for _, b := range m.bands {
			b.tokens = uint64(min(max(b.available(m, f)-used, 0), float64(b.size())))
		}
		m.updated = f.now
	}
}
