package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
)

var noneBroken = bench.Target{Op: "<=", Value: 0, Unit: "promises"}

// demos is how many demos are run, each with a seed of its own.
const demos = 10

// demoPatience is the time limit of a demo, which takes about two minutes.
const demoPatience = 6 * time.Minute

func wholeCases(seed uint64) []bench.Case {
	return []bench.Case{{
		Name: "whole", Takes: bench.Takes(0, demos*150*time.Second),
		Run: func(ctx context.Context, r *bench.Run) error { return whole(ctx, r, seed) },
		Claims: []bench.Claim{
			bench.NewClaim("whole/kept", "promises that demo --network breaks, in ten runs with random seeds", noneBroken),
			bench.NewClaim("whole/clean", "namespaces, files and links that these leave", bench.Target{Op: "<=", Value: 0, Unit: "remains"}),
			bench.NewClaim("whole/time", "median time of a run", bench.Target{Op: bench.Measured, Unit: "s"}),
		},
	}}
}

// demoResult is what the bench reads of the result of a demo.
type demoResult struct {
	Promises []struct {
		ID                  string
		Promised, Delivered float64
		OK                  bool
	}
	Left []string
}

func whole(ctx context.Context, r *bench.Run, seed uint64) error {
	if r.Quick && !r.Few {
		return errFull
	}
	var times []float64
	var broken []string
	promises, left := 0, 0
	draw := rand.New(rand.NewPCG(seed, 0))
	for range demos {
		one := draw.Uint64N(1_000_000)
		began := time.Now()
		got, err := runDemo(ctx, one)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // it kept none of its promises
			broken = append(broken, fmt.Sprintf("seed %d: %v", one, err))
			continue
		}
		times = append(times, time.Since(began).Seconds())
		left += len(got.Left)
		for _, p := range got.Promises {
			promises++
			if !p.OK {
				broken = append(broken, fmt.Sprintf("seed %d: %s %s, promised %s", one, p.ID, bench.Number(p.Delivered), bench.Number(p.Promised)))
			}
		}
	}
	if len(times) == 0 {
		return errors.New(strings.Join(broken, "; "))
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("whole/kept", float64(len(broken)))
	sheet.Note("whole/kept", "of %d promises. %s", promises, strings.Join(broken, "; "))
	sheet.Set("whole/clean", float64(left))
	sheet.Set("whole/time", bench.Median(times))
	return nil
}

// runDemo runs a demo as a user does, and returns its result, also if promises were broken.
func runDemo(ctx context.Context, seed uint64) (out demoResult, err error) {
	self, err := os.Executable()
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, demoPatience)
	defer cancel()
	c := exec.CommandContext(ctx, self, "demo", "--network", "--seed", fmt.Sprint(seed), "-o", "json")
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // it cleans up
	c.WaitDelay = 30 * time.Second
	var text bytes.Buffer
	said := &bench.Tail{Keep: 1 << 14}
	c.Stdout, c.Stderr = &text, said
	ran := c.Run()
	var exit *exec.ExitError
	if ran != nil && !errors.As(ran, &exit) {
		return out, ran
	}
	if err := json.Unmarshal(text.Bytes(), &out); err != nil || len(out.Promises) == 0 {
		return out, fmt.Errorf("%w: %s", errors.Join(ran, err), bench.LastLines(said.String()))
	}
	return out, nil
}
