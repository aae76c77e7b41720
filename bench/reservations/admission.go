package reservations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/inmemory"
	"headgate.dev/headgate/unit"
)

const week = 7 * 24 * time.Hour

func admissionCases() []bench.Case {
	return []bench.Case{{
		Name: "admission", Run: admission, Takes: bench.Takes(20*time.Second, 5*time.Minute),
		Claims: []bench.Claim{
			bench.NewClaim("admission/create", "99th percentile of the time in which a program's request for a reservation is answered and stored, with 10,000 reservations in a week's calendar", decided),
			bench.NewClaim("admission/what-if", "the longest time in which a what-if is answered", decided),
			bench.NewClaim("admission/oversold", "links that have at any moment more reserved than their capacity, summed from the list of all reservations", oversold),
			bench.NewClaim("admission/linearizable", "histories of eight programs that reserve, cancel and list at the same time, which no order explains", linear),
		},
	}}
}

// weekly is a request like that of a program: for up to a twentieth of a link, in a week. One in four has a rate back, is protected, or has
// a window.
func (c *crowd) weekly(first time.Time) api.ReservationRequest {
	from, to := c.pair()
	r := between(from, to, unit.Rate(1+c.rnd.IntN(50))*unit.Mbit)
	start := first.Add(time.Duration(c.rnd.IntN(7*24*60)) * time.Minute)
	length := time.Duration(10+c.rnd.IntN(12*60)) * time.Minute
	r.Start, r.Duration, r.Class = &start, new(length.String()), new(1+c.rnd.IntN(4))
	switch c.names % 4 {
	case 1:
		r.Back = new("1Mbit")
	case 2:
		r.Protected = new(true)
	case 3:
		r.Until = new(start.Add(length + 6*time.Hour))
	}
	return r
}

func admission(ctx context.Context, r *bench.Run) (err error) {
	network := inmemory.Network{Switches: 200, Cables: 400, Hosts: 400, Seed: 1}
	count, tries := 10_000, 1000
	if r.Quick {
		network = inmemory.Network{Switches: 50, Cables: 100, Hosts: 100, Seed: 1}
		count, tries = 1000, 200
	}
	c, err := gather(ctx, r, network)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	first := time.Now().Add(time.Hour).Truncate(time.Minute)
	held, refused := 0, 0
	for began, said := time.Now(), time.Now(); held < count; {
		_, granted, _, err := c.create(ctx, c.weekly(first), false)
		if err != nil {
			return err
		}
		if granted {
			held++
		} else {
			refused++
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			r.Say("%d of %d reservations after %v, %d refused", held, count, time.Since(began).Round(time.Second), refused)
		}
	}
	sheet := r.Sheet(bench.Ours)
	var created, asked []float64
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	rejected := 0
	for range tries {
		name, granted, took, err := c.create(ctx, c.weekly(first), false)
		if err != nil {
			return err
		}
		created = append(created, ms(took))
		if granted {
			if err := c.cancel(ctx, name); err != nil {
				return err
			}
		} else {
			rejected++
		}
	}
	for range tries {
		_, _, took, err := c.create(ctx, c.weekly(first), true)
		if err != nil {
			return err
		}
		asked = append(asked, ms(took))
	}
	slices.Sort(created)
	slices.Sort(asked)
	sheet.Set("admission/create", created[len(created)*99/100])
	sheet.Note("admission/create", "over HTTPS, one request at a time; median %s ms, longest %s; %d of %d refused with a counter-offer; %d refused until there were %d", bench.Number(bench.Median(created)), bench.Number(created[len(created)-1]), rejected, tries, refused, count)
	sheet.Set("admission/what-if", asked[len(asked)-1])
	sheet.Note("admission/what-if", "of %d; median %s ms, 99th percentile %s", tries, bench.Number(bench.Median(asked)), bench.Number(asked[len(asked)*99/100]))
	n, wrong, err := c.oversold(ctx)
	if err != nil {
		return err
	}
	sheet.Set("admission/oversold", float64(len(wrong)))
	sheet.Note("admission/oversold", "%d reservations on %d links %v", n, 2*len(c.plan.Cables), wrong[:min(3, len(wrong))])
	return c.linearizable(ctx, r, first.Add(2*week))
}

