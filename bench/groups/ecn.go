package groups

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// ecnCase is the paper's overload with and without ECN. Chapter VII: "ECN had no significant impact on
// the performance of transmitted SCTP data".
type ecnCase struct {
	in    bool
	limit unit.Rate
	name  string
}

// ecnCases end with the slow one, a neighbour of the slow ramps, with which it runs in parallel.
func ecnCases() []ecnCase {
	return []ecnCase{
		{false, 100 * unit.Mbit, "100Mbit/tcp-cubic"}, {true, 100 * unit.Mbit, "100Mbit/tcp-cubic"},
		{false, 800 * unit.Kbit, "0.8Mbit/tcp-cubic"},
	}
}

func (c ecnCase) slow() bool { return c.limit < 10*unit.Mbit }

// timing returns the duration of the overload before the measurement, and that of the measurement. At
// 0.8 Mbit/s the queue of the smallest group is seconds long.
func (c ecnCase) timing(quick bool) (settle, measure time.Duration) {
	const ms = time.Millisecond
	switch {
	case quick && c.slow():
		return time.Second, 5 * time.Second
	case quick:
		return 300 * ms, 1000 * ms
	case c.slow():
		return 20 * time.Second, 120 * time.Second
	}
	return 3 * time.Second, 30 * time.Second
}

func (c ecnCase) id(what string) string {
	return fmt.Sprintf("ecn/%s/%s/%s", direction(c.in), c.name, what)
}

const noteECN = `paper: "no significant impact" (chapter VII), without a figure`

func (c ecnCase) claims() []bench.Claim {
	return []bench.Claim{
		bench.NewClaim(c.id("goodput"), "total goodput in the overload with ECN, relative to that without", ecnGoodput, quantumName).WithNote(noteECN),
		bench.NewClaim(c.id("retransmitted"), "total retransmissions with ECN, relative to those without", ecnResent, quantumName).WithNote(noteECN),
	}
}

func (c ecnCase) run(ctx context.Context, r *bench.Run) error {
	measure := func(name string) error {
		sheet := r.Sheet(name)
		var with, without ecnRecord
		err := c.measure(ctx, r.Quick, name, true, &with)
		if err == nil {
			err = c.measure(ctx, r.Quick, name, false, &without)
		}
		if err != nil {
			return peerError(sheet, err)
		}
		sheet.Keep("with_ecn", with)
		sheet.Keep("without_ecn", without)
		sheet.Set(c.id("goodput"), 100*with.Goodput/without.Goodput)
		sheet.Set(c.id("retransmitted"), 100*float64(with.Retransmitted)/float64(max(without.Retransmitted, 1)))
		sheet.Note(c.id("goodput"), "%.1f %% of the limit with ECN and %.1f %% without", 100*with.Goodput/float64(c.limit), 100*without.Goodput/float64(c.limit))
		sheet.Note(c.id("retransmitted"), "%d segments of %d with ECN (%d arrive marked), %d without", with.Retransmitted, with.Segments, with.Marked, without.Retransmitted)
		return nil
	}
	names := []string{bench.Ours, quantumName}
	if c.slow() || r.Quick {
		return alongside(names, measure)
	}
	return inTurn(names, false, measure)
}

// ecnRecord is the stored result of one run. Goodput is in bit/s, as full frames.
type ecnRecord struct {
	Goodput       float64 `json:"goodput"`
	Segments      uint64  `json:"segments"`
	Retransmitted uint64  `json:"retransmitted"`
	Marked        uint64  `json:"marked"`
}

func (c ecnCase) measure(ctx context.Context, quick bool, name string, ecn bool, out *ecnRecord) error {
	p, err := plan(seedGroups(c.limit), c.in)
	if err != nil {
		return err
	}
	settle, length := c.timing(quick)
	from, to := ends(c.in)
	var flows []traffic.Flow
	for i := range seedShares {
		flows = append(flows, traffic.Flow{
			Name: groupName(i), From: from, To: to, Protocol: traffic.TCP, Congestion: "cubic", ECN: ecn, DstPort: basePort + uint16(i),
			Schedule: traffic.Constant(unit.Rate(shares(rampSteps)[i]) * c.limit / 100),
		})
	}
	sysctl := map[string]string{"net.ipv4.tcp_ecn": "0"}
	if ecn {
		sysctl["net.ipv4.tcp_ecn"] = "1"
	}
	f, err := trial{
		rig: lab.RigOptions{Sysctl: sysctl}, limiter: name, plan: p, flows: flows, length: settle + length, sample: 100 * time.Millisecond, bin: 10 * time.Millisecond,
	}.run(ctx)
	if err != nil {
		return err
	}
	for i := range f.traffic.Flows {
		iv := f.traffic.Flows[i].Between(settle, settle+length)
		out.Goodput += iv.DeliveredL2Bits / iv.Seconds
		out.Segments += uint64(iv.DeliveredL2Bits / (8 * 1514))
		out.Retransmitted, out.Marked = out.Retransmitted+iv.Retransmits, out.Marked+iv.DeliveredCE
	}
	return nil
}

func ecnBenches() (out []bench.Case) {
	for _, c := range ecnCases() {
		out = append(out, bench.Case{
			Name: "ecn/" + direction(c.in) + "/" + c.name, Claims: c.claims(), Run: c.run,
			Alongside: func(quick bool) string {
				if c.slow() || quick { // the smoke run has no time for them
					return slow
				}
				return ""
			},
			Takes: func(quick bool) time.Duration {
				settle, length := c.timing(quick)
				one := 2 * (settle + length + overhead)
				if c.slow() || quick {
					return one
				}
				return turns(false, 2, one)
			},
		})
	}
	return out
}
