package groups

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// nestedCase is a tree of three levels, limit, tenants, machines, in which every tenant has one busy
// leaf or none:
//
//	a { vm { x, y }, e }   b { vm { x, y }, e }   c { vm { x, y }, e }
//
// The busy leaves change from phase to phase, through all patterns.
type nestedCase struct {
	name     string
	drawn    string // its random values
	limit    unit.Rate
	spare    group.Spare
	protocol traffic.Protocol
	groups   []group.Group
}

// nestedTree has shares for a tenant: of the tenant, of its machine and of the leaves x and e; y has
// the rest of the machine. Priorities are by tenant.
func nestedTree(spare group.Spare, tenants [][4]unit.Share) (out []group.Group) {
	for i, t := range tenants {
		tenant := leaf(string(rune('a'+i)), t[0])
		if spare == group.Priority {
			tenant = priority(tenant, i)
		}
		out = append(out, parent(tenant, parent(leaf("vm", t[1]), leaf("x", t[2]), leaf("y", 100-t[2])), leaf("e", t[3])))
	}
	return out
}

// busyLeaves are the leaves that may be busy in a tenant; "" is none.
var busyLeaves = []string{"", "vm/x", "e"}

// nestedCases are the three spare policies with both protocols, and random trees.
func nestedCases(d *bench.Draw) (out []nestedCase) {
	for _, spare := range []group.Spare{group.Proportional, group.Equal, group.Priority} {
		for _, p := range []traffic.Protocol{traffic.TCP, traffic.UDP} {
			out = append(out, nestedCase{
				name: fmt.Sprintf("%s/%s", spare, p), limit: 40 * unit.Mbit, spare: spare, protocol: p,
				groups: nestedTree(spare, [][4]unit.Share{{40, 60, 50, 40}, {30, 80, 75, 20}, {20, 50, 50, 50}}),
			})
		}
	}
	for n := range 6 {
		name := fmt.Sprintf("drawn-%d", n+1)
		d := d.For("nested/" + name)
		c := nestedCase{
			name: name, limit: d.Rate(5*unit.Mbit, 200*unit.Mbit), spare: bench.OneOf(d, group.Proportional, group.Equal, group.Priority),
			protocol: bench.OneOf(d, traffic.TCP, traffic.UDP),
		}
		var parts [][4]unit.Share
		var said []string
		for _, tenant := range d.Shares(3, 10*unit.Whole/100) {
			vm := unit.Share(d.Int(20, 80))
			p := [4]unit.Share{tenant / (unit.Whole / 100), vm, unit.Share(d.Int(10, 90)), unit.Share(d.Int(10, int(100-vm)))}
			parts = append(parts, p)
			said = append(said, fmt.Sprintf("%d {%d {%d}, %d}", p[0], p[1], p[2], p[3]))
		}
		c.groups = nestedTree(c.spare, parts)
		c.drawn = fmt.Sprintf("limit %v, %s, %s, guarantees of tenant {machine {x}, e} in percent: %s", c.limit, c.spare, c.protocol, strings.Join(said, ", "))
		out = append(out, c)
	}
	return out
}

// pattern has the busy leaf of each tenant, or "".
type pattern []string

func (p pattern) busy() (n int) {
	for _, leaf := range p {
		if leaf != "" {
			n++
		}
	}
	return n
}

// demand returns the demand of leaves, by path.
func (p pattern) demand() map[string]unit.Rate {
	out := map[string]unit.Rate{}
	for i, leaf := range p {
		if leaf != "" {
			out[string(rune('a'+i))+"/"+leaf] = greedy
		}
	}
	return out
}

// patterns returns all patterns; a smoke run has one for each number of busy tenants.
func (c nestedCase) patterns(quick bool) (out []pattern) {
	if quick {
		return []pattern{{"vm/x", "", ""}, {"e", "", "vm/x"}, {"vm/x", "e", "e"}}
	}
	for i := 1; i < 27; i++ {
		out = append(out, pattern{busyLeaves[i%3], busyLeaves[i/3%3], busyLeaves[i/9]})
	}
	return out
}

// phase returns the duration of a pattern before the measurement, and that of the measurement.
func (c nestedCase) phase(quick bool) (settle, measure time.Duration) {
	if quick {
		return 700 * time.Millisecond, 800 * time.Millisecond
	}
	return 2 * time.Second, 3 * time.Second
}

func (c nestedCase) id(busy int) string {
	if c.drawn != "" {
		return "nested/" + c.name
	}
	return fmt.Sprintf("nested/%s/%d-busy", c.name, busy)
}

func (c nestedCase) claims() (out []bench.Claim) {
	const metric = "largest deviation of a busy leaf from the rate that package share computes, in the worst pattern"
	if c.drawn != "" {
		return []bench.Claim{bench.NewClaim(c.id(0), metric, nestedError)}
	}
	for busy := range 3 {
		out = append(out, bench.NewClaim(c.id(busy+1), fmt.Sprintf("%s of %d busy tenants", metric, busy+1), nestedError, c.peers()...))
	}
	return out
}

