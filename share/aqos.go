package share

import (
	"math"
	"slices"

	"headgate.dev/headgate/unit"
)

// AQoS is the adaptive algorithm of the reservations thesis (section 3.3, algorithms 1 to 3). It
// is a reference implementation: its weaknesses are kept, because Adaptive is measured against
// them.
//
// Each QoS flow has a tracking variable, which is the rate of its meter. A cycle records the
// offered rates, seizes bandwidth from flows below their tracking variable, returns it to flows
// that grow back into their reservations, and lends the rest to flows at their reservations.
// Best effort gets what the tracking variables leave, so it has a meter too.
//
// The network graph has one pool per link: its capacity minus what the QoS flows hold. The
// thesis has two, for seized and for unreserved bandwidth, but RETURN-BW and REDISTRIBUTE-BW
// may both take from best effort, so that they never differ in effect.
//
// The text and the pseudo-code differ, and the text of section 3.3 is followed:
//
//   - Line 3 of RETURN-BW, read by the usual precedence, is true for every flow above its
//     reservation, which would take loans back for new loans. Here the flow must also be
//     tracked below its reservation, and gets at most its reservation.
//   - Lines 13 to 15 of RETURN-BW add what was taken from one flow again for the next one.
//     Here it is added once, and the loop ends when no flow has a loan.
//   - Line 1 of REDISTRIBUTE-BW selects the flows with a flag. Here it is those without one:
//     flows flagged as growing are "subsequently ignored by the bandwidth loaning component".
//   - TAKE-BW takes from any flow. Here the other flow must cross a link that the flow lacks,
//     which is always so in the thesis' network.
//
// Time for n QoS flows is O(n) per cycle, and O(n) more for each flow whose reservation is lent
// to others at its return.
type AQoS struct {
	network ReservedNetwork
	flows   []*aqosFlow // in the order of network.Flows
	qos     []*aqosFlow // the flows of a class, from the highest
	pool    []int64     // of each link; negative if reservations exceed its capacity
}

// The constants of the thesis, section 3.3.
const (
	aqosKept   = 10 // rate samples kept of each flow
	aqosUsed   = 4  // rate samples from which trends are extracted
	aqosBuffer = 20 // the growth buffer is one part in 20, 5 %, of the unused bandwidth
)

// aqosMinimum is ours: the "bare minimum decrease" has no number in the thesis. It is one part in
// 100 of the tracking variable, less than the growth buffer.
const aqosMinimum = 100

type aqosFlag int

const (
	aqosSteady aqosFlag = iota // NULL
	aqosDecreasing
	aqosGrowing
)

// aqosFlow is the state of one flow.
type aqosFlow struct {
	links    []int
	class    int
	reserved int64
	history  rateHistory
	tracking int64
	buffer   int64 // withheld from the pools
	flag     aqosFlag
}

// SetNetwork implements Scheme. Best effort begins with what reservations leave. A flow whose
// reservation has changed is tracked at least at the
// new one. If the pools lack bandwidth for new flows or on new paths, loans end, from the lowest
// class.
func (a *AQoS) SetNetwork(n ReservedNetwork) []unit.Rate {
	n.check()
	before := make(map[string]*aqosFlow, len(a.flows))
	for i, f := range a.network.Flows {
		before[f.Key] = a.flows[i]
	}
	a.network, a.flows, a.qos = n.clone(), make([]*aqosFlow, len(n.Flows)), nil
	a.pool = make([]int64, len(n.Capacities))
	for l, c := range n.Capacities {
		a.pool[l] = int64(min(c, unit.MaxRate))
	}
	for i, f := range a.network.Flows {
		reserved := int64(min(f.Reserved, unit.MaxRate))
		s := before[f.Key]
		switch {
		case s == nil || s.class == BestEffort:
			s = &aqosFlow{tracking: reserved}
		case s.reserved != reserved:
			s.tracking = max(s.tracking, reserved)
		}
		s.links, s.class, s.reserved = f.Links, f.Class, reserved
		a.flows[i] = s
		if f.Class != BestEffort {
			a.qos = append(a.qos, s)
			for _, l := range s.links {
				a.pool[l] -= s.held()
			}
		}
	}
	slices.SortStableFunc(a.qos, func(x, y *aqosFlow) int { return x.class - y.class })
	for _, f := range slices.Backward(a.qos) {
		a.takeBandwidth(f, f.links, 0)
	}
	return a.limits()
}

// Cycle implements Scheme.
func (a *AQoS) Cycle(offered []unit.Rate) []unit.Rate {
	checkOffered(offered, len(a.flows))
	for i, f := range a.flows {
		f.history.add(int64(min(offered[i], unit.MaxRate)))
		f.flag = aqosSteady
	}
	a.seizeBandwidth()
	a.returnBandwidth()
	a.redistributeBandwidth()
	return a.limits()
}

