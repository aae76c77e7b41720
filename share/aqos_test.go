package share

import (
	"slices"
	"testing"

	"headgate.dev/headgate/unit"
)

// reservedLink returns a network of one link of 10 Mbit/s with a flow of each class and reservation.
func reservedLink(flows ...ReservedFlow) ReservedNetwork {
	n := ReservedNetwork{Capacities: []unit.Rate{10 * unit.Mbit}, Flows: flows}
	for i := range n.Flows {
		n.Flows[i].Links = []int{0}
	}
	return n
}

func threeFlows() ReservedNetwork {
	return reservedLink(ReservedFlow{Key: "QoS1", Class: 1, Reserved: 4 * unit.Mbit}, ReservedFlow{Key: "QoS2", Class: 2, Reserved: 2 * unit.Mbit}, ReservedFlow{Key: "BE"})
}

func inMbit(mbits ...float64) []unit.Rate {
	out := make([]unit.Rate, len(mbits))
	for i, m := range mbits {
		out[i] = unit.Rate(m * 1e6)
	}
	return out
}

func wantLimits(t *testing.T, when string, got []unit.Rate, want ...float64) {
	t.Helper()
	if !slices.Equal(got, inMbit(want...)) {
		t.Errorf("%s: limits %v, want %v", when, got, inMbit(want...))
	}
}

// runCycles calls Cycle n times with the same rates, and returns the last limits.
func runCycles(s Scheme, n int, mbits ...float64) (limits []unit.Rate) {
	for range n {
		limits = s.Cycle(inMbit(mbits...))
	}
	return limits
}

func TestSeizeBandwidth(t *testing.T) {
	s := &AQoS{}
	wantLimits(t, "at first", s.SetNetwork(threeFlows()), 4, 2, 4)
	wantLimits(t, "all use their reservations", runCycles(s, 4, 4, 2, 4), 4, 2, 4)
	// The mean of 4, 4, 4, 2 is 3.5. Of the 2 that are unused 5 %, 0.1, is withheld from best
	// effort, which gets 0.5 - 0.1 more.
	wantLimits(t, "QoS1 falls", runCycles(s, 1, 2, 2, 4), 3.5, 2, 4.4)
	wantLimits(t, "it stays there", runCycles(s, 1, 2, 2, 4), 3, 2, 4.9)
	wantLimits(t, "its mean is its rate", runCycles(s, 2, 2, 2, 4), 2, 2, 5.9)
	wantLimits(t, "steady", runCycles(s, 5, 2, 2, 4), 2, 2, 5.9)
	// The flow is below its reservation already: nothing more is withheld.
	wantLimits(t, "it falls again", runCycles(s, 4, 1, 2, 4), 1, 2, 6.9)
	wantLimits(t, "it stops", runCycles(s, 4, 0, 2, 4), 0, 2, 7.9)
}

// TestSeizeMinimum: a rate that is slightly below the tracking variable, while the mean is above
// it, is followed in steps of 1 %.
func TestSeizeMinimum(t *testing.T) {
	s := &AQoS{}
	s.SetNetwork(threeFlows())
	runCycles(s, 1, 9, 2, 0) // borrows the pool of 4
	wantLimits(t, "the mean is above the tracking variable", runCycles(s, 1, 7, 2, 0), 7.92, 2, 0.08)
	s.SetNetwork(threeFlows())
	// The mean of 9, 7 and 7.9 is 7.97; the minimum does not lead below the rate.
	wantLimits(t, "the rate is closer than 1 %", runCycles(s, 1, 7.9, 2, 0), 7.9, 2, 0.1)
}

// TestSeizureAfterRise: the prediction of a rise that ends is seized by the mean, which is still below
// the rate. The flow is not lent bandwidth in the same cycle, so it loses 1 of 6 Mbit/s for a
// cycle, and gets it back in the next. This is a weakness of the algorithm.
func TestSeizureAfterRise(t *testing.T) {
	s := &AQoS{}
	s.SetNetwork(threeFlows())
	runCycles(s, 4, 4, 2, 9)
	wantLimits(t, "the trend of 4, 4, 4, 6 is 0.6", runCycles(s, 1, 6, 2, 9), 6.6, 2, 1.4)
	wantLimits(t, "the mean of 4, 4, 6, 6", runCycles(s, 1, 6, 2, 9), 5, 2, 3)
	wantLimits(t, "the trend of 4, 6, 6, 6 is 0.6", runCycles(s, 1, 6, 2, 9), 6.6, 2, 1.4)
	wantLimits(t, "steady", runCycles(s, 5, 6, 2, 9), 6, 2, 2)
}

