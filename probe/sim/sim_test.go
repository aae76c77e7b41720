package sim_test

import (
	"math"
	"testing"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/unit"
)

// The seed counts packets without a layer 2 header: 1500 bytes in the seed are 1486 here.
const mtu = 1500 - probe.Overhead

// Figures 2.2 and 2.3: 9 packets of an MTU at rate c pass a link with a distance of s/c.
// With a shaper of c/2 and two MTUs before it, the first K = 3 have that distance and the
// rest 2 s/c.
func TestShaperSpacing(t *testing.T) {
	const c = 120 * unit.Mbit // s/c is 100 us
	train := probe.Uniform("", 9, mtu, c)
	one := sim.New(sim.Path{Hops: []link.Spec{{Rate: c}}}, 1).Send(train)
	for i, d := range one.Dispersions() {
		if d != 100_000 {
			t.Errorf("network 1: dispersion %d is %d ns", i, d)
		}
	}
	two := sim.New(sim.Path{Hops: []link.Spec{{Rate: c, Bucket: &link.Bucket{Rate: c / 2, Size: 3000}}}}, 1).Send(train)
	k := int(tokenrate.K(3000*8, 1500*8, 60e6, 120e6, 120e6))
	if k != 3 {
		t.Errorf("K is %d, want 3", k)
	}
	for i, d := range two.Dispersions() {
		want := int64(200_000)
		if i < k-1 {
			want = 100_000
		}
		if math.Abs(float64(d-want)) > 2 {
			t.Errorf("network 2: dispersion %d is %d ns, want %d", i, d, want)
		}
	}
}
