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

// measured: the issue asks that every cell be measured and printed, whatever it is.
var (
	measuredCPU  = bench.Target{Op: bench.Measured, Unit: "% of a core"}
	measuredMbit = bench.Target{Op: bench.Measured, Unit: "Mbit/s"}
)

var rows = []bench.Row{
	{ID: "survey", What: "The seed's switch survey (chapter VI, table A.6): the iperf3 ring at 5 to 55 Mbit/s and far beyond, processor time and confirmed throughput through a Linux bridge, Open vSwitch, routed veth, and with groups on; every cell measured and printed beside the seed's."},
}

// Bench is `headgate bench switching`.
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
forwards unfinished checksums; or it routes; or the bridge has Headgate's groups on each
port, for what leaves there: a group for each hop, and a limit of 100 Gbit/s, which
is never reached. "none" is no host at all: the machines are joined directly, and it
shows what the ring costs without a switch.

**The load** is iperf3 in a ring, vm1 to vm2 to pm to vm1, each at the same rate, in UDP
datagrams of 8 KiB: the seed does not name them, but its confirmed rates at 5 Mbit/s
are those of 76 and 77 such datagrams a second. The machines have 256 MiB for datagrams
of which a fragment is missing: with the kernel's 4 MiB a switch that drops silences its
receivers for half a minute. "unlimited" is one CUBIC connection on
each hop. "drawn-1" has a rate that the run's seed gave, from 60 to 900 Mbit/s.

**Processor time** is that of the six iperf3, of Open vSwitch's programs, and of the kernel's
softirq threads, by the scheduler's count, one core being 100 %. In one kernel a packet is
carried through a switch in the name of the program that sends it, all the way to the
receiver's socket, so that this is nearly all that the ring costs; interrupts of an idle
processor are not in it, and no other program of the machine is. The seed counts dom0
alone, with the virtual machines left out. "none" is what to take off. Time for
which a hypervisor holds the machine back counts as used, where the kernel is not told.

**Throughput** is UDP or TCP payload as the receiving iperf3 reports it. A run lasts 10 s, and a
figure is the median of its seconds; the seed's is the mean of ten. All sites are
measured at one rate before the next, so that they are compared under like conditions.`

// load is what the ring is asked for.
type load struct {
	id    string
	mbit  float64 // 0 is unlimited
	drawn string
}

// beyond are the rates that the seed did not go to, in Mbit/s.
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

// wanted: no switch at all is for comparison, at the seed's ends and beyond.
func (c cell) wanted() bool {
	return c.joined || c.drawn == "" && (c.mbit == 0 || c.mbit == 5 || c.mbit >= 55)
}

func (c cell) claims() (out []bench.Claim) {
	for m, name := range measureNames {
		what, target := "confirmed throughput "+titles[m], measuredMbit
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

// seconds is how long iperf3 runs: the seed's ten measurements, or one.
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
		if b != nil { // also of what is not complete
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
		return fmt.Errorf("read the offloads of %s: %w", machines[0], err)
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
