package probing

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
)

// The emulator carries cross traffic at up to labFastest on two processors, over at most labHops links, and labTries is how often a path is measured during which
// it was late: its links are then not what was drawn.
const (
	labFastest = 300e6
	labHops    = 3
	labTries   = 3
)

func adversarialLab(d *bench.Draw) bench.Case {
	return bench.Case{
		Name: "wrong/lab", Claims: adversarialClaims("lab"),
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 40*time.Second, 20*time.Minute) },
		Drawn: fmt.Sprintf("1 to %d hops, %s, 1 to %.0f Mbit/s; links of the emulator between namespaces, measured by \"headgate probe path\"", labHops, adversarialDrawn, labFastest/1e6),
		Run: func(ctx context.Context, r *bench.Run) error {
			var paths []adversarial
			var all []map[string]verdict
			late := 0
			for i := range bench.Pick(r.Quick, 4, 200) {
				a := drawAdversarial(d.For(fmt.Sprintf("adversarial-lab/%d", i)), labHops, labFastest)
				r.Say("path %d", i+1)
				v, ok, err := a.inLab(ctx)
				if err != nil {
					return fmt.Errorf("path %d: %w", i+1, err)
				}
				if !ok {
					late++
					continue
				}
				paths, all = append(paths, a), append(all, v)
			}
			if len(paths) == 0 {
				return fmt.Errorf("the emulator was late on all %d paths", late)
			}
			sheet := r.Sheet(bench.Ours)
			setAdversarial(sheet, "lab", paths, all)
			for _, e := range estimators {
				sheet.Note("wrong/lab/"+e, "%d paths are left out, because the emulator was late in %d measurements of each", late, labTries)
			}
			return nil
		},
	}
}

// inLab measures a path between namespaces. ok is false if the emulator was late each time.
func (a adversarial) inLab(ctx context.Context) (out map[string]verdict, ok bool, err error) {
	for range labTries {
		err := withServer(ctx, a.topology(), func(s *stage) error {
			report, err := s.probe(ctx, "path", "--direction", "out")
			if err != nil {
				return err
			}
			if report.Directions[probe.Out] == nil {
				return fmt.Errorf("no answer: %s", report.Failed)
			}
			if ok = s.usable() == nil; ok {
				out = a.verdicts(*report.Directions[probe.Out])
			}
			return nil
		})
		if ok || err != nil {
			return out, ok, err
		}
	}
	return nil, false, nil
}

// topology is the hops as emulated links between routers, with a way back that does not limit.
func (a adversarial) topology() *lab.Topology {
	t := &lab.Topology{Name: lab.UniqueName("bench"), Nodes: []lab.NodeSpec{{Name: client}, {Name: server}}}
	from := client
	for i, hop := range a.Hops {
		to := server
		if i < len(a.Hops)-1 {
			to = fmt.Sprint("r", i+1)
			t.Nodes = append(t.Nodes, lab.NodeSpec{Name: to, Router: true})
		}
		hop.Delay = max(hop.Delay, hop.Jitter.Amount) // the lab refuses packets that arrive before they are sent
		back := link.Spec{Rate: hop.Rate, Delay: hop.Delay, Queue: link.Amount{Time: 100 * time.Millisecond}}
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{from, to}, Backend: lab.Emulator, Forward: lab.Path{Spec: hop, Exact: true}, Back: lab.Path{Spec: back, Exact: true}})
		from = to
	}
	return t
}
