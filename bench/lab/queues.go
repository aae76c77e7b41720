package lab

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// queueCase is one queue or limiter with real traffic, and its definition.
type queueCase struct {
	name  string
	spec  link.Spec
	check func(s link.Spec, zero int64, packets []carried) verdict
	red   bool
	drawn string
}

func queueCases(d *bench.Draw) (out []bench.Case) {
	at := func(rate unit.Rate, s link.Spec) link.Spec { s.Rate = rate; return s }
	plain := func(check func(link.Spec, []carried) verdict) func(link.Spec, int64, []carried) verdict {
		return func(s link.Spec, _ int64, p []carried) verdict { return check(s, p) }
	}
	size := func(b unit.Bytes) link.Amount { return link.Amount{Bytes: b} }
	v := d.For("queues/drawn-1")
	drawnSpec := link.Spec{Rate: v.Rate(5*unit.Mbit, 200*unit.Mbit), Queue: link.Amount{Segments: v.Int(5, 200)}}
	cases := []queueCase{
		{name: "droptail/bytes", spec: at(50*unit.Mbit, link.Spec{Queue: size(40_000)}), check: plain(droptail)},
		{name: "droptail/segments", spec: at(50*unit.Mbit, link.Spec{Queue: link.Amount{Segments: 30}}), check: plain(droptail)},
		{name: "droptail/time", spec: at(50*unit.Mbit, link.Spec{Queue: link.Amount{Time: 10 * time.Millisecond}}), check: plain(droptail)},
		{name: "droptail/drawn-1", spec: drawnSpec, check: plain(droptail), drawn: fmt.Sprintf("%d segments before %v", drawnSpec.Queue.Segments, drawnSpec.Rate)},
		{name: "mark", spec: at(50*unit.Mbit, link.Spec{Mark: size(30_000), Queue: size(200_000)}), check: plain(step)},
		{name: "red", red: true, spec: at(50*unit.Mbit, link.Spec{Queue: size(300_000), RED: &link.RED{
			Profile: link.Profile{Min: size(30_000), Max: size(90_000), Probability: 0.1},
		}})},
		{name: "red-dscp", red: true, spec: at(50*unit.Mbit, link.Spec{Queue: size(300_000), RED: &link.RED{
			Profile: link.Profile{Min: size(30_000), Max: size(90_000), Probability: 0.1}, ECN: true,
			Classes: []link.REDClass{{DSCP: []uint8{46}, Profile: link.Profile{Min: size(60_000), Max: size(180_000), Probability: 0.05}}},
		}})},
		{name: "bucket", spec: at(unit.Gbit, link.Spec{Bucket: &link.Bucket{Rate: 50 * unit.Mbit, Size: 100_000}, Queue: size(100_000)}), check: bucketed},
		{name: "bucket-1600B", spec: at(unit.Gbit, link.Spec{Bucket: &link.Bucket{Rate: 600 * unit.Mbit, Size: 1600}, Queue: size(1_000_000)}), check: bucketed},
		{name: "peak", spec: at(unit.Gbit, link.Spec{Bucket: &link.Bucket{Rate: 50 * unit.Mbit, Size: 500_000, Peak: 200 * unit.Mbit}, Queue: size(100_000)}), check: bucketed},
		{name: "decay", spec: at(unit.Gbit, link.Spec{Bucket: &link.Bucket{Rate: 65 * unit.Mbit, Size: 4_000_000, Peak: unit.Gbit, PeakLow: 600 * unit.Mbit}, Queue: size(500_000)}), check: bucketed},
		{name: "gift", spec: at(unit.Gbit, link.Spec{Bucket: &link.Bucket{Rate: 50 * unit.Mbit, Size: 100_000, Peak: 320 * unit.Mbit, Gift: 2_000_000, GiftEvery: 2 * time.Second}, Queue: size(100_000)}), check: bucketed},
		{name: "police", spec: at(unit.Gbit, link.Spec{Bucket: &link.Bucket{Rate: 50 * unit.Mbit, Size: 500_000, Police: true}}), check: bucketed},
		{name: "xen", spec: at(unit.Gbit, link.Spec{Xen: &link.Xen{Interval: 15 * time.Millisecond, Tokens: 130 * 1514 / 20}, Queue: size(100_000)}), check: inIntervals},
	}
	for _, c := range cases {
		out = append(out, bench.Case{
			Name: c.id(), Claims: c.claims(), Run: c.run, Drawn: c.drawn,
			// Definitions hold whatever else runs on the machine: some cases run in parallel.
			Alongside: func(bool) string { return "definitions" },
			Takes:     func(quick bool) time.Duration { return c.length(quick) + 4*time.Second },
		})
	}
	return out
}

func (c queueCase) id() string { return "queues/" + c.name }

func (c queueCase) claims() []bench.Claim {
	claims := []bench.Claim{bench.NewClaim(c.id(), "packets of the release log that contradict the definition", notAsDefined)}
	if c.red {
		claims = append(claims, bench.NewClaim(c.id()+"/hits", "segments that RED marked or dropped, deviation from the sum of its probabilities", lossSigmas))
	}
	return claims
}

func (c queueCase) length(quick bool) time.Duration {
	return bench.Pick(quick, 4*time.Second, 20*time.Second)
}

// run sends typical traffic of a queue: TCP that fills it, half of it with ECN and another code point,
// and UDP in small and large datagrams, on and off.
func (c queueCase) run(ctx context.Context, r *bench.Run) error {
	back := lab.Path{Spec: link.Spec{Delay: 5 * time.Millisecond}}
	forward := lab.Path{Spec: c.spec}
	forward.Delay = 5 * time.Millisecond
	topology := pair(forward, back)
	for i := range topology.Nodes {
		topology.Nodes[i].Sysctl["net.ipv4.tcp_ecn"] = "1"
	}
	length := c.length(r.Quick)
	third := c.spec.Slowest() / 3
	var pulses []traffic.Step
	for at := time.Duration(0); at < length; at += 700 * time.Millisecond {
		pulses = append(pulses, traffic.Step{At: at, Rate: third}, traffic.Step{At: at + 300*time.Millisecond})
	}
	log, zero, err := logged(ctx, topology, func(l *lab.Lab) error {
		greedy := traffic.Constant(traffic.Unlimited)
		_, err := flowsAlone(ctx, l, []traffic.Flow{
			{Name: "tcp", From: client, To: server, Protocol: traffic.TCP, Schedule: greedy},
			{Name: "marked", From: client, To: server, Protocol: traffic.TCP, DSCP: 46, IPv6: true, Schedule: greedy},
			{Name: "small", From: client, To: server, Protocol: traffic.UDP, Payload: 100, Schedule: pulses},
			{Name: "large", From: client, To: server, Protocol: traffic.UDP, Schedule: pulses},
		}, traffic.Options{Duration: length})
		return err
	})
	if err != nil {
		return err
	}
	packets := prepare(c.spec, log)
	sheet := r.Sheet(bench.Ours)
	var v verdict
	if c.red {
		var sigmas float64
		v, sigmas = early(c.spec, packets)
		sheet.Set(c.id()+"/hits", sigmas)
	} else {
		v = c.check(c.spec, zero, packets)
	}
	if v.packets < 1000 || v.acted < 10 {
		return fmt.Errorf("only %d packets are in the release log, and the definition affected %d: that proves nothing", v.packets, v.acted)
	}
	sheet.Set(c.id(), float64(v.wrong))
	sheet.Note(c.id(), "%v", v)
	return nil
}
