package available_test

import (
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// figure511 is two links of 1 Gbit/s with cross traffic on the path of the probes, and
// one on the path of the ticks (network b), which meet before a third.
func figure511(first, second, ticks float64) sim.Meeting {
	hop := func(load float64) link.Spec {
		s := link.Spec{Rate: unit.Gbit, Delay: 100 * time.Microsecond, Queue: simtest.UnboundedQueue}
		if load > 0 {
			s.Cross = []link.Cross{{Load: unit.Rate(load), Sizes: []int{54, 590, 1514}}}
		}
		return s
	}
	return sim.Meeting{
		Branches: []sim.Path{{Hops: []link.Spec{hop(first), hop(second)}}, {Hops: []link.Spec{hop(ticks)}}},
		Shared:   sim.Path{Hops: []link.Spec{{Rate: 10 * unit.Gbit, Queue: simtest.UnboundedQueue}}, Noise: 700 * time.Nanosecond},
		Jitter:   100 * time.Microsecond,
	}
}

// Figure 5.12: with an available bandwidth of 400 Mbit/s, S_PDT rises more above it the
// longer the tick interval is. With exact times it rises least.
func TestFigure512(t *testing.T) {
	rates := []unit.Rate{300, 350, 400, 450, 500, 550, 600}
	above := map[time.Duration]float64{}
	for _, gap := range []time.Duration{60 * time.Microsecond, 120 * time.Microsecond, 240 * time.Microsecond} {
		line := ""
		for _, rate := range rates {
			n := sim.NewJoint(figure511(600e6, 400e6, 0), 1)
			ticked, exact := 0.0, 0.0
			for range 30 {
				s := n.Send(probe.Joint{
					Trains: []probe.Train{
						probe.Uniform("", 200, 1500, rate*unit.Mbit),
						probe.Uniform("", int(20*time.Millisecond/gap), 500, unit.Rate(514*8e9/float64(gap))),
					},
					Start: []time.Duration{2 * time.Millisecond, 0},
				})
				own := s.Sender(0)
				var delays []float64
				for i, a := range own.Arrived {
					delays = append(delays, float64(a.At-own.Sent[i]))
				}
				ticked += available.PDT(available.TickDelays(&s, 0, 1)) / 30
				exact += available.PDT(delays) / 30
			}
			line += fmt.Sprintf("  %d: %.2f, %.2f", rate, ticked, exact)
			if rate > 400 {
				above[gap] += ticked / 4
				above[0] += exact / 12
			} else if rate < 400 && ticked > 0.25 {
				t.Errorf("ticks of %v: S_PDT is %.2f at %d Mbit/s", gap, ticked, rate)
			}
		}
		t.Logf("ticks of %v, S_PDT by ticks and by exact times at Mbit/s:%s", gap, line)
	}
	short, middle, long := above[60*time.Microsecond], above[120*time.Microsecond], above[240*time.Microsecond]
	if short < above[0] || middle < short || long < middle {
		t.Errorf("S_PDT above 400 Mbit/s: %.2f with exact times; %.2f, %.2f and %.2f with ticks", above[0], short, middle, long)
	}
}

// packetTick lets PacketTick measure, and returns the result and the realised bandwidth.
func packetTick(m sim.Meeting, seed uint64) (r available.Result, truth float64, bytes unit.Bytes) {
	n := sim.NewJoint(m, seed)
	n.Record()
	var method available.PacketTick
	var samples []probe.JointSample
	for len(samples) < 1000 {
		j, ok := method.Next(samples)
		if !ok {
			break
		}
		samples = append(samples, n.Send(j))
		bytes += unit.Bytes(j.Bytes())
	}
	return method.Estimate(samples), float64(n.Realised(0)), bytes
}

// pathload does the same with pathload.
func pathload(p sim.Path, seed uint64) (r available.Result, truth float64, bytes unit.Bytes) {
	n := sim.New(p, seed)
	n.Record()
	// The receiver has received packets before, so that it does not happen to stall just
	// between two streams.
	n.Send(probe.Uniform("", 57, 100, 0))
	var method available.Pathload
	var samples []probe.Sample
	for len(samples) < 100 {
		t, ok := method.Next(samples)
		if !ok {
			break
		}
		samples = append(samples, n.Send(t))
		bytes += t.Bytes()
	}
	return method.Estimate(samples), float64(n.Realised()), bytes
}

// single returns the path of the probes alone.
func single(m sim.Meeting) sim.Path {
	return sim.Path{Hops: append(append([]link.Spec(nil), m.Branches[0].Hops...), m.Shared.Hops...), Noise: m.Shared.Noise}
}

func middle(r available.Result) float64 { return r.Available.Value / 1e6 }

// Table 5.2: the range of PacketTick is narrow, and within 6 % of the capacity of the
// true value (the text: 164-178 for 200, 610-629 for 600); the range of pathload is wide
// and holds it.
func TestTable52(t *testing.T) {
	for mbit := 200.0; mbit <= 800; mbit += 100 {
		m := figure511(1e9-mbit*1e6, 0, 0)
		r, truth, bytes := packetTick(m, 1)
		p, held, sent := pathload(single(m), 1)
		a, b := r.Available, p.Available
		t.Logf("%.0f Mbit/s: PacketTick %.0f-%.0f for %.0f, %v; pathload %.0f-%.0f for %.0f, %v",
			mbit, a.Low/1e6, a.High/1e6, truth/1e6, bytes, b.Low/1e6, b.High/1e6, held/1e6, sent)
		if middle(r) < truth/1e6-60 || middle(r) > truth/1e6+60 || a.High-a.Low > 25e6 {
			t.Errorf("PacketTick is wrong for %.0f", truth/1e6)
		}
		if b.Low > held+25e6 || b.High < held-25e6 || b.High-b.Low < 25e6 {
			t.Errorf("pathload's range does not hold %.0f", held/1e6)
		}
	}
}

// Figure 5.16: PacketTick is about right (600 Mbit/s) for any load on the path of the
// ticks.
func TestFigure516(t *testing.T) {
	for _, c := range []unit.Rate{1000, 300} {
		for load := 0.1; load < 0.95; load += 0.2 {
			m := figure511(400e6, 0, load*float64(c)*1e6)
			m.Branches[1].Hops[0].Rate = c * unit.Mbit
			r, truth, bytes := packetTick(m, 1)
			t.Logf("%.0f %% of %d Mbit/s: %.0f for %.0f Mbit/s, %v", 100*load, c, middle(r), truth/1e6, bytes)
			if middle(r) < truth/1e6-120 || middle(r) > truth/1e6+60 {
				t.Errorf("PacketTick is wrong with %.0f %% of %d Mbit/s", 100*load, c)
			}
		}
	}
}

// Figure 5.18: with a receiver that stalls, pathload is wrong or has a very wide range,
// unless stalls are rare; PacketTick is right.
func TestFigure518(t *testing.T) {
	for _, packets := range []int{200, 1000} {
		for _, stands := range []time.Duration{1, 5, 10} {
			m := figure511(400e6, 0, 0)
			m.Shared.Hops[0].Suspension = &link.Suspension{Packets: packets, Time: stands * time.Millisecond}
			r, truth, bytes := packetTick(m, 1)
			p, held, _ := pathload(single(m), 1)
			b := p.Available
			t.Logf("%d packets, %d ms: PacketTick %.0f for %.0f Mbit/s, %v; pathload %.0f-%.0f for %.0f",
				packets, stands, middle(r), truth/1e6, bytes, b.Low/1e6, b.High/1e6, held/1e6)
			if middle(r) < truth/1e6-60 || middle(r) > truth/1e6+60 {
				t.Errorf("PacketTick is wrong with %d packets, %d ms", packets, stands)
			}
			if packets == 200 && b.Low < held && b.High < held*1.2 {
				t.Errorf("pathload is right with %d packets, %d ms", packets, stands)
			}
		}
	}
}
