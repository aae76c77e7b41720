package cli

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/unit"
)

// PacketTick measures the available bandwidth of a's path with the ticks that b sends, within a
// tenth of the capacity, and again from the log.
//
//	a == 50 Mbit/s, 20 of cross traffic == switch == 1 Gbit/s == receiver
//	b == 1 Gbit/s ==/
func TestProbeTicks(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		join := func(from, to string, forward link.Spec) lab.LinkSpec {
			forward.Queue = link.Amount{Time: 200 * time.Millisecond}
			back := forward
			back.Cross = nil
			return lab.LinkSpec{Ends: [2]string{from, to}, Backend: lab.Emulator, Forward: lab.Path{Spec: forward, Exact: true}, Back: lab.Path{Spec: back, Exact: true}}
		}
		l := labtest.Up(t, &lab.Topology{
			Nodes: []lab.NodeSpec{{Name: "a"}, {Name: "b"}, {Name: "switch", Router: true}, {Name: "receiver"}},
			Links: []lab.LinkSpec{
				join("a", "switch", link.Spec{Rate: 50 * unit.Mbit, Delay: time.Millisecond, Cross: []link.Cross{{Load: 20 * unit.Mbit, Model: link.Poisson, Sizes: []int{1514}}}}),
				join("b", "switch", link.Spec{Rate: unit.Gbit, Delay: time.Millisecond}),
				join("switch", "receiver", link.Spec{Rate: unit.Gbit, Delay: time.Millisecond}),
			},
		})
		p := newProbed(t, l, "receiver")
		p.serve("a")
		p.serve("b")
		log := filepath.Join(p.dir, "log")
		for _, args := range [][]string{
			{"probe", "available", "10.0.0.1", "--ticks", "10.0.1.1", "--capacity", "50Mbit", "--key-file", p.key(), "--log", log, "-o", "json"},
			{"probe", "replay", log, "--capacity", "50Mbit", "-o", "json"},
		} {
			out, errs, code := p.headgate(args...)
			if code != exitOK {
				t.Fatalf("exit %d\n%s%s", code, out, errs)
			}
			var r path.Report
			if err := json.Unmarshal([]byte(out), &r); err != nil || r.Directions[probe.In] == nil || r.Directions[probe.In].Available == nil {
				t.Fatalf("%v\n%s%s", err, out, errs)
			}
			if a := r.Directions[probe.In].Available.Available; !a.Known() || math.Abs(a.Value-30e6) > 5e6 {
				t.Errorf("%s: available are %+v, want 30 Mbit/s", args[1], a)
			}
		}
	})
}
