package cli

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/unit"
)

// The ratio of two servers' capacities is estimated from the order of their packets, within
// a tenth:
//
//	a == 200 Mbit/s == switch == 1 Gbit/s == receiver
//	b == 500 Mbit/s ==/
func TestProbeCompare(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		path := func(rate unit.Rate, delay time.Duration) lab.Path {
			return lab.Path{Spec: link.Spec{Rate: rate, Delay: delay, Queue: link.Amount{Time: 200 * time.Millisecond}}, Exact: true}
		}
		join := func(from, to string, p lab.Path) lab.LinkSpec {
			return lab.LinkSpec{Ends: [2]string{from, to}, Backend: lab.Emulator, Forward: p, Back: p}
		}
		l := labtest.Up(t, &lab.Topology{
			Nodes: []lab.NodeSpec{{Name: "a"}, {Name: "b"}, {Name: "switch", Router: true}, {Name: "receiver"}},
			Links: []lab.LinkSpec{
				join("a", "switch", path(200*unit.Mbit, 2*time.Millisecond)), join("b", "switch", path(500*unit.Mbit, 6*time.Millisecond)),
				join("switch", "receiver", path(unit.Gbit, time.Millisecond)),
			},
		})
		p := newProbed(t, l, "receiver")
		p.serve("a")
		p.serve("b")
		out, err := p.command(p.client, "probe", "compare", "10.0.0.1", "10.0.1.1", "--key-file", p.key(), "-o", "json").Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var pairs []measure.Comparison
		if err := json.Unmarshal(out, &pairs); err != nil || len(pairs) != 1 {
			t.Fatalf("%v\n%s", err, out)
		}
		if r := pairs[0].Result.Ratio; !r.Known() || math.Abs(r.Value/2.5-1) > 0.1 {
			t.Errorf("the ratio of 500 and 200 Mbit/s is %+v", r)
		}
	})
}
