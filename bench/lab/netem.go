package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"headgate.dev/headgate/bench"
)

// The same connection over netem, in a virtual machine with Debian's kernel, which has it: an emulated
// processor carries some 10 Mbit/s. It requires the source tree, whose tests run there
// (lab/pftk_vm_test.go).
const (
	vmLength  = 120 * time.Second
	vmTimeout = 10 * time.Minute
)

func netemCases() []bench.Case {
	var claims []bench.Claim
	for _, p := range netemLosses {
		claims = append(claims, bench.NewClaim(netemID(p), "Reno's goodput over netem in the virtual machine, deviation from the PFTK formula", formulaOff).
			WithNote("only in the full benchmark, in the source tree: it boots a virtual machine"))
	}
	return []bench.Case{{
		Name: "tcp/netem", Claims: claims, Run: runNetem,
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 0, vmLength+90*time.Second) },
	}}
}

var netemLosses = []string{"0.001", "0.01"}

func netemID(p string) string {
	return "tcp/netem/50ms/" + map[string]string{"0.001": "0.1%", "0.01": "1%"}[p]
}

func runNetem(ctx context.Context, r *bench.Run) error {
	if r.Quick {
		return errors.New("the virtual machine is only in the full benchmark")
	}
	out, err := bench.InVM(ctx, vmTimeout, fmt.Sprintf("cd \"$(dirname \"$0\")\" && RENO_SECONDS=%.0f exec \"$CACHE/lab.test\" -test.v -test.run '^TestNetemReno'", vmLength.Seconds()))
	if err != nil {
		return err
	}
	sheet := r.Sheet(bench.Ours)
	for _, p := range netemLosses {
		got, want, err := renoIn(out, p)
		if err != nil {
			return err
		}
		sheet.Set(netemID(p), 100*math.Abs(got/want-1))
		sheet.Note(netemID(p), "%s Mbit/s, the formula predicts %s", bench.Number(got), bench.Number(want))
	}
	return nil
}

// renoIn finds the test's measured and predicted rates for a loss rate, in Mbit/s.
func renoIn(out, loss string) (got, want float64, err error) {
	m := regexp.MustCompile(`loss ` + regexp.QuoteMeta(loss) + `: ([0-9.]+) Mbit/s, PFTK predicts ([0-9.]+)`).FindStringSubmatch(out)
	if m == nil {
		return 0, 0, fmt.Errorf("no result for a loss of %s in the virtual machine's output", loss)
	}
	got, err = strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, 0, err
	}
	want, err = strconv.ParseFloat(m[2], 64)
	return got, want, err
}