// oversold sums what is reserved on each link over time, and returns the links with more than their capacity.
func (c *crowd) oversold(ctx context.Context) (count int, wrong []string, err error) {
	known, err := api.Decode[api.Network](c.api.GetNetwork(ctx))
	if err != nil {
		return 0, nil, err
	}
	name := func(l api.NetworkLinkEnds) string {
		return fmt.Sprintf("%s/%d->%s/%d", l.From.Switch, l.From.Port, l.To.Switch, l.To.Port)
	}
	capacity := map[string]int64{}
	for _, l := range known.Links {
		capacity[name(api.NetworkLinkEnds{From: l.From, To: l.To})] = l.CapacityBps
	}
	all, err := c.all(ctx)
	if err != nil {
		return 0, nil, err
	}
	type step struct {
		at  time.Time
		bps int64
	}
	steps := map[string][]step{}
	for _, r := range all {
		for _, p := range r.Paths {
			for _, l := range p.Links {
				back := api.NetworkLinkEnds{From: l.To, To: l.From}
				for n, bps := range map[string]int64{name(l): p.RateBps, name(back): p.BackBps} {
					if bps > 0 {
						steps[n] = append(steps[n], step{r.Start, bps}, step{r.End, -bps})
					}
				}
			}
		}
	}
	for _, l := range slices.Sorted(maps.Keys(steps)) {
		list := steps[l]
		slices.SortFunc(list, func(a, b step) int {
			if c := a.at.Compare(b.at); c != 0 {
				return c
			}
			return int(max(-1, min(1, a.bps-b.bps))) // what ends at a moment makes room for what begins
		})
		sum := int64(0)
		for _, s := range list {
			if sum += s.bps; sum > capacity[l] {
				wrong = append(wrong, fmt.Sprintf("%s has %v of %v at %v", l, unit.Rate(sum), unit.Rate(capacity[l]), s.at))
				break
			}
		}
	}
	return len(all), wrong, nil
}

// ask is what a program does in a history: it reserves Rate Mbit/s under a name, or cancels that if Rate is 0.
type ask struct {
	name string
	rate int
}

// line is the specification: a host's line of 1 Gbit/s, and what is reserved on it by name, in Mbit/s.
type line map[string]int

func (l line) total() (sum int) {
	for _, r := range l {
		sum += r
	}
	return sum
}

// specification is one line, on which each request is decided as if there were no other at the same time.
var specification = porcupine.Model{
	Init: func() any { return line{} },
	Step: func(state, input, output any) (bool, any) {
		now, in, granted := state.(line), input.(ask), output.(bool)
		_, exists := now[in.name]
		next := maps.Clone(now)
		if in.rate == 0 {
			delete(next, in.name)
			return granted == exists, next
		}
		if fits := now.total()+in.rate <= 1000; granted != fits {
			return false, now
		}
		if granted {
			next[in.name] = in.rate
		}
		return true, next
	},
	Equal: func(a, b any) bool { return maps.Equal(a.(line), b.(line)) },
}

// linearizable lets programs reserve the line of one host at the same time, and checks that some order explains all answers.
func (c *crowd) linearizable(ctx context.Context, r *bench.Run, start time.Time) error {
	const clients, each = 8, 12
	wrong, asked, granted := 0, 0, 0
	histories := bench.Pick(r.Quick, 2, 20)
	for h := range histories {
		var mu sync.Mutex
		var ops []porcupine.Operation
		var problem error
		var all sync.WaitGroup
		began := time.Now()
		at := start.Add(time.Duration(h) * time.Hour)
		from, to := c.pair()
		var scripts [clients][]int
		for k := range scripts {
			for range each {
				scripts[k] = append(scripts[k], 50*(2+c.rnd.IntN(8)))
			}
		}
		for k := range clients {
			all.Go(func() {
				held := ""
				for n, rate := range scripts[k] {
					in := ask{fmt.Sprintf("h%d-%d-%d", h, k, n), rate}
					if held != "" {
						in = ask{held, 0}
					}
					call := time.Since(began)
					ok, err := c.tell(ctx, in, from, to, at)
					op := porcupine.Operation{ClientId: k, Input: in, Call: int64(call), Output: ok, Return: int64(time.Since(began))}
					held = ""
					if ok && in.rate > 0 {
						held = in.name
					}
					mu.Lock()
					problem = errors.Join(problem, err)
					ops = append(ops, op)
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		all.Wait()
		if problem != nil {
			return problem
		}
		for _, op := range ops {
			if asked++; op.Output.(bool) {
				granted++
			}
		}
		if porcupine.CheckOperationsTimeout(specification, ops, time.Minute) != porcupine.Ok {
			wrong++
		}
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("admission/linearizable", float64(wrong))
	sheet.Note("admission/linearizable", "%d histories with %d requests, of which %d were granted", histories, asked, granted)
	return nil
}

func (c *crowd) tell(ctx context.Context, in ask, from, to int, at time.Time) (granted bool, err error) {
	if in.rate == 0 {
		return true, c.cancel(ctx, in.name)
	}
	r := between(from, to, unit.Rate(in.rate)*unit.Mbit)
	r.Start, r.Duration = &at, new("30m")
	_, granted, _, err = c.createNamed(ctx, in.name, r, false)
	return granted, err
}
