package share

import (
	"slices"
	"testing"

	"headgate.dev/headgate/unit"
)

const none = unit.MaxRate

// leaf returns a top-level claim whose weight is its guarantee, as for host groups.
func leaf(guarantee, ceiling, demand unit.Rate) Claim {
	return Claim{Parent: -1, Guarantee: guarantee, Ceiling: ceiling, Weight: uint64(guarantee), Demand: demand}
}

func TestAllocate(t *testing.T) {
	const M = unit.Mbit
	in := func(parent, priority int, c Claim) Claim { c.Parent, c.Priority = parent, priority; return c }
	seed := func(demands ...unit.Rate) (claims []Claim) {
		for i, d := range demands {
			claims = append(claims, leaf(unit.Rate(i+1)*10*M, none, d))
		}
		return claims
	}
	// pair returns two tenants with 20 % and two groups of 10 % each.
	pair := func(a1, a2, b1, b2 unit.Rate) []Claim {
		return []Claim{
			leaf(20*M, none, 0), in(0, 0, leaf(10*M, none, a1)), in(0, 0, leaf(10*M, none, a2)),
			leaf(20*M, none, 0), in(3, 0, leaf(10*M, none, b1)), in(3, 0, leaf(10*M, none, b2)),
		}
	}
	ceiling := func(c unit.Rate, of int, claims []Claim) []Claim { claims[of].Ceiling = c; return claims }
	tests := []struct {
		name   string
		limit  unit.Rate
		spare  Spare
		claims []Claim
		want   []unit.Rate
	}{
		{"no claims", 100 * M, Proportional, nil, []unit.Rate{}},
		{"all within their guarantee", 100 * M, Proportional, seed(10*M, 10*M, 10*M, 10*M), []unit.Rate{10 * M, 10 * M, 10 * M, 10 * M}},
		{"the seed's overload", 100 * M, Proportional, seed(30*M, 30*M, 30*M, 30*M),
			[]unit.Rate{13333333, 26666667, 30 * M, 30 * M}},
		{"the seed's overload, equal", 100 * M, Equal, seed(30*M, 30*M, 30*M, 30*M), []unit.Rate{15 * M, 25 * M, 30 * M, 30 * M}},
		// The measured rates of HTB with segmenting leaves are 19.25 and 76.48 of 95.6.
		{"two of four active", 95600000, Proportional, []Claim{leaf(9560000, none, none), leaf(38240000, none, none)}, []unit.Rate{19120000, 76480000}},
		{"spare by weight, equal guarantees", 100 * M, Proportional, []Claim{
			{Parent: -1, Guarantee: 10 * M, Ceiling: none, Weight: 1, Demand: none},
			{Parent: -1, Guarantee: 10 * M, Ceiling: none, Weight: 3, Demand: none},
		}, []unit.Rate{30 * M, 70 * M}},
		{"unused bandwidth goes to the others", 100 * M, Equal, []Claim{leaf(10*M, none, 15*M), leaf(10*M, none, none), leaf(10*M, none, none)},
			[]unit.Rate{15 * M, 42500000, 42500000}},
		{"a ceiling limits like a demand", 100 * M, Equal, []Claim{leaf(10*M, 15*M, none), leaf(10*M, none, none)}, []unit.Rate{15 * M, 85 * M}},
		{"a ceiling below the guarantee takes precedence", 100 * M, Proportional, []Claim{leaf(60*M, 20*M, none), leaf(40*M, none, none)}, []unit.Rate{20 * M, 80 * M}},
		{"all ceilings reached: the rest stays unused", 100 * M, Proportional, []Claim{leaf(10*M, 20*M, none), leaf(10*M, 30*M, none)}, []unit.Rate{20 * M, 30 * M}},
		{"by priority, guarantees first", 100 * M, Priority, []Claim{
			in(-1, 2, leaf(20*M, none, none)), in(-1, 1, leaf(20*M, none, 50*M)), in(-1, 1, leaf(20*M, 30*M, none)), in(-1, 9, leaf(0, none, none)),
		}, []unit.Rate{20 * M, 50 * M, 30 * M, 0}},
		{"one priority, equal parts", 100 * M, Priority, []Claim{in(-1, 1, leaf(30*M, none, none)), in(-1, 1, leaf(10*M, none, none))}, []unit.Rate{60 * M, 40 * M}},
		{"weight zero is served last", 100 * M, Proportional, []Claim{leaf(0, none, none), leaf(40*M, 70*M, none), leaf(0, none, none)},
			[]unit.Rate{15 * M, 70 * M, 15 * M}},
		{"weight zero beside weight one", 100 * M, Proportional, []Claim{
			{Parent: -1, Ceiling: none, Demand: none}, {Parent: -1, Ceiling: none, Weight: 1, Demand: 70 * M},
		}, []unit.Rate{30 * M, 70 * M}},
		{"oversold guarantees are scaled", 60 * M, Proportional, []Claim{leaf(80*M, none, none), leaf(80*M, none, 40*M)}, []unit.Rate{40 * M, 20 * M}},
		{"a limit of zero", 0, Proportional, seed(M, M), []unit.Rate{0, 0}},
		{"remainders are allocated", 10, Equal, []Claim{leaf(0, none, none), leaf(0, none, none), leaf(0, none, none)}, []unit.Rate{3, 3, 4}},
		{"tenant, VM, group", 100 * M, Proportional, []Claim{
			in(1, 0, leaf(10*M, none, none)),  // a group, before its VM
			in(2, 0, leaf(30*M, 50*M, 0)),     // a VM with a ceiling; its own demand is ignored
			in(-1, 0, leaf(40*M, none, 0)),    // tenant one
			in(1, 0, leaf(20*M, none, none)),  // the VM's other group
			in(2, 0, leaf(10*M, none, 5*M)),   // tenant one's other VM
			in(-1, 0, leaf(60*M, none, 20*M)), // tenant two
			in(-1, 0, leaf(0, none, 1000*M)),  // gets the remainder
		}, []unit.Rate{16666666, 50 * M, 55 * M, 33333334, 5 * M, 20 * M, 25 * M}},
		{"a parent's ceiling scales its children's guarantees", 100 * M, Proportional, []Claim{
			in(-1, 0, leaf(90*M, 30*M, 0)), in(0, 0, leaf(60*M, none, none)), in(0, 0, leaf(30*M, none, none)),
		}, []unit.Rate{30 * M, 20 * M, 10 * M}},
		{"idle children lend to their siblings first", 100 * M, Proportional, []Claim{
			in(-1, 0, leaf(50*M, none, 0)), in(0, 0, leaf(40*M, none, 0)), in(0, 0, leaf(10*M, none, none)), in(-1, 0, leaf(50*M, none, none)),
		}, []unit.Rate{50 * M, 0, 50 * M, 50 * M}},
		{"a tenant's rate is independent of its active groups", 100 * M, Proportional, pair(none, 0, none, none),
			[]unit.Rate{50 * M, 50 * M, 0, 50 * M, 25 * M, 25 * M}},
		{"one group of each tenant", 100 * M, Proportional, pair(none, 0, none, 0), []unit.Rate{50 * M, 50 * M, 0, 50 * M, 50 * M, 0}},
		{"unused bandwidth goes to siblings", 100 * M, Proportional, pair(none, 0, 21*M, none),
			[]unit.Rate{50 * M, 50 * M, 0, 50 * M, 21 * M, 29 * M}},
		// The same as without nesting, where the tenant is a single group.
		{"the only active group of a tenant gets the tenant's rate", 40 * M, Proportional, []Claim{
			leaf(16*M, none, 0), in(0, 0, leaf(10*M, none, none)), in(0, 0, leaf(2*M, none, 0)), in(0, 0, leaf(4*M, none, 0)),
			leaf(4*M, none, none),
		}, []unit.Rate{32 * M, 32 * M, 0, 0, 8 * M}},
		{"a tenant's ceiling limits its groups together", 100 * M, Proportional, ceiling(50*M, 3, pair(none, 0, none, none)),
			[]unit.Rate{50 * M, 50 * M, 0, 50 * M, 25 * M, 25 * M}},
		{"a tenant's ceiling, and a satisfied group below it", 100 * M, Proportional, ceiling(50*M, 3, pair(none, 0, 12*M, none)),
			[]unit.Rate{50 * M, 50 * M, 0, 50 * M, 12 * M, 38 * M}},
		{"a tenant's ceiling at its guarantee", 100 * M, Proportional, ceiling(20*M, 3, pair(none, 0, none, 0)),
			[]unit.Rate{80 * M, 80 * M, 0, 20 * M, 20 * M, 0}},
		{"the weight of a claim with children counts beside its siblings", 100 * M, Proportional, []Claim{
			{Parent: -1, Guarantee: 20 * M, Ceiling: none, Weight: 1, Priority: 1}, in(0, 0, leaf(10*M, none, none)),
			{Parent: -1, Guarantee: 20 * M, Ceiling: none, Weight: 9, Priority: 0}, in(2, 0, leaf(10*M, none, none)),
		}, []unit.Rate{26 * M, 26 * M, 74 * M, 74 * M}},
		{"each level lends by weight", 100 * M, Proportional, []Claim{
			leaf(40*M, none, 0), in(0, 0, leaf(10*M, none, none)), in(0, 0, leaf(20*M, none, none)), in(0, 0, leaf(10*M, none, 4*M)),
			leaf(30*M, none, none), // 30 of the limit are lent as 17.1 and 12.9, and the tenant's spare as 1 to 2
		}, []unit.Rate{57142857, 17714285, 35428572, 4 * M, 42857143}},
		{"each level lends equally", 100 * M, Equal, []Claim{
			leaf(40*M, none, 0), in(0, 0, leaf(10*M, none, none)), in(0, 0, leaf(20*M, none, none)), in(0, 0, leaf(10*M, none, 4*M)),
			leaf(30*M, none, none),
		}, []unit.Rate{55 * M, 20500000, 30500000, 4 * M, 45 * M}},
		{"priorities order only siblings", 100 * M, Priority, []Claim{
			in(-1, 1, leaf(40*M, none, 0)), in(0, 7, leaf(10*M, none, none)), in(0, 6, leaf(10*M, none, none)),
			leaf(30*M, none, none),
		}, []unit.Rate{40 * M, 10 * M, 30 * M, 60 * M}},
		{"lending from limit to tenant, VM and group", 100 * M, Equal, []Claim{
			leaf(60*M, none, 0),                                                                            // tenant
			in(0, 0, leaf(30*M, none, 0)), in(1, 0, leaf(10*M, none, none)), in(1, 0, leaf(10*M, none, 0)), // its VM can lend 20
			in(0, 0, leaf(10*M, none, none)), // the other VM shares the tenant's 30
			leaf(20*M, none, none),           // shares the limit's 20
		}, []unit.Rate{70 * M, 45 * M, 45 * M, 0, 25 * M, 30 * M}},
		{"a tenant's guarantee limits those of its groups", 100 * M, Proportional, []Claim{
			leaf(20*M, none, 0), in(0, 0, leaf(30*M, none, none)), in(0, 0, leaf(10*M, none, none)), leaf(80*M, none, none),
		}, []unit.Rate{20 * M, 15 * M, 5 * M, 80 * M}},
		{"a scaled tenant lends less", 60 * M, Equal, []Claim{
			leaf(80*M, none, 0), in(0, 0, leaf(20*M, none, none)), in(0, 0, leaf(10*M, none, none)), leaf(40*M, none, none),
		}, []unit.Rate{40 * M, 25 * M, 15 * M, 20 * M}},
		{"the largest rates", unit.MaxRate, Proportional, []Claim{leaf(none, none, none), leaf(none, none, none), leaf(1, none, 1)},
			[]unit.Rate{4999999999999, 5000000000000, 1}},
		{"the largest weights", unit.MaxRate, Proportional, []Claim{
			{Parent: -1, Ceiling: ^unit.Rate(0), Weight: ^uint64(0), Demand: ^unit.Rate(0)},
			{Parent: -1, Ceiling: ^unit.Rate(0), Weight: ^uint64(0), Demand: ^unit.Rate(0)},
		}, []unit.Rate{unit.MaxRate / 2, unit.MaxRate / 2}},
		{"rates beyond the largest", ^unit.Rate(0), Proportional, []Claim{
			leaf(^unit.Rate(0), ^unit.Rate(0), ^unit.Rate(0)), leaf(^unit.Rate(0), ^unit.Rate(0), ^unit.Rate(0)), leaf(0, none, 5),
		}, []unit.Rate{unit.MaxRate, unit.MaxRate, 5}},
		{"a cycle gets nothing", 100 * M, Equal, []Claim{leaf(0, none, none), in(2, 0, leaf(0, none, none)), in(1, 0, leaf(0, none, none))}, []unit.Rate{100 * M, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Allocate(tt.limit, tt.spare, tt.claims); !slices.Equal(got, tt.want) {
				t.Errorf("got  %d\nwant %d", got, tt.want)
			}
		})
	}
}

func TestAllocatePanicsOnInvalidParent(t *testing.T) {
	for _, parent := range []int{-2, 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("parent %d of a single claim is accepted", parent)
				}
			}()
			Allocate(unit.Gbit, Equal, []Claim{{Parent: parent}})
		}()
	}
}