// peers: HTB by hand has one spare policy.
func (c nestedCase) peers() []string {
	if c.spare == group.Proportional && c.drawn == "" {
		return []string{htbName}
	}
	return nil
}

func (c nestedCase) direction() group.Direction {
	return spareCase{limit: c.limit, spare: c.spare, groups: c.groups}.direction()
}

// flows are one for each leaf that is ever busy, on in the phases of its patterns.
func (c nestedCase) flows(t *group.Tree, patterns []pattern, phase time.Duration) (out []traffic.Flow) {
	rate := greedy
	if c.protocol == traffic.UDP {
		rate = c.limit
	}
	from, to := ends(false)
	for _, rule := range t.Rules {
		path := t.Nodes[rule.Node].Path
		var steps []traffic.Step
		for i, p := range patterns {
			want := unit.Rate(0)
			if p.demand()[path] > 0 {
				want = rate
			}
			if last := len(steps) - 1; last < 0 && want > 0 || last >= 0 && steps[last].Rate != want {
				steps = append(steps, traffic.Step{At: time.Duration(i) * phase, Rate: want})
			}
		}
		if len(steps) == 0 {
			continue
		}
		out = append(out, traffic.Flow{
			Name: path, From: from, To: to, Protocol: c.protocol, DstPort: rule.Selector.DPort[0].First, Schedule: steps,
			// Data that a sender has buffered at the end of its phase is sent in the next one.
			SendBuffer: max(unit.Bytes(c.limit.BytesPerSecond()/100), 128<<10),
		})
	}
	return out
}

func (c nestedCase) run(ctx context.Context, r *bench.Run) error {
	if c.drawn != "" && leftOut(r) {
		return nil
	}
	p, err := plan(c.direction(), false)
	if err != nil {
		return err
	}
	settle, measure := c.phase(r.Quick)
	patterns := c.patterns(r.Quick)
	phase := settle + measure
	return alongsideOrNot(r.Quick, append([]string{bench.Ours}, c.peers()...), func(name string) error {
		sheet := r.Sheet(name)
		f, err := trial{
			limiter: name, plan: p, flows: c.flows(p.Out, patterns, phase), length: time.Duration(len(patterns)) * phase,
			sample: 500 * time.Millisecond, bin: 10 * time.Millisecond,
		}.run(ctx)
		if err != nil {
			return peerError(sheet, err)
		}
		c.judge(sheet, p.Out, patterns, func(path string, i int) float64 {
			began := time.Duration(i) * phase
			return f.arrivals[path].Rate(began+settle, began+phase)
		})
		sheet.Keep("offloads", f.offloads)
		return nil
	})
}

// judge takes the worst leaf of the patterns of each claim; got returns the rate of a leaf in a phase.
func (c nestedCase) judge(s *bench.Sheet, t *group.Tree, patterns []pattern, got func(path string, phase int) float64) {
	type missed struct {
		by   float64
		what string
	}
	worst := map[string]missed{}
	held := map[string][2]int{}
	var all []string
	for i, p := range patterns {
		right := spareCase{demand: p.demand()}.answer(t)
		one, id := missed{}, c.id(p.busy())
		var said []string
		for n, node := range t.Nodes {
			if p.demand()[node.Path] == 0 {
				continue
			}
			rate := got(node.Path, i)
			one.by = max(one.by, 100*math.Abs(rate/float64(right[n])-1))
			said = append(said, fmt.Sprintf("%s %s (%s)", node.Path, bench.Number(rate/1e6), bench.Number(float64(right[n])/1e6)))
		}
		one.what = strings.Join(said, ", ")
		all = append(all, fmt.Sprintf("%.1f %%: %s", one.by, one.what))
		if have, ok := worst[id]; !ok || one.by > have.by {
			worst[id] = one
		}
		count := held[id]
		if count[1]++; nestedError.Met(one.by) {
			count[0]++
		}
		held[id] = count
	}
	for id, w := range worst {
		s.Set(id, w.by)
		s.Note(id, "the worst of %d patterns, measured and expected Mbit/s: %s; %d are within the target", held[id][1], w.what, held[id][0])
	}
	s.Keep("patterns", all)
}

// alongsideOrNot calls fn for all names, in parallel in a smoke run.
func alongsideOrNot(together bool, names []string, fn func(name string) error) error {
	if together {
		return alongside(names, fn)
	}
	return inTurn(names, false, fn)
}

func nestedBenches(d *bench.Draw) (out []bench.Case) {
	for _, c := range nestedCases(d) {
		settle, measure := c.phase(false)
		full := time.Duration(len(c.patterns(false))) * (settle + measure)
		out = append(out, bench.Case{
			Name: "nested/" + c.name, Claims: c.claims(), Run: c.run, Drawn: c.drawn,
			Alongside: func(quick bool) string {
				if quick && c.drawn == "" {
					return "nested"
				}
				return ""
			},
			Takes: func(quick bool) time.Duration {
				switch {
				case quick && c.drawn != "":
					return 0
				case quick:
					settle, measure := c.phase(true)
					return time.Duration(len(c.patterns(true)))*(settle+measure) + overhead
				}
				return time.Duration(1+len(c.peers())) * (full + overhead)
			},
		})
	}
	return out
}
