package cycle

import (
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/share/sharetest"
	"headgate.dev/headgate/unit"
)

// TestFigure31: the four intervals of figure 3.1 of reservations, from requests to the limits of meters, with exact rates:
//
//	h1 -- s1 ==10 Gbit/s== s2 -- h4
//	h2 --´                   `-- h5
//	h3 --´ best effort
//
// Adaptive is measured when it has settled, between two probes. In interval d the thesis' algorithm withholds 5 % of the
// 0.5 Gbit/s that QoS2 leaves unused, so best effort gets 3.975 and not 4.
func TestFigure31(t *testing.T) {
	top := topology(t, 2, 10*unit.Gbit, [2]fabric.DPID{1, 2})
	qos1, qos2, be := forward("qos1"), forward("qos2"), enters(port(1, 3))
	for _, c := range []struct {
		scheme share.Scheme
		want   [4][3]float64 // Gbit/s
	}{
		{share.NewAdaptive(0), [4][3]float64{{1, 2, 6}, {1, 3.5, 5.5}, {2.5, 3.5, 4}, {4.5, 1.5, 4}}},
		{&share.AQoS{}, [4][3]float64{{1, 2, 6}, {1, 3.5, 5.5}, {2.5, 3.5, 4}, {4.5, 1.5, 3.975}}},
		{&share.StaticMeters{}, [4][3]float64{{1, 2, 6}, {1, 2, 6}, {1, 2, 6}, {1, 1.5, 7}}},
		// The queue of best effort is not in this package.
		{&share.Hybrid{}, [4][3]float64{{1, 2, 6}, {1, 2, 6}, {1, 2, 6}, {1, 1.5, 8}}},
	} {
		n := Network{Topology: top, Enforcers: metered(top), Reservations: admit(t, top,
			request("qos1", 1, port(1, 1), port(2, 1), unit.Gbit, 0), request("qos2", 2, port(1, 2), port(2, 2), 2*unit.Gbit, 0))}
		for _, a := range BestEffort(n, top.NextHops()) {
			if a.id() == be {
				n.BestEffort = append(n.BestEffort, a)
			}
		}
		p := newPlant(t, c.scheme)
		p.set(n)
		for i, interval := range sharetest.Figure31 {
			offered := map[FlowID]unit.Rate{qos1: interval.Offered[0], qos2: interval.Offered[1], be: interval.Offered[2]}
			for range 8 {
				p.run(time.Second, offered)
			}
			for k, id := range []FlowID{qos1, qos2, be} {
				if got := float64(p.got(id, offered[id])) / 1e9; got != c.want[i][k] {
					t.Errorf("%T, interval %s: %v gets %v Gbit/s, want %v", c.scheme, interval.Name, id, got, c.want[i][k])
				}
			}
		}
	}
}
