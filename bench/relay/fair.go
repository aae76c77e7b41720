package relay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// fairMark marks the relay's streams.
const fairMark = 0x10

// fairGroups are the groups of the entry's device: the relay's streams, and everything else.
const fairGroups = `kind: Interface
dev: %s
out:
  limit: 200Mbit
  groups:
    - {name: relay, guarantee: 30%%, match: [{mark: %d}]}
    - {name: rest, guarantee: 70%%, default: true}
`

// fairCase is one connection over 16 streams in a group of 30 %, beside ten ordinary connections in one of 70 %.
func fairCase() bench.Case {
	const id = "fair"
	within := bench.Target{Op: "<=", Value: 2, Unit: "% of the limit"}
	return bench.Case{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id+"/relay", "deviation of the relay's rate from 30 %", within),
			bench.NewClaim(id+"/rest", "deviation of the ten connections' rate from 70 %", within),
		},
		Takes: func(quick bool) time.Duration { return length(quick) + 6*time.Second },
		Run: func(ctx context.Context, r *bench.Run) error {
			all := paths(path{unit.Gbit, 20 * ms, 0})
			m := relayed(bench.Ours, agentOptions{path: fmt.Sprintf("streams: 16, mark: %d", fairMark), take: "dport: 5001"})
			start := m.setUp
			m.setUp = func(ctx context.Context, l *lab.Lab, paths []path) (*agents, error) {
				a, err := start(ctx, l, paths)
				if err != nil {
					return a, err
				}
				return a, applyGroups(ctx, l, a.dir)
			}
			flows := []traffic.Flow{greedy("cubic")}
			for n := range 10 {
				f := greedy("cubic")
				f.Name, f.DstPort = fmt.Sprintf("rest%d", n), uint16(6000+n)
				flows = append(flows, f)
			}
			got, _, err := trial{paths: all, method: m, flows: flows, length: length(r.Quick)}.run(ctx)
			if err != nil {
				return err
			}
			relay, rest := 0.0, 0.0
			for _, f := range got.Flows {
				rate := f.Between(steady(r.Quick), length(r.Quick)).DeliveredRate()
				if f.Name == "f" {
					relay = rate
				} else {
					rest += rate
				}
			}
			sheet := r.Sheet(bench.Ours)
			for name, of := range map[string][2]float64{"relay": {relay, 30}, "rest": {rest, 70}} {
				percent := 100 * of[0] / 200e6
				sheet.Set(id+"/"+name, math.Abs(percent-of[1]))
				sheet.Note(id+"/"+name, "%s %%", bench.Number(percent))
			}
			return nil
		},
	}
}

// applyGroups applies the groups to the entry's device, as a user would.
func applyGroups(ctx context.Context, l *lab.Lab, dir string) error {
	dev, err := l.Node(entry).Device(exit)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "groups.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, fairGroups, dev, fairMark), 0o600); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if out, err := l.Node(entry).Command(ctx, self, "apply", "-f", file).CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("headgate apply: %s", out), err)
	}
	return nil
}
