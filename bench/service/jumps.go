package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
)

// upAgain is the target: from when the clock is right.
var upAgain = bench.Target{Op: "<=", Value: 10, Unit: "s"}

// jumpOf is a clock that is wrong at a controller's first start, or that jumps while it runs, and is set right later.
type jumpOf struct {
	name  string
	by    time.Duration
	first bool // at the first start
}

// jumps are those of the target.
func jumps() (all []jumpOf) {
	const day = 24 * time.Hour
	for name, by := range map[string]time.Duration{"+8h": 8 * time.Hour, "-8h": -8 * time.Hour, "+2d": 2 * day, "-2d": -2 * day, "+45d": 45 * day, "-45d": -45 * day} {
		all = append(all, jumpOf{name, by, false}, jumpOf{name + "/first-start", by, true})
	}
	return append(all, jumpOf{"1970/first-start", -time.Since(time.Unix(3600, 0)), true})
}

func jumpCases() (all []bench.Case) {
	for _, j := range jumps() {
		id := "clock/" + j.name
		all = append(all, bench.Case{
			Name: id, Takes: bench.Takes(0, 20*time.Second), Alongside: func(bool) string { return "clocks" },
			Run: func(ctx context.Context, r *bench.Run) error { return j.run(ctx, r, id) },
			Claims: []bench.Claim{
				bench.NewClaim(id+"/up", "from when the clock is right until an operator's new connection with the token in the controller's directory has an answer", upAgain),
				bench.NewClaim(id+"/agent", "from then until an agent that joined before has connected again, or one has joined", upAgain),
			},
		})
	}
	return all
}

func (j jumpOf) run(ctx context.Context, r *bench.Run, id string) (err error) {
	if r.Quick && !r.Few && j.name != "1970/first-start" && j.name != "-45d" {
		return errors.New("only in the full benchmark")
	}
	s := setting{clocks: true}
	if j.first {
		s.ahead, s.unready = j.by, true
	}
	p, err := s.build(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	c := p.controllers[0]
	dir := ""
	if !j.first {
		if dir, err = p.joined(ctx); err != nil {
			return err
		}
		c.clock.set(j.by)
	}
	if err := bench.Sleep(ctx, 5*time.Second); err != nil { // what the controller does with the wrong clock
		return err
	}
	c.clock.set(0)
	began := time.Now()
	var last error
	for {
		if last = p.readyNow(ctx); last == nil {
			break
		}
		if time.Since(began) > faultPatience {
			return fmt.Errorf("after %v: %w", faultPatience, last)
		}
		if err := bench.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set(id+"/up", time.Since(began).Seconds())
	if dir == "" {
		if dir, err = p.joined(ctx); err != nil {
			return err
		}
	}
	for {
		ok, err := p.accepts(ctx, dir)
		if err != nil {
			return err
		}
		if ok {
			break
		}
		if time.Since(began) > faultPatience {
			return fmt.Errorf("after %v the agent is not connected", faultPatience)
		}
	}
	sheet.Set(id+"/agent", time.Since(began).Seconds())
	return nil
}

// joined creates the host h1, and returns the folder of its identity.
func (p *place) joined(ctx context.Context) (string, error) {
	operator := p.ask(p.controllers[0])
	if _, err := operator.must(ctx, http.MethodPut, "/v1/hosts/h1", map[string]any{}); err != nil {
		return "", err
	}
	return p.join(ctx, operator, "h1")
}

// readyNow reads the pin and the token, and asks with them.
func (p *place) readyNow(ctx context.Context) error {
	c := p.controllers[0]
	if _, after, ok := strings.Cut(c.said.String(), "certificate pin "); ok {
		p.pin, _, _ = strings.Cut(after, "\n")
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "operator.token"))
	if err != nil {
		return err
	}
	p.token = strings.TrimSpace(string(text))
	a := p.ask(c)
	defer a.client.CloseIdleConnections()
	_, err = a.must(ctx, http.MethodGet, "/v1/session", nil)
	return err
}
