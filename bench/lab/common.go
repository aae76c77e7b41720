package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// The two ends of every link that is tested:
//
//	client ══ emulated ══ server
//
// There is no router: the emulator reads frames as a network card does, so that TCP's small-queue
// back-pressure ends there.
const (
	client, server = "client", "server"
)

// buffers allow TCP to fill a long fast path: the kernel's default of 6 MB is less than the data in
// flight at 10 Gbit/s and 10 ms.
var buffers = map[string]string{
	"net.ipv4.tcp_rmem": "4096 131072 134217728",
	"net.ipv4.tcp_wmem": "4096 131072 134217728",
}

// pair is a lab of one emulated link.
func pair(forward, back lab.Path) *lab.Topology {
	return &lab.Topology{
		Name:  lab.UniqueName("bench"),
		Nodes: []lab.NodeSpec{{Name: client, Sysctl: maps.Clone(buffers)}, {Name: server, Sysctl: maps.Clone(buffers)}},
		Links: []lab.LinkSpec{{Ends: [2]string{client, server}, Forward: forward, Back: back, Backend: lab.Emulator, Seed: 1}},
	}
}

// symmetric returns a link with a rate in both directions, and half of the round-trip time in each.
func symmetric(rate unit.Rate, rtt time.Duration) *lab.Topology {
	forward := lab.Path{Spec: link.Spec{Rate: rate, Delay: rtt / 2, Queue: link.Amount{Bytes: queueOf(rate, rtt)}}}
	return pair(forward, lab.Path{Spec: link.Spec{Rate: rate, Delay: rtt - rtt/2}})
}

// queueOf returns a queue as long as the path, or 50 ms, or a super-packet.
func queueOf(rate unit.Rate, rtt time.Duration) unit.Bytes {
	return unit.Bytes(max(float64(rate)/8*max(rtt, link.DefaultQueue).Seconds(), 64<<10))
}

// filling returns a flow that keeps such a link full. Its window is limited to what the path and half
// of the queue hold, so that nothing is lost: after a loss a receiver reads in-order data in jumps, of
// ten segments at 0.5 Mbit/s, which are 2 % of 10 s. It uses Reno, because CUBIC leaves slow start
// before a long path is full (HyStart).
func filling(rate unit.Rate, rtt time.Duration) traffic.Flow {
	window := float64(rate)/8*rtt.Seconds() + float64(queueOf(rate, rtt))/2
	return traffic.Flow{
		Name: "f", From: client, To: server, Protocol: traffic.TCP, Congestion: "reno",
		WindowClamp: unit.Bytes(window), Schedule: traffic.Constant(traffic.Unlimited),
	}
}

// with creates a lab for the duration of fn.
func with(ctx context.Context, t *lab.Topology, fn func(*lab.Lab) error) error {
	l, err := lab.Up(ctx, t)
	if err != nil {
		return err
	}
	return errors.Join(fn(l), l.Close())
}

// flowsAlone runs flows and returns an error if one failed.
func flowsAlone(ctx context.Context, l *lab.Lab, flows []traffic.Flow, o traffic.Options) (*traffic.Result, error) {
	r, err := traffic.Run(ctx, l.Host, flows, o)
	if err != nil {
		return nil, err
	}
	for _, f := range r.Flows {
		if f.Error != "" {
			return nil, fmt.Errorf("flow %s: %s", f.Name, f.Error)
		}
	}
	return r, ctx.Err()
}

// lateness adds notes to the claims if the emulator was late.
func lateness(sheet *bench.Sheet, l *lab.Lab, ids ...string) {
	stats, ok := l.WireStats(0)
	if !ok {
		return
	}
	for _, s := range stats {
		if s.Late == 0 {
			continue
		}
		for _, id := range ids {
			sheet.Note(id, "the emulator was late by up to %.1f ms, in %.3f %% of the writes", s.WorstLate.Seconds()*1e3, 100*float64(s.Late)/float64(max(s.Writes, 1)))
		}
	}
}

// takes returns the duration of a case whose smoke run is shorter.
func takes(smoke, full time.Duration) func(bool) time.Duration {
	return func(quick bool) time.Duration { return bench.Pick(quick, smoke, full) + time.Second }
}

// together runs the cases of a batch in parallel in a smoke run.
func together(batch string) func(bool) string {
	return func(quick bool) string { return bench.Pick(quick, batch, "") }
}

// family returns the last word of a claim's id for an IP version.
func family(ipv6 bool) string { return bench.Pick(ipv6, "ipv6", "ipv4") }