// TestReturnFromPool: a flow that wakes has its reservation in the next cycle, at the expense of
// best effort, and not more; then it may borrow.
func TestReturnFromPool(t *testing.T) {
	s := &AQoS{}
	s.SetNetwork(threeFlows())
	wantLimits(t, "QoS1 sleeps", runCycles(s, 10, 0, 2, 9), 0, 2, 7.8)
	wantLimits(t, "it wakes", runCycles(s, 1, 5, 2, 9), 4, 2, 4)
	// The trend of 0, 0, 5, 5 is 2 per cycle.
	wantLimits(t, "it borrows", runCycles(s, 1, 5, 2, 9), 7, 2, 1)
}

// TestReturnFromFlows: without a pool the loan of the lowest class is taken first, and only what
// is needed; flows keep their reservations.
func TestReturnFromFlows(t *testing.T) {
	n := reservedLink(ReservedFlow{Key: "QoS1", Class: 1, Reserved: 4 * unit.Mbit}, ReservedFlow{Key: "QoS2", Class: 2, Reserved: 1 * unit.Mbit},
		ReservedFlow{Key: "QoS3", Class: 3, Reserved: 1 * unit.Mbit}, ReservedFlow{Key: "QoS4", Class: 4, Reserved: 4 * unit.Mbit}, ReservedFlow{Key: "BE"})
	sleep := func() Scheme {
		s := &AQoS{}
		s.SetNetwork(n)
		runCycles(s, 10, 0, 1, 1, 4, 9)
		runCycles(s, 10, 0, 3, 2.8, 4, 9)
		wantLimits(t, "loans", runCycles(s, 1, 0, 3, 2.8, 4, 9), 0, 3, 2.8, 4, 0)
		return s
	}
	wantLimits(t, "one loan is enough", runCycles(sleep(), 1, 1, 3, 2.8, 4, 9), 1.3, 3, 1.7, 4, 0)
	wantLimits(t, "two loans are needed", runCycles(sleep(), 1, 2.8, 3, 2.8, 4, 9), 3.64, 1.36, 1, 4, 0)
	wantLimits(t, "all loans end", runCycles(sleep(), 1, 5, 3, 2.8, 4, 9), 4, 1, 1, 4, 0)
}

// TestRedistributeBandwidth: the highest class borrows first. A loan is not taken for a loan of a
// higher class.
func TestRedistributeBandwidth(t *testing.T) {
	s := &AQoS{}
	s.SetNetwork(threeFlows())
	wantLimits(t, "both grow", runCycles(s, 1, 6, 5, 9), 6, 4, 0)
	s = &AQoS{}
	s.SetNetwork(threeFlows())
	wantLimits(t, "QoS2 grows", runCycles(s, 10, 4, 7, 9), 4, 6, 0)
	wantLimits(t, "QoS1 grows later", runCycles(s, 10, 6, 7, 9), 4, 6, 0)
	wantLimits(t, "QoS2 returns its loan", runCycles(s, 10, 6, 2, 9), 6, 2, 2)
}

// TestPoolsOnPath: only the smallest pool of a path is available, and only loans on a link that
// lacks bandwidth are taken.
func TestPoolsOnPath(t *testing.T) {
	n := ReservedNetwork{Capacities: inMbit(10, 6), Flows: []ReservedFlow{
		{Key: "long", Class: 1, Links: []int{0, 1}, Reserved: 2 * unit.Mbit},
		{Key: "first", Class: 2, Links: []int{0}, Reserved: 2 * unit.Mbit},
		{Key: "second", Class: 3, Links: []int{1, 1}, Reserved: 2 * unit.Mbit},
		{Key: "BE first", Links: []int{0}},
		{Key: "BE both", Links: []int{0, 1}},
	}}
	s := &AQoS{}
	s.SetNetwork(n)
	wantLimits(t, "the second link is full", runCycles(s, 1, 9, 2, 2, 0, 0), 4, 2, 2, 4, 0)
	s = &AQoS{}
	s.SetNetwork(n)
	runCycles(s, 10, 0, 2, 2, 5, 5)
	wantLimits(t, "loans of both links", runCycles(s, 10, 0, 7, 5.9, 5, 5), 0, 7, 5.9, 2.9, 0)
	wantLimits(t, "the second link's ends", runCycles(s, 1, 2, 7, 5.9, 5, 5), 2, 7, 4, 1, 0)
}

