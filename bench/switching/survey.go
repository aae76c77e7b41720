package switching

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit"
)

// measured: every cell has to be measured and printed, whatever its value.
var (
	measuredCPU  = bench.Target{Op: bench.Measured, Unit: "% of a core"}
	measuredMbit = bench.Target{Op: bench.Measured, Unit: "Mbit/s"}
)

var rows = []bench.Row{
	{ID: "survey", What: "The seed's switch survey (chapter VI, table A.6): the iperf3 ring at 5 to 55 Mbit/s and far beyond, processor time and confirmed throughput through a Linux bridge, Open vSwitch, routed veth, and with groups on; every cell measured and printed beside the seed's."},
}

// Bench returns the bench of `headgate bench switching`.
func Bench(d *bench.Draw) bench.Bench {
	b := bench.Bench{
		Name: "switching", Title: "A survey of virtual switches", About: about, Rows: rows, Subject: "measured", Seed: d.Seed(), Plots: plots,
		Tools: [][]string{{"iperf3", "--version"}, {"ovs-vswitchd", "--version"}, {"ethtool", "--version"}},
	}
	for _, load := range loads(d) {
		for _, s := range sites {
			if c := (cell{s, load}); c.wanted() {
				b.Cases = append(b.Cases, bench.Case{Name: c.id(""), Claims: c.claims(), Drawn: load.drawn, Takes: c.takes, Run: c.run})
			}
		}
	}
	return b
}

const about = `## How it is measured

**The network** is four namespaces on one machine: vm1, vm2 and pm, each joined to a host
by a veth pair. The host has a Linux bridge; or Open vSwitch, a private instance with
the datapath in user space, with which the machines' offloads are off, because it
forwards partial checksums; or it routes; or the bridge has Headgate's groups on each
port, in direction out: a group for each hop, and a limit of 100 Gbit/s, which
is not reached. "none" is without a host: the machines are connected directly, which
shows the cost of the ring without a switch.

**The load** is iperf3 in a ring, vm1 to vm2 to pm to vm1, each at the same rate, in UDP
datagrams of 8 KiB: the thesis does not specify them, but its received rates at 5 Mbit/s
are those of 76 and 77 such datagrams a second. The machines have 256 MiB for datagrams
with a missing fragment: with the kernel's 4 MiB the receivers behind a switch that drops
receive nothing for half a minute. "unlimited" is one CUBIC connection on
each hop. "drawn-1" has a random rate from 60 to 900 Mbit/s, from the seed of the run.

**Processor time** is that of the six iperf3, of Open vSwitch's programs, and of the kernel's
softirq threads, by the scheduler's counters, one core being 100 %. In one kernel the work for a
packet, through the switch up to the receiver's socket, is attributed to the sending program,
so that this is nearly the whole cost of the ring; interrupts of an idle
processor and other programs of the machine are not included. The thesis counts only dom0,
without the virtual machines. "none" is to be subtracted. Steal time
counts as used, if the hypervisor does not report it to the kernel.

**Throughput** is UDP or TCP payload as the receiving iperf3 reports it. A run lasts 10 s, and a
value is the median of its seconds; that of the thesis is the mean of ten. All sites are
measured at one rate before the next, so that they are compared under the same conditions.`

// load is the load of the ring.
type load struct {
	id    string
	mbit  float64 // 0 is unlimited
	drawn string
}

// beyond are the rates above those of the thesis, in Mbit/s.
var beyond = []int{200, 1000}

const (
	unlimitedID = "unlimited"
	drawnID     = "drawn-1"
)

func loads(d *bench.Draw) (out []load) {
	for _, mbit := range append(seedRates[:len(seedRates):len(seedRates)], beyond...) {
		out = append(out, load{id: fmt.Sprintf("%dMbit", mbit), mbit: float64(mbit)})
	}
	rate := d.For("survey/"+drawnID).Rate(60*unit.Mbit, 900*unit.Mbit)
	return append(out,
		load{id: drawnID, mbit: float64(rate) / 1e6, drawn: fmt.Sprintf("%v on each hop", rate)},
		load{id: unlimitedID})
}

// cell is one site under one load.
type cell struct {
	site
	load
}

func (c cell) id(what string) string {
	id := "survey/" + c.site.id + "/" + c.load.id
	if what != "" {
		id += "/" + what
	}
	return id
}

// wanted: no switch is for comparison, at the lowest and highest rates of the thesis and at higher
// ones.
func (c cell) wanted() bool {
	return c.joined || c.drawn == "" && (c.mbit == 0 || c.mbit == 5 || c.mbit >= 55)
}

func (c cell) claims() (out []bench.Claim) {
	for m, name := range measureNames {
		what, target := "received throughput "+titles[m], measuredMbit
		if m == cpu {
			what, target = "processor time of the ring and the switch", measuredCPU
		}
		claim := bench.NewClaim(c.id(name), c.name+": "+what, target)
		if means, ok := seedMeans[int(c.mbit)]; ok && c.seed >= 0 {
			claim = claim.WithPaper(means[c.seed][m])
		}
		out = append(out, claim)
	}
	return out
}

// seconds is how long iperf3 runs: the thesis's ten measurements, or one.
func seconds(quick bool) int {
	if quick {
		return 1
	}
	return 10
}

func (c cell) takes(quick bool) time.Duration {
	const make, makeOVS = 150 * time.Millisecond, 500 * time.Millisecond
	d := time.Duration(seconds(quick))*time.Second + make
	if c.site.id == "open-vswitch" {
		d += makeOVS
	}
	return d
}

func (c cell) run(ctx context.Context, r *bench.Run) (err error) {
	t := c.topology()
	l, err := lab.Up(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	b := &built{}
	if c.build != nil {
		b, err = c.build(ctx, l)
		if b != nil { // an incomplete one as well
			defer func() { err = errors.Join(err, b.close()) }()
		}
		if err != nil {
			return err
		}
	}
	sheet := r.Sheet(bench.Ours)
	err = l.Node(machines[0]).Do(func() error {
		on, err := bench.Offloads(t.Devices()[0].Device)
		sheet.Keep("offloads", on)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot read the offloads of %s: %w", machines[0], err)
	}
	found, err := ring{mbit: c.mbit, seconds: seconds(r.Quick), addr: c.addr(t), pids: b.pids}.run(ctx, l)
	if err != nil {
		return err
	}
	sheet.SetAll(c.id(measureNames[cpu]), found.busy)
	for i := range hops {
		sheet.SetAll(c.id(measureNames[vm1vm2+i]), found.mbit[i])
	}
	if len(b.pids) > 0 {
		sheet.Keep("switch_cpu_percent", found.own)
		sheet.Note(c.id(measureNames[cpu]), "the switch's own programs used %s %% of a core", bench.Number(found.own))
	}
	return nil
}
