package share

import (
	"math"
	"math/rand/v2"
	"testing"

	"headgate.dev/headgate/unit"
)

// A constant flow has false seizures at most once an hour also in the time in which its noise is learned, counted over its first ten minutes, and if its rate is
// also looked at within each cycle.
func TestLearning(t *testing.T) {
	const flows, minutes, rounds = 20, 10, 30
	for _, sd := range []float64{0, 0.01, 0.05, 0.10} {
		total, early := 0, 0
		rnd := rand.New(rand.NewPCG(30, uint64(1000*sd)))
		for range rounds {
			a := NewAdaptive(DefaultQuantum)
			var list []ReservedFlow
			for i := range flows {
				list = append(list, ReservedFlow{Reserved: unit.Mbit, Class: 1 + i%4})
			}
			list = append(list, ReservedFlow{})
			limits := a.SetNetwork(oneLink(40*unit.Mbit, list...))
			seen := newSeizures(limits[:flows])
			offered, rises := make([]unit.Rate, flows+1), make([]unit.Rate, flows+1)
			offered[flows] = unit.Gbit
			for second := range minutes * 60 {
				for i := range flows {
					offered[i] = unit.Rate(0.9e6 * math.Max(0, 1+sd*rnd.NormFloat64()))
					if rises[i] = 0; float64(offered[i]) > 1.02*float64(limits[i]) {
						rises[i] = offered[i]
					}
				}
				seen.within(a.Rise(rises)[:flows])
				limits = a.Cycle(offered)
				seen.count(limits[:flows])
				if second == 30 {
					for _, n := range seen.n {
						early += n
					}
				}
			}
			for _, n := range seen.n {
				total += n
			}
		}
		hours := float64(rounds*flows*minutes) / 60
		t.Logf("noise %g: %.3f false seizures a flow and hour, of which %.3f within the first half minute", sd, float64(total)/hours, float64(early)/hours)
		if float64(total)/hours > 1 {
			t.Errorf("noise %g: %.2f false seizures a flow and hour", sd, float64(total)/hours)
		}
	}
}
