package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
)

// inVM is set in the virtual machine of scripts/test-vm, whose kernel has Open vSwitch.
const inVM = "HEADGATE_VM"

// suite is the short suite that each datapath must pass.
var suite = []string{"discovery", "connect", "failover", "trace"}

// withKernel is Headgate on Open vSwitch's datapath in the kernel.
var withKernel = method{name: bench.Ours, kernel: true}

func interopCases() (out []bench.Case) {
	one := func(id, what string, takes func(bool) time.Duration, run func(ctx context.Context, r *bench.Run) error) {
		c := bench.Case{Name: id, Takes: takes, Run: run}
		for _, part := range suite {
			c.Claims = append(c.Claims, bench.NewClaim(id+"/"+part, what+": checks of "+part+" that fail", failures))
		}
		out = append(out, c)
	}
	one("interop/userspace", "Open vSwitch's datapath in user space", bench.Takes(12*time.Second, 15*time.Second), func(ctx context.Context, r *bench.Run) error {
		return runSuite(ctx, r, "interop/userspace", ours)
	})
	one("interop/kernel", "Open vSwitch's datapath in the kernel, in the virtual machine", bench.Takes(0, 10*time.Minute), kernelSuite)
	return out
}

// runSuite runs the suite on a looped network. A part that cannot be checked is missing, with the reason.
func runSuite(ctx context.Context, r *bench.Run, id string, m method) (err error) {
	s := ring(4, 4)
	n, err := m.up(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	sheet := r.Sheet(bench.Ours)
	set := func(part string, failed int, notes ...string) {
		sheet.Set(id+"/"+part, float64(failed))
		for _, one := range notes[:min(len(notes), 5)] {
			sheet.Note(id+"/"+part, "%s", one)
		}
	}
	// The network was shown right, or up had failed: it still is.
	shown, err := n.controller().Show(ctx)
	if err != nil {
		return err
	}
	if why := expectedOf(n.Topology).differs(shownBy(shown)); why != "" {
		set("discovery", 1, why)
	} else {
		set("discovery", 0)
	}
	reach := func() (failed []string, err error) {
		for _, six := range []bool{false, true} {
			f, err := pingPairs(ctx, n.Lab, pairs(len(s.hosts), false), six)
			if err != nil {
				return nil, err
			}
			failed = append(failed, f.failed...)
		}
		return failed, nil
	}
	failed, err := reach()
	if err != nil {
		return err
	}
	set("connect", len(failed), failed...)
	if err := n.trace(ctx, set); err != nil {
		sheet.Fail(fmt.Errorf("trace: %w", err))
	}
	if err := portDown(ctx, n, "s2"); err != nil {
		return err
	}
	if err := bench.Sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	if failed, err = reach(); err != nil {
		return err
	}
	set("failover", len(failed), failed...)
	return ctx.Err()
}

// trace checks that "network trace" ends at the host that has the address, over the switches of "network path".
func (n *network) trace(ctx context.Context, set func(part string, failed int, notes ...string)) error {
	from, err := n.Node("h1").Addr(false)
	if err != nil {
		return err
	}
	to, err := n.Node("h3").Addr(false)
	if err != nil {
		return err
	}
	type traced struct {
		Hops []struct {
			Switch string `json:"switch"`
			Steps  []struct {
				End   string   `json:"end"`
				Hosts []string `json:"hosts"`
			} `json:"steps"`
		} `json:"hops"`
	}
	type path struct {
		Hops []struct {
			Switch string `json:"switch"`
		} `json:"hops"`
	}
	got, err := controllers.Ask[traced](ctx, n.controller(), "network", "trace", "--packet", fmt.Sprintf("tcp %v:1000 %v:80", from, to), "--from", from.String())
	if err != nil {
		return err
	}
	want, err := controllers.Ask[path](ctx, n.controller(), "network", "path", from.String(), to.String())
	if err != nil {
		return err
	}
	var way, wanted []string
	delivered := 0
	for _, h := range got.Hops {
		way = append(way, h.Switch)
		for _, s := range h.Steps {
			if s.End == "delivered" {
				delivered++
			}
		}
	}
	for _, h := range want.Hops {
		wanted = append(wanted, h.Switch)
	}
	var wrong []string
	if strings.Join(way, " ") != strings.Join(wanted, " ") {
		wrong = append(wrong, fmt.Sprintf("the trace goes over %v, and the path over %v", way, wanted))
	}
	if delivered != 1 {
		wrong = append(wrong, fmt.Sprintf("the packet is delivered %d times", delivered))
	}
	set("trace", len(wrong), wrong...)
	return nil
}

// vmTimeout is how long the virtual machine may take, in which everything is emulated.
const vmTimeout = 15 * time.Minute

// resultWord begins the line with the result in the virtual machine's output.
const resultWord = "RESULT "

// kernelSuite runs the suite in the virtual machine, or starts that.
func kernelSuite(ctx context.Context, r *bench.Run) error {
	const id = "interop/kernel"
	if os.Getenv(inVM) != "" {
		return runSuite(ctx, r, id, withKernel)
	}
	if r.Quick {
		return errors.New("only in the full benchmark, in the source tree: it boots a virtual machine")
	}
	out, err := bench.InVM(ctx, vmTimeout, `export HEADGATE_VM=1 PATH=/usr/sbin:/usr/bin:/sbin:/bin
modprobe openvswitch || exit 1
"$CACHE/headgate" bench fabric --only interop/kernel -o json >/tmp/result || exit 1
echo
echo "RESULT $(tr -d '\n' </tmp/result)"`)
	if err != nil {
		return err
	}
	result, err := resultIn(out)
	if err != nil {
		return err
	}
	sheet := r.Sheet(bench.Ours)
	for _, c := range result.Claims {
		if c.Ours == nil {
			sheet.Fail(fmt.Errorf("%s: %s", c.ID, c.Missing))
			continue
		}
		sheet.Set(c.ID, *c.Ours)
		for _, n := range c.Notes {
			sheet.Note(c.ID, "%s", n)
		}
		sheet.Note(c.ID, "on Linux %s", result.Environment.Kernel)
	}
	return nil
}

// resultIn finds the result of a bench in the virtual machine's output.
func resultIn(out string) (r bench.Result, err error) {
	_, after, ok := strings.Cut(out, resultWord+"{")
	if !ok {
		return r, fmt.Errorf("the virtual machine has no result: %s", bench.LastLines(out))
	}
	return r, json.NewDecoder(strings.NewReader("{" + after)).Decode(&r)
}