// seizeBandwidth is algorithm 1, SEIZE-BW. CALC-WINDOW is 0, as in the thesis, so the lower
// bound is the tracking variable. GROWTH_BUFFER is 5 % of the part of the reservation that is
// unused, at most what is seized. It is withheld from the pools until RETURN-BW selects the
// flow; the thesis does not say until when. A flow without a previous sample counts as one that
// used its reservation.
func (a *AQoS) seizeBandwidth() {
	for _, f := range a.qos {
		rate := f.history.last()
		if rate >= f.tracking {
			continue
		}
		decrease := calcOptimalDecrease(f.tracking, rate, f.history)
		f.flag = aqosDecreasing
		buffer := f.buffer
		if rate < f.reserved && f.history.previous(f.reserved) >= f.reserved {
			buffer = min((f.reserved-rate)/aqosBuffer, decrease)
		}
		a.hold(f, f.tracking-decrease, buffer)
	}
}

// returnBandwidth is algorithm 2, RETURN-BW: flows that grow back into their reservations take
// from the pools on their path, and then from flows above their reservations, from the lowest
// class. The growth buffer of the flow goes to the pools first. CALC-WINDOW is 0.
func (a *AQoS) returnBandwidth() {
	for _, f := range a.qos {
		rate := f.history.last()
		if f.flag == aqosDecreasing || f.tracking >= f.reserved || !findIncrease(rate, f.tracking, f.history) && rate < f.reserved {
			continue
		}
		a.hold(f, f.tracking, 0)
		optimal := min(calcOptimalIncrease(f.tracking, rate, f.history), f.reserved-f.tracking)
		returned := min(a.maxAvailableOnPath(f), optimal)
		a.hold(f, f.tracking+returned, 0)
		if remaining := optimal - returned; remaining > 0 {
			for _, other := range slices.Backward(a.qos) {
				if other != f {
					a.takeBandwidth(other, f.links, remaining)
				}
			}
			a.hold(f, f.tracking+min(a.maxAvailableOnPath(f), remaining), 0)
		}
		f.flag = aqosGrowing
	}
}

// redistributeBandwidth is algorithm 3, REDISTRIBUTE-BW: flows at their reservations borrow from
// the pools on their path, from the highest class. CALC-NOMINAL-WINDOW is 0, like CALC-WINDOW.
// "optimal", which the algorithm does not define, is the optimal increase of RETURN-BW. Loans
// are not taken from lower classes: only a reservation ends a loan.
func (a *AQoS) redistributeBandwidth() {
	for _, f := range a.qos {
		if f.flag != aqosSteady || f.tracking < f.reserved {
			continue
		}
		optimal := calcOptimalIncrease(f.tracking, f.history.last(), f.history)
		a.hold(f, f.tracking+min(a.maxAvailableOnPath(f), optimal), f.buffer)
	}
}

// takeBandwidth is TAKE-BW: it returns to the pools what a flow holds above its reservation, if
// it crosses one of links whose pool is less than needed, and at most what that link lacks.
func (a *AQoS) takeBandwidth(other *aqosFlow, links []int, needed int64) {
	lacking := int64(0)
	for _, l := range links {
		if slices.Contains(other.links, l) {
			lacking = max(lacking, needed-a.pool[l])
		}
	}
	if taken := min(other.tracking-other.reserved, lacking); taken > 0 {
		a.hold(other, other.tracking-taken, other.buffer)
	}
}

// maxAvailableOnPath is FIND-MAX-AVAILABLE-ON-PATH and FIND-PATH-UNRESERVED: the smallest pool
// on the path of a flow, because more would not pass the link of that pool.
func (a *AQoS) maxAvailableOnPath(f *aqosFlow) int64 {
	available := int64(math.MaxInt64)
	for _, l := range f.links {
		available = min(available, max(a.pool[l], 0))
	}
	return available
}

// hold sets the tracking variable and the growth buffer of a flow, and moves the difference
// between them and the pools on its path (ADD-TO-AVAILABLE-POOLS and the like).
func (a *AQoS) hold(f *aqosFlow, tracking, buffer int64) {
	before := f.held()
	f.tracking, f.buffer = tracking, buffer
	for _, l := range f.links {
		a.pool[l] += before - f.held()
	}
}

// held is what the flow withholds from the pools. The buffer never makes it more than the
// reservation, so reservations can always be returned.
func (f *aqosFlow) held() int64 {
	return max(f.tracking, min(f.tracking+f.buffer, f.reserved))
}

// limits returns the tracking variable of each QoS flow, and divides the pools among the flows
// of best effort: by what they offered, as in one aggregate, and the rest equally.
func (a *AQoS) limits() []unit.Rate {
	left := make([]unit.Rate, len(a.pool))
	for l, p := range a.pool {
		left[l] = unit.Rate(max(p, 0))
	}
	var claims []Claim
	for _, f := range a.flows {
		if f.class == BestEffort {
			claims = append(claims, Claim{Parent: -1, Links: f.links, Guarantee: unit.Rate(f.history.last()), Ceiling: unit.MaxRate, Demand: unit.MaxRate})
		}
	}
	rates := AllocateLinks(left, Equal, claims)
	limits := make([]unit.Rate, len(a.flows))
	for i, f := range a.flows {
		if f.class == BestEffort {
			limits[i], rates = rates[0], rates[1:]
		} else {
			limits[i] = unit.Rate(f.tracking)
		}
	}
	return limits
}