// TestBestEffortIsAggregate: flows of best effort divide the pools by what they offer, and
// what they do not use is theirs to grow.
func TestBestEffortIsAggregate(t *testing.T) {
	s := &AQoS{}
	s.SetNetwork(reservedLink(ReservedFlow{Key: "QoS1", Class: 1, Reserved: 4 * unit.Mbit}, ReservedFlow{Key: "BE 1"}, ReservedFlow{Key: "BE 2"}))
	wantLimits(t, "overload", runCycles(s, 1, 4, 8, 4), 4, 4, 2)
	wantLimits(t, "no overload", runCycles(s, 1, 4, 3, 1), 4, 4, 2)
}

// TestFindIncrease: a flow that jumped while nothing was left for it is not forgotten when
// its trend is flat.
func TestFindIncrease(t *testing.T) {
	h := rateHistory{600, 600, 600, 600}
	if findIncrease(600, 600, h) || !findIncrease(600, 599, h) || !findIncrease(700, 900, append(h, 700)) {
		t.Error("an increase is a rising trend, or more than the meter passes")
	}
}

func TestRateHistory(t *testing.T) {
	var h rateHistory
	if h.last() != 0 || h.previous(7) != 7 || h.mean() != 0 || h.trend() != 0 {
		t.Error("an empty history is not zero")
	}
	for _, r := range []int64{1000, 1, 2, 3, 4, 5, 6, 900, 900, 900, 1250} {
		h.add(r)
	}
	if len(h) != 10 || h[0] != 1 {
		t.Errorf("the last ten samples: %v", h)
	}
	// Least squares of 900, 900, 900, 1250: (3 * (1250-900)) / 10 = 105 per cycle.
	if h.mean() != 987 || h.trend() != 105 || h.previous(7) != 900 {
		t.Errorf("mean %d, trend %d, previous %d", h.mean(), h.trend(), h.previous(7))
	}
	if h = (rateHistory{100, 40}); h.trend() != -60 {
		t.Errorf("trend %d of two samples", h.trend())
	}
}

// TestSetNetworkKeepsState: a flow keeps its limit when others come, go and change places, and
// new reservations end loans, from the lowest class.
func TestSetNetworkKeepsState(t *testing.T) {
	s := &AQoS{}
	n := threeFlows()
	s.SetNetwork(n)
	runCycles(s, 10, 1, 5, 9) // QoS1 has 1 of 4, QoS2 has 5 of 2
	n.Flows[0], n.Flows[1], n.Flows[2] = n.Flows[2], n.Flows[0], n.Flows[1]
	wantLimits(t, "another order", s.SetNetwork(n), 3.85, 1, 5)
	n.Flows = append(n.Flows, ReservedFlow{Key: "new", Class: 3, Links: []int{0}, Reserved: 4 * unit.Mbit})
	wantLimits(t, "a new reservation", s.SetNetwork(n), 0, 1, 4.85, 4)
	n.Flows[1].Reserved = 3 * unit.Mbit
	wantLimits(t, "another rate", s.SetNetwork(n), 0, 3, 3, 4)
	n.Capacities[0] = 8 * unit.Mbit
	wantLimits(t, "less capacity", s.SetNetwork(n), 0, 3, 2, 4)
	wantLimits(t, "a flow leaves", s.SetNetwork(reservedLink(n.Flows[1:]...)), 3, 2, 4)
}

func TestSetNetworkPanics(t *testing.T) {
	for name, n := range map[string]ReservedNetwork{
		"same keys":     reservedLink(ReservedFlow{}, ReservedFlow{}),
		"class above":   reservedLink(ReservedFlow{Class: 5}),
		"class below":   reservedLink(ReservedFlow{Class: -1}),
		"unknown link":  {Flows: []ReservedFlow{{Links: []int{0}}}},
		"negative link": {Flows: []ReservedFlow{{Links: []int{-1}}}},
	} {
		for _, s := range []Scheme{&AQoS{}, &StaticMeters{}, &DiffServ{}, &Hybrid{}} {
			if !panicked(func() { s.SetNetwork(n) }) {
				t.Errorf("%T accepts a network with %s", s, name)
			}
		}
	}
	for _, s := range []Scheme{&AQoS{}, &StaticMeters{}, &DiffServ{}, &Hybrid{}} {
		s.SetNetwork(threeFlows())
		if !panicked(func() { s.Cycle(inMbit(1)) }) {
			t.Errorf("%T accepts one rate for three flows", s)
		}
	}
}

func panicked(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
