package share

import (
	"math/big"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// The oracle for Quantum implements figures IV.1 and IV.2 with the source's corrections, as
// functions from one complete state to the next. It stores nothing that the source does not
// store: the total is recomputed for every packet, the pool is the difference between the
// guarantees and the groups' limits, and numbers have no width.

type flowState struct {
	cfg       QuantumConfig
	actual    []*big.Int
	passed    []*big.Int
	dropped   []*big.Int
	resets    int
	overdrawn []bool // one entry per quantum; the current one is last
}

func flowStart(cfg QuantumConfig) flowState {
	s := flowState{cfg: cfg, overdrawn: []bool{false}}
	for _, c := range cfg.Configured {
		s.actual = append(s.actual, whole(c))
		s.passed = append(s.passed, whole(0))
		s.dropped = append(s.dropped, whole(0))
	}
	return s
}

func (s flowState) copied() flowState {
	s.actual, s.passed, s.dropped = append([]*big.Int{}, s.actual...), append([]*big.Int{}, s.passed...), append([]*big.Int{}, s.dropped...)
	s.overdrawn = append([]bool{}, s.overdrawn...)
	return s
}

func flowSum(of []*big.Int) *big.Int {
	sum := whole(0)
	for _, v := range of {
		sum = plus(sum, v)
	}
	return sum
}

func flowPool(s flowState) *big.Int {
	guarantees := whole(0)
	for _, c := range s.cfg.Configured {
		guarantees = plus(guarantees, whole(c))
	}
	return new(big.Int).Sub(guarantees, flowSum(s.actual))
}

func flowReset(s flowState) flowState {
	s = s.copied()
	for i := range s.actual {
		s.actual[i] = whole(s.cfg.Configured[i])
	}
	s.resets++
	return s
}

func flowPass(s flowState, group int, length *big.Int) flowState {
	s = s.copied()
	s.passed[group] = plus(s.passed[group], length)
	return s
}

func flowDrop(s flowState, group int, length *big.Int) flowState {
	s = s.copied()
	s.dropped[group] = plus(s.dropped[group], length)
	return s
}

func flowBorrow(s flowState, group int, length *big.Int) flowState {
	s = s.copied()
	s.actual[group] = plus(s.actual[group], length)
	return s
}

func flowOverdraw(s flowState) flowState {
	s = s.copied()
	s.overdrawn[len(s.overdrawn)-1] = true
	return s
}

// flowPacket evaluates every condition of the chart before it acts on any.
func flowPacket(s flowState, group int, payload uint64) (flowState, Verdict) {
	grouped := group >= 0 && group < len(s.actual)
	if !grouped || payload == 0 {
		return s, Verdict{}
	}
	length := whole(payload)
	configured := whole(s.cfg.Configured[group])
	within := func(limit *big.Int) bool { return plus(s.passed[group], length).Cmp(limit) <= 0 }

	reachesTotal := plus(flowSum(s.passed), length).Cmp(whole(s.cfg.Limit)) >= 0
	withinActual := within(s.actual[group])
	fitsPool := length.Cmp(flowPool(s)) <= 0
	depressed := s.actual[group].Cmp(configured) < 0
	withinGuarantee := within(configured)
	overdrewBefore := len(s.overdrawn) > 1 && s.overdrawn[len(s.overdrawn)-2]

	var next flowState
	drop := false
	switch {
	case reachesTotal && s.cfg.Overdraft && withinGuarantee && !overdrewBefore:
		next = flowPass(flowOverdraw(flowReset(s)), group, length)
	case reachesTotal:
		next, drop = flowDrop(flowReset(s), group, length), true
	case withinActual:
		next = flowPass(s, group, length)
	case fitsPool:
		next = flowPass(flowBorrow(s, group, length), group, length)
	case depressed && withinGuarantee:
		next = flowPass(flowReset(s), group, length)
	case depressed:
		next, drop = flowDrop(flowReset(s), group, length), true
	default:
		next, drop = flowDrop(s, group, length), true
	}
	warned := plus(flowSum(next.passed), whole(2*s.cfg.MTU)).Cmp(whole(s.cfg.Limit)) >= 0
	return next, Verdict{Drop: drop, CE: warned}
}

func flowTick(s flowState) flowState {
	s = s.copied()
	step := whole(s.cfg.Step)
	for i := range s.actual {
		if plus(s.passed[i], step).Cmp(s.actual[i]) <= 0 {
			s.actual[i] = new(big.Int).Sub(s.actual[i], step)
		}
		s.passed[i], s.dropped[i] = whole(0), whole(0)
	}
	s.overdrawn = append(s.overdrawn, false)
	return s
}

// visibleState is the visible state of a Quantum or of the oracle.
type visibleState struct {
	Groups     []QuantumGroup
	Pool, Used uint64
	Resets     uint64
}

func (s flowState) visibleState() visibleState {
	v := visibleState{Pool: flowPool(s).Uint64(), Used: flowSum(s.passed).Uint64(), Resets: uint64(s.resets)}
	for i := range s.actual {
		v.Groups = append(v.Groups, QuantumGroup{s.cfg.Configured[i], s.actual[i].Uint64(), s.passed[i].Uint64(), s.dropped[i].Uint64()})
	}
	return v
}

func whole(v uint64) *big.Int     { return new(big.Int).SetUint64(v) }
func plus(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
func sightOf(q *Quantum) (out visibleState) {
	return visibleState{q.Groups(), q.Pool(), q.Used(), q.Resets()}
}

// drawQuantum draws guarantees that total between zero and slightly more than the limit, so
// that the limit, the pool and lowered groups all occur.
func drawQuantum(t *rapid.T) QuantumConfig {
	cfg := QuantumConfig{
		Limit:     rapid.Uint64Range(0, 100).Draw(t, "limit"),
		Step:      rapid.Uint64Range(0, 8).Draw(t, "step"),
		MTU:       rapid.Uint64Range(0, 9).Draw(t, "mtu"),
		Overdraft: rapid.Bool().Draw(t, "overdraft"),
	}
	for range rapid.IntRange(1, 4).Draw(t, "groups") {
		cfg.Configured = append(cfg.Configured, rapid.Uint64Range(0, 50).Draw(t, "configured"))
	}
	return cfg
}

func TestQuantumMatchesFlowChart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawQuantum(t)
		q, s := NewQuantum(cfg), flowStart(cfg)
		var seen []Verdict
		t.Repeat(map[string]func(*rapid.T){
			"packets": func(t *rapid.T) {
				group := rapid.IntRange(-1, len(cfg.Configured)).Draw(t, "group")
				payload := rapid.Uint64Range(0, 12).Draw(t, "payload")
				for range rapid.IntRange(1, 12).Draw(t, "times") {
					var want Verdict
					s, want = flowPacket(s, group, payload)
					if got := q.Packet(group, payload); got != want {
						t.Fatalf("group %d, %d bytes: %+v, want %+v after %+v", group, payload, got, want, s.visibleState())
					}
					seen = append(seen, want)
				}
			},
			"tick": func(t *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(t, "times") {
					q.Tick()
					s = flowTick(s)
				}
			},
			"reset": func(*rapid.T) {
				q.Reset()
				s = flowReset(s)
			},
			"": func(t *rapid.T) {
				if got, want := sightOf(q), s.visibleState(); !reflect.DeepEqual(got, want) {
					t.Fatalf("state %+v, want %+v", got, want)
				}
			},
		})
	})
}

