package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"headgate.dev/headgate/internal/plot"
)

var errInterrupted = errors.New("the benchmark was interrupted")

// worker runs cases and collects their results.
type worker struct {
	options  Options
	result   *Result
	mu       sync.Mutex
	done     int
	total    int
	patience *patience
	journal  *journal
}

func (w *worker) batch(ctx context.Context, batch []Case, n int) {
	var all sync.WaitGroup
	for _, c := range batch {
		all.Go(func() { w.one(ctx, c, n) })
	}
	all.Wait()
}

func (w *worker) one(ctx context.Context, c Case, n int) {
	w.mu.Lock()
	w.done++
	place := fmt.Sprintf("[%d/%d]", w.done, w.total)
	w.mu.Unlock()
	if had := (&Run{Case: c.Name, N: n, drawn: c.Drawn, mu: &w.mu}); w.journal.find(had) {
		w.options.Progress("%s %s: already measured", place, c.Name)
		w.keep(had, c)
		return
	}
	if ctx.Err() != nil {
		run := &Run{Case: c.Name, N: n, mu: &w.mu}
		run.Sheet(Ours).Fail(errInterrupted)
		w.keep(run, c)
		return
	}
	var best *Run // the least disturbed run so far
	for {
		w.patience.wait(ctx)
		w.options.Progress("%s %s, about %v", place, c.Name, c.takes(w.options.Quick).Round(time.Second))
		run := w.attempt(ctx, c, n)
		w.options.Progress("%s %s: done in %v%s%s", place, c.Name, run.took.Round(100*time.Millisecond), prefixed(": ", run.failure), prefixed("; ", run.taken.String()))
		if best == nil || run.failure == "" && run.taken.all() < best.taken.all() {
			best = run
		}
		if !run.taken.disturbed() || ctx.Err() != nil || !w.patience.spend(run.took) {
			break
		}
		w.options.Progress("%s %s: measured again, because it was disturbed", place, c.Name)
	}
	w.keep(best, c)
	if err := w.journal.add(best); err != nil {
		w.options.Progress("cannot write %s %s to the journal, so a resumed run measures it again: %v", place, c.Name, err)
	}
}

// attempt measures a case once.
func (w *worker) attempt(ctx context.Context, c Case, n int) *Run {
	run := &Run{Quick: w.options.Quick, Few: len(w.options.Only) > 0, N: n, Case: c.Name, drawn: c.Drawn, mu: &w.mu, say: w.options.Progress}
	began, before, stalls := time.Now(), takenUntilNow(), watchStalls()
	err := safely(func() error { return c.Run(ctx, run) })
	if ctx.Err() != nil {
		err = errInterrupted
	}
	if err != nil {
		run.failure = err.Error()
		run.Sheet(Ours).Fail(err)
	}
	if run.took = time.Since(began); run.took >= glance { // a shorter time cannot be measured in ticks of 10 ms
		run.taken = takenUntilNow().since(before, run.took.Seconds())
	}
	stall, starved := stalls.end()
	run.taken.stall, run.taken.starved = stall.Seconds(), starved.Seconds()
	return run
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// safely turns a panic into an error, so that one broken case does not lose the results of the others.
func safely(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the case panicked: %v", p)
		}
	}()
	return fn()
}

// keep adds a run's sheets to the result. A value for an undeclared claim is a bug of the case, and is
// reported in the sheet.
func (w *worker) keep(run *Run, c Case) {
	w.mu.Lock()
	defer w.mu.Unlock()
	declared := map[string]Claim{}
	for _, claim := range c.Claims {
		declared[claim.ID] = claim
	}
	for _, s := range run.sheets {
		for id := range s.Values {
			claim, ok := declared[id]
			if _, peer := claim.Peer[s.By]; !ok || s.By != Ours && !peer {
				s.fail(fmt.Sprintf("a value of %s for %s was not declared", s.By, id))
			}
		}
		s.Others, s.Stolen, s.Stall, s.Starved = run.taken.others, run.taken.stolen, run.taken.stall, run.taken.starved
		w.result.Sheets = append(w.result.Sheets, s)
	}
	for _, p := range run.plots {
		w.result.plot(p)
	}
}

func (r *Result) plot(p plot.Plot) {
	for _, have := range r.plots {
		if have.File == p.File {
			return
		}
	}
	r.plots = append(r.plots, p)
}
