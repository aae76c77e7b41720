package collective

import (
	"math"
	"slices"
	"time"
)

// Parameters of RFC 8382, section 2.2.
const (
	sbdInterval = 350 * time.Millisecond // T
	sbdLong     = 50                     // N, intervals of frequency and loss
	sbdShort    = 30                     // M, intervals of the other statistics
	// Bounds of what is a bottleneck: c_s, c_h, and p_l.
	sbdSkew, sbdSkewBefore, sbdLoss = 0.1, 0.3, 0.05
	// sbdCrossing is p_v: a crossing of the mean counts if it is by that part of the variation.
	sbdCrossing = 0.7
)

// Parameters chosen by Headgate. RFC 8382 compares what flows are like; flows through one queue also see the same delays at the same times.
const (
	// sameQueue is the correlation of the delays of two connections, over the last sbdShort intervals, from which on they are taken to share a queue, if there is one:
	// a delay that varies by minVariation.
	sameQueue    = 0.75
	minVariation = 500 * time.Microsecond
	// minShared is the number of intervals in which both have readings.
	minShared = 20
)

// Bottlenecks finds which connections share a bottleneck, from the readings of their round trips. The zero value is ready to use.
type Bottlenecks struct {
	flows    map[ID]*delays
	interval int64 // number of the current one
}

// delays are the delays of a connection.
type delays struct {
	last       Reading
	current    delayInterval
	past       []delayInterval // at most sbdLong, the newest last
	mean       float64         // of the delays over sbdShort intervals, before the current one
	bottleneck bool            // it was seen in the last interval
}

// delayInterval is what was seen in an interval; delays are in seconds.
type delayInterval struct {
	number int64
	n, sum float64
	skew   float64 // samples below the mean less those above it
	spread float64 // sum of the differences from the mean of the interval before
	lost   float64
	sent   float64 // segments
}

func (d delayInterval) mean() float64 { return d.sum / d.n }

// Observe processes a reading of a connection.
func (b *Bottlenecks) Observe(id ID, r Reading) {
	if b.flows == nil {
		b.flows = map[ID]*delays{}
	}
	f := b.flows[id]
	if f == nil {
		f = &delays{last: r}
		b.flows[id] = f
	}
	number := int64(r.At / sbdInterval)
	b.interval = max(b.interval, number)
	if number != f.current.number {
		f.close()
		f.current = delayInterval{number: number}
	}
	d, c := r.Newest.Seconds(), &f.current
	c.n++
	c.sum += d
	c.skew += sign(f.mean - d)
	if n := len(f.past); n > 0 {
		c.spread += math.Abs(d - f.past[n-1].mean())
	}
	c.lost += float64(r.Lost)
	c.sent += float64(r.Acked-f.last.Acked) / segment
	f.last = r
}

// Remove removes a connection.
func (b *Bottlenecks) Remove(id ID) { delete(b.flows, id) }

// close ends the current interval.
func (f *delays) close() {
	if f.current.n == 0 {
		return
	}
	f.past = append(f.past, f.current)
	if len(f.past) > sbdLong {
		f.past = slices.Delete(f.past, 0, 1)
	}
	sum, recent := 0.0, f.recent()
	for _, i := range recent {
		sum += i.mean()
	}
	f.mean = sum / float64(len(recent))
	f.bottleneck = f.summary().congested(f.bottleneck)
}

// recent returns the last sbdShort intervals.
func (f *delays) recent() []delayInterval { return f.past[max(len(f.past)-sbdShort, 0):] }

// sbdSummary is the summary statistics of a connection (RFC 8382, section 3.2).
type sbdSummary struct{ skew, variation, frequency, loss float64 }

func (f *delays) summary() (s sbdSummary) {
	n := 0.0
	for _, i := range f.recent() {
		n += i.n
		s.skew += i.skew
		s.variation += i.spread
	}
	s.skew, s.variation = s.skew/n, s.variation/n
	lost, sent, side := 0.0, 0.0, 0.0
	for _, i := range f.past {
		lost, sent = lost+i.lost, sent+i.sent
		if off := i.mean() - f.mean; math.Abs(off) > sbdCrossing*s.variation {
			if side*off < 0 {
				s.frequency++
			}
			side = off
		}
	}
	s.frequency /= float64(len(f.past))
	if sent > 0 {
		s.loss = lost / sent
	}
	return s
}

// congested reports whether the connection passes a bottleneck (section 3.3, 1).
func (s sbdSummary) congested(before bool) bool {
	return s.skew < sbdSkew || s.skew < sbdSkewBefore && before || s.loss > sbdLoss
}

// Groups returns the connections that share a bottleneck, in groups of at least two.
func (b *Bottlenecks) Groups() (out [][]ID) {
	var some []ID
	for id, f := range b.flows {
		if len(f.past) >= minShared && f.bottleneck && b.interval-f.past[len(f.past)-1].number <= 2 {
			some = append(some, id)
		}
	}
	slices.Sort(some)
	for len(some) > 0 {
		group := []ID{some[0]}
		var rest []ID
		for _, id := range some[1:] {
			if slices.ContainsFunc(group, func(in ID) bool { return b.shared(in, id) }) {
				group = append(group, id)
			} else {
				rest = append(rest, id)
			}
		}
		if len(group) > 1 {
			out = append(out, group)
		}
		some = rest
	}
	return out
}

// shared reports whether two connections see the same delays at the same times.
func (b *Bottlenecks) shared(x, y ID) bool {
	p, q := b.flows[x].recent(), b.flows[y].recent()
	var n, sx, sy, sxx, syy, sxy float64
	for i, j := 0, 0; i < len(p) && j < len(q); {
		switch d := p[i].number - q[j].number; {
		case d < 0:
			i++
		case d > 0:
			j++
		default:
			u, v := p[i].mean(), q[j].mean()
			n, sx, sy, sxx, syy, sxy = n+1, sx+u, sy+v, sxx+u*u, syy+v*v, sxy+u*v
			i, j = i+1, j+1
		}
	}
	if n < minShared {
		return false
	}
	vx, vy := sxx/n-sx/n*sx/n, syy/n-sy/n*sy/n
	least := minVariation.Seconds() * minVariation.Seconds()
	return vx > least && vy > least && (sxy/n-sx/n*sy/n)/math.Sqrt(vx*vy) >= sameQueue
}

func sign(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}