// TestQuantumInvariants checks invariants for any sequence of packets.
func TestQuantumInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawQuantum(t)
		q := NewQuantum(cfg)
		overdrawnBefore := false
		for range rapid.IntRange(1, 20).Draw(t, "quanta") {
			for range rapid.IntRange(0, 30).Draw(t, "packets") {
				group := rapid.IntRange(0, len(cfg.Configured)-1).Draw(t, "group")
				payload := rapid.Uint64Range(1, 12).Draw(t, "payload")
				before := q.Groups()[group]
				verdict := q.Packet(group, payload)
				after := q.Groups()[group]
				if after.Bytes-before.Bytes+after.Dropped-before.Dropped != payload || (after.Bytes == before.Bytes) != verdict.Drop {
					t.Fatalf("%d bytes, %+v: from %+v to %+v", payload, verdict, before, after)
				}
				checkQuantum(t, q, cfg)
			}
			over := q.Used() >= cfg.Limit && q.Used() > 0
			if over && (!cfg.Overdraft || overdrawnBefore) {
				t.Fatalf("%d bytes passed of %d", q.Used(), cfg.Limit)
			}
			overdrawnBefore = over
			q.Tick()
			checkQuantum(t, q, cfg)
		}
	})
}

func checkQuantum(t *rapid.T, q *Quantum, cfg QuantumConfig) {
	var actual, configured, used uint64
	for i, g := range q.Groups() {
		actual += g.Actual
		configured += cfg.Configured[i]
		used += g.Bytes
		if g.Bytes > g.Actual && q.Pool() > 0 {
			t.Fatalf("group %d is over its limit while the pool is not empty: %+v, pool %d", i, g, q.Pool())
		}
	}
	if actual+q.Pool() != configured {
		t.Fatalf("limits %d and pool %d do not total the guarantees %d", actual, q.Pool(), configured)
	}
	if used != q.Used() {
		t.Fatalf("the groups passed %d, the total is %d", used, q.Used())
	}
}
