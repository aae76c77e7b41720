package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// twoCase is sets with one bottleneck in common: members that need 84 % of it at 4:2:1 in each set become greedy, and rivals come.
type twoCase struct {
	// weights are those of the sets, which name the bottleneck; without them each set is controlled for itself.
	weights []float64
	sets    int
	rivals  int
	members string // congestion control
	smoke   bool
	quick   bool // it is part of one
}

// twoShares are the parts of the members of each set.
var twoShares = []float64{4, 2, 1}

// learns, settles and counts are the times of a case with several sets.
func (c twoCase) learns() time.Duration  { return bench.Pick(c.quick, 8*time.Second, 15*time.Second) }
func (c twoCase) settles() time.Duration { return bench.Pick(c.quick, 5*time.Second, 10*time.Second) }
func (c twoCase) counts() time.Duration  { return bench.Pick(c.quick, 15*time.Second, 30*time.Second) }

const twoRate, twoRTT = 50 * unit.Mbit, 20 * time.Millisecond

func twoCases() (out []bench.Case) {
	for _, c := range []twoCase{
		{sets: 2}, {sets: 3}, {sets: 2, weights: []float64{3, 1}}, {sets: 3, weights: []float64{4, 2, 1}},
	} {
		for _, members := range []string{"cubic", "reno"} {
			for _, rivals := range []int{0, 4} {
				c.members, c.rivals = members, rivals
				c.smoke = c.sets == 2 && c.weights != nil && members == "cubic" && rivals == 4
				out = append(out, c.bench(fmt.Sprint("two/", len(out)/2)))
			}
		}
	}
	return out
}

func (c twoCase) id() string {
	how := "apart"
	if c.weights != nil {
		how = "weights"
	}
	return fmt.Sprintf("two/%d-sets/%s/%d-rivals/%s", c.sets, how, c.rivals, c.members)
}

func (c twoCase) bench(batch string) bench.Case {
	id := c.id()
	due := "largest difference of a set from its part by weight"
	if c.weights == nil {
		due = "largest difference of a set from an equal part: each has as many connections"
	}
	measured := bench.Case{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id+"/due", due, ofDue, plain),
			bench.NewClaim(id+"/parts", "largest deviation of a member from its proportion in its set", proportionOff, plain),
			bench.NewClaim(id+"/total", "what all sets carry, of plain TCP's", aggregate),
		},
		Takes: func(quick bool) time.Duration {
			c.quick = quick
			return c.length() + 3*time.Second
		},
		Alongside: func(quick bool) string { return alongside(quick, batch) },
		Run: func(ctx context.Context, r *bench.Run) error {
			c.quick = r.Quick
			all, err := runEach([]string{plain, ours}, 2, func(name string) ([][]float64, error) { return c.run(ctx, name) })
			if err != nil {
				return err
			}
			without, _ := total(all[plain])
			for name, got := range all {
				sum, sets := total(got)
				due, parts := 0.0, 0.0
				for i, set := range sets {
					want := sum / float64(c.sets)
					if c.weights != nil {
						weights := 0.0
						for _, w := range c.weights {
							weights += w
						}
						want = sum * c.weights[i] / weights
					}
					_, worst := proportion(got[i], twoShares)
					due, parts = max(due, math.Abs(set/want-1)), max(parts, worst)
				}
				sheet := r.Sheet(name)
				sheet.Set(id+"/due", 100*due)
				sheet.Note(id+"/due", "%s: %s Mbit/s", name, mbits(sets))
				sheet.Set(id+"/parts", 100*parts)
				if name == ours {
					sheet.Set(id+"/total", 100*sum/without)
				}
			}
			return nil
		},
	}
	if !c.smoke {
		return unsmoked(measured)
	}
	return measured
}

// total returns the rate of all sets, and of each.
func total(sets [][]float64) (sum float64, each []float64) {
	for _, members := range sets {
		of := 0.0
		for _, v := range members {
			of += v
		}
		sum, each = sum+of, append(each, of)
	}
	return sum, each
}

func (c twoCase) length() time.Duration { return c.learns() + c.settles() + c.counts() }

// run returns the rates of the members in bit/s, by set.
func (c twoCase) run(ctx context.Context, name string) (out [][]float64, err error) {
	bdp := float64(twoRate) / 8 * twoRTT.Seconds()
	l, err := lab.Up(ctx, oneLink(link.Spec{Rate: twoRate, Queue: link.Amount{Segments: int(bdp / 1514)}}, twoRTT, false))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	port := nextPorts(32)
	var sets []set
	var flows []traffic.Flow
	flow := func(name string, at int, control string, schedule []traffic.Step) {
		flows = append(flows, traffic.Flow{Name: name, From: "server", To: "client", Protocol: traffic.TCP, DstPort: port + uint16(at), Congestion: control, Schedule: schedule})
	}
	for s := range c.sets {
		of := set{name: fmt.Sprint("set", s), scaleControl: name}
		if c.weights != nil {
			of.bottleneck, of.weight = "link", c.weights[s]
		}
		for i, share := range twoShares {
			at := s*len(twoShares) + i
			need := unit.Rate(0.84 * float64(twoRate) * share / 7 / float64(c.sets))
			flow(fmt.Sprintf("member%d-%d", s, i), at, c.members, []traffic.Step{{Rate: need}, {At: c.learns(), Rate: traffic.Unlimited}})
			of.rules = append(of.rules, fmt.Sprintf("dport: %d", int(port)+at))
		}
		sets = append(sets, of)
	}
	for i := range c.rivals {
		flow(fmt.Sprint("rival", i), 16+i, "cubic", []traffic.Step{{Rate: 0}, {At: c.learns(), Rate: traffic.Unlimited}})
	}
	d, err := watch(ctx, sets...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	got, err := traffic.Run(ctx, l.Host, flows, traffic.Options{Duration: c.length(), Interval: 500 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	for s := range c.sets {
		members, err := rates(got, fmt.Sprintf("member%d-", s), len(twoShares), c.learns()+c.settles(), c.length())
		if err != nil {
			return nil, err
		}
		out = append(out, members)
	}
	return out, nil
}
