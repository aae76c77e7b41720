package fabric

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/judge"
)

func codecCases() []bench.Case {
	return []bench.Case{
		{
			Name: "codec/ovs-ofctl", Takes: bench.Takes(2*time.Second, time.Minute), Run: judgedByOVS, Alongside: codecBatch,
			Claims: []bench.Claim{bench.NewClaim("codec/ovs-ofctl", "messages of which ovs-ofctl prints something else than was meant, of 2,000 of every kind that it has", none)},
		},
		{
			Name: "codec/os-ken", Takes: bench.Takes(5*time.Second, 3*time.Minute), Run: judgedByOSKen, Alongside: codecBatch,
			Claims: []bench.Claim{bench.NewClaim("codec/os-ken", "messages that os-ken parses and serialises to other bytes, of 2,000 of every kind that it has", none)},
		},
		{
			Name: "codec/decode", Takes: bench.Takes(2*time.Second, 10*time.Second), Run: decodeSpeed,
			Claims: []bench.Claim{bench.NewClaim("codec/decode", "decoded on one processor: as many each of echo requests, packet-ins of 60 bytes, port-status, barrier replies and flow-removed", decoded)},
		},
		{
			Name: "codec/fuzz", Takes: bench.Takes(0, 81*time.Minute/time.Duration(runtime.NumCPU())+time.Minute), Run: fuzz,
			Claims: []bench.Claim{bench.NewClaim("codec/fuzz", "fuzz targets of the decoders that fail, 10 min each", failures)},
		},
	}
}

// codecBatch lets both judges run at the same time in a smoke run.
func codecBatch(quick bool) string { return bench.Pick(quick, "judges", "") }

// perKind is how many messages of each kind are judged.
func perKind(quick bool) int { return bench.Pick(quick, 40, 2000) }

// atOnce is how many kinds are judged by one run of the other program, which keeps all messages in memory.
const atOnce = 8

// judged compares the messages of all kinds but some, and sets the number of those that differ. differ returns the texts of
// differences.
func judged(ctx context.Context, r *bench.Run, id string, not map[string]string, osken bool, differ func(kinds []string, all []openflow.Message) ([]string, error)) error {
	var kinds []string
	var all []openflow.Message
	var differences []string
	n, different := 0, 0
	flush := func() error {
		if len(all) == 0 {
			return nil
		}
		found, err := differ(kinds, all)
		n, different = n+len(all), different+len(found)
		differences = append(differences, found[:min(len(found), 3)]...)
		kinds, all = nil, nil
		return err
	}
	judgedKinds := 0
	for _, k := range judge.Kinds {
		if not[k.Name] != "" {
			continue
		}
		judgedKinds++
		for _, m := range judge.Corpus(k, perKind(r.Quick), osken) {
			kinds, all = append(kinds, k.Name), append(all, m)
		}
		if judgedKinds%atOnce == 0 {
			if err := errors.Join(flush(), ctx.Err()); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set(id, float64(different))
	sheet.Note(id, "%d messages of %d kinds, %d of each; %d kinds are left out, because it does not have them", n, judgedKinds, perKind(r.Quick), len(judge.Kinds)-judgedKinds)
	sheet.Keep("differences", differences)
	return nil
}

func judgedByOVS(ctx context.Context, r *bench.Run) error {
	return judged(ctx, r, "codec/ovs-ofctl", judge.NotByOVS, false, func(kinds []string, all []openflow.Message) (found []string, err error) {
		printed, err := judge.OVS(ctx, all)
		for i, got := range printed {
			if !judge.SameToOVS(kinds[i], all[i], got) {
				found = append(found, fmt.Sprintf("%s: %s, meant was %s", kinds[i], got, judge.Text(all[i])))
			}
		}
		return found, err
	})
}

func judgedByOSKen(ctx context.Context, r *bench.Run) error {
	python, err := osKenPython(ctx)
	if err != nil {
		return err
	}
	return judged(ctx, r, "codec/os-ken", judge.NotByOSKen, true, func(kinds []string, all []openflow.Message) (found []string, err error) {
		var wire [][]byte
		var of []string
		for i, m := range all {
			if out, ok := m.(*openflow.PacketOut); ok && len(out.Actions) == 0 && len(out.Data) > 0 {
				continue // os-ken writes its fields over the first bytes of the packet
			}
			b, err := openflow.Append(nil, uint32(i), m)
			if err != nil {
				return nil, err
			}
			wire, of = append(wire, b), append(of, kinds[i])
		}
		lines, err := judge.OSKen(ctx, python, wire)
		for i, line := range lines {
			if want := hex.EncodeToString(wire[i]); line != want {
				found = append(found, fmt.Sprintf("%s: %s, want %s", of[i], line, want))
			}
		}
		return found, err
	})
}

// osKenPython returns a Python that has os-ken's formats.
func osKenPython(ctx context.Context) (string, error) { return script(ctx, "scripts/osken") }

// script runs a script of the source tree, and returns the line that it prints.
func script(ctx context.Context, name string, args ...string) (string, error) {
	if _, err := os.Stat(name); err != nil {
		return "", fmt.Errorf("%s: run the bench in the source tree: %w", name, err)
	}
	c := exec.CommandContext(ctx, name, args...)
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// decoders are the packages whose fuzz targets decode what comes from outside.
var decoders = []string{"./fabric", "./fabric/openflow", "./fabric/openflow/oftest", "./fabric/ovsdb"}

// fuzz runs each fuzz target of the decoders as "make fuzz FUZZTIME=10m" does.
func fuzz(ctx context.Context, r *bench.Run) error {
	const id, each = "codec/fuzz", "10m"
	if r.Quick {
		return errors.New("only in the full benchmark: \"make fuzz FUZZTIME=10m\" does the same")
	}
	type target struct{ pkg, name string }
	var targets []target
	for _, p := range decoders {
		list, err := exec.CommandContext(ctx, "go", "test", "-list", "^Fuzz", p).Output()
		if err != nil {
			return fmt.Errorf("cannot list the fuzz targets of %s, which needs Go and the source tree: %w", p, err)
		}
		for line := range strings.Lines(string(list)) {
			if name := strings.TrimSpace(line); strings.HasPrefix(name, "Fuzz") {
				targets = append(targets, target{p, name})
			}
		}
	}
	if len(targets) == 0 {
		return errors.New("no fuzz target was found")
	}
	sheet := r.Sheet(bench.Ours)
	var mu sync.Mutex
	failed := 0
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU()) // each has one processor
	for _, t := range targets {
		all.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each, "-fuzzminimizetime", "1s", "-parallel", "1", t.pkg).CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			r.Say("%s %s has ended", t.pkg, t.name)
			if err != nil && ctx.Err() == nil {
				failed++
				sheet.Note(id, "%s %s: %s", t.pkg, t.name, bench.LastLines(string(out)))
			}
			return ctx.Err()
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	sheet.Set(id, float64(failed))
	sheet.Note(id, "%d fuzz targets of %s, %s each on a processor of its own", len(targets), strings.Join(decoders, ", "), each)
	return nil
}

// lastLines returns the end of a program's output, in one line.
