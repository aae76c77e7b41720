package groups

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit"
)

// costCase is the eBPF time per packet.
type costCase struct {
	in    bool
	name  string
	flows int
	size  int  // of the frames
	ecn   bool // the packets are ECN-capable
	aim   bench.Target
}

func costCases() (out []costCase) {
	for _, in := range []bool{false, true} {
		out = append(out,
			costCase{in, "one-hot-flow", 1, smallest, false, costHot},
			costCase{in, "one-hot-flow-ecn", 1, smallest, true, costHot},
			costCase{in, "one-hot-flow-ecn-full-frames", 1, fullest, true, costHot},
			costCase{in, "100000-flows", 100_000, smallest, false, costFlows},
		)
	}
	return out
}

func (c costCase) id() string { return fmt.Sprintf("cost/%s/%s", c.name, direction(c.in)) }

func (c costCase) claim() bench.Claim {
	what := "eBPF time per packet, classifier and departure hook"
	if c.ecn {
		what += "; ECN-capable packets"
	}
	return bench.NewClaim(c.id(), what, c.aim)
}

// neverReached is a limit above the capacity of the machine.
const neverReached = 100 * unit.Gbit

func (c costCase) run(ctx context.Context, r *bench.Run) error {
	length := 5 * time.Second
	if r.Quick {
		length = 600 * time.Millisecond
	}
	return c.withStatistics(ctx, seedGroups(neverReached), func(l *lab.Lab, device string) error {
		f, err := newFlood(device, c.flows, c.size, c.ecn)
		if err != nil {
			return err
		}
		defer f.close()
		if err := f.each(); err != nil {
			return err
		}
		taken, err := c.take(l, f, length)
		if err != nil {
			return err
		}
		sheet := r.Sheet(bench.Ours)
		taken.set(sheet, c.id())
		sheet.Keep("packets", taken.packets)
		sheet.Keep("packets_per_s", taken.packets/length.Seconds())
		sheet.Keep("classifier_ns", taken.classifier)
		sheet.Keep("hook_ns", taken.hook)
		return nil
	})
}

// withStatistics shapes a device between two hosts without a router: nothing is forwarded, and the
// receiver drops. It calls do at the sending host, with its device, while the kernel keeps statistics
// of eBPF.
func (c costCase) withStatistics(ctx context.Context, d group.Direction, do func(l *lab.Lab, device string) error) (err error) {
	l, err := lab.Up(ctx, &lab.Topology{
		Name: lab.UniqueName("bench"), Nodes: []lab.NodeSpec{{Name: dev}, {Name: "server"}}, Links: []lab.LinkSpec{{Ends: [2]string{dev, "server"}}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	p, err := plan(d, c.in)
	if err != nil {
		return err
	}
	ours, err := newLimiter(bench.Ours)
	if err != nil {
		return err
	}
	if err := within(l, func() error { return ours.Apply(p) }); err != nil {
		return err
	}
	defer within(l, func() error { return ours.Clear(dev) })
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return fmt.Errorf("cannot turn on the kernel's eBPF statistics: %w", err)
	}
	defer stats.Close()
	from, device := "server", dev
	if c.in {
		from, device = dev, "server"
	}
	return l.Node(from).Do(func() error { return do(l, device) })
}

// perPacket is the time of the eBPF programs for a packet, in ns.
type perPacket struct{ packets, classifier, hook float64 }

func (p perPacket) set(sheet *bench.Sheet, id string) {
	sheet.Set(id, p.classifier+p.hook)
	sheet.Note(id, "classifier %s ns, departure hook %s ns", bench.Number(p.classifier), bench.Number(p.hook))
}

// take measures that in a flood.
func (c costCase) take(l *lab.Lab, f *flood, length time.Duration) (p perPacket, err error) {
	before, err := c.spent(l)
	if err != nil {
		return p, err
	}
	if err := f.run(length); err != nil {
		return p, err
	}
	after, err := c.spent(l)
	if err != nil {
		return p, err
	}
	if p.packets = float64(after.classified - before.classified); p.packets == 0 {
		return p, errors.New("no packet reached the classifier")
	}
	p.classifier, p.hook = float64(after.classifier-before.classifier)/p.packets, float64(after.hook-before.hook)/p.packets
	return p, nil
}

// spent is the use of the eBPF programs: classified packets, and time.
type spent struct {
	classified       uint64
	classifier, hook time.Duration
}

// spent reads the kernel's statistics of the classifier on the device, and of the departure hook.
// There is one hook for the whole machine, so that its cost on other devices of the path is included.
func (c costCase) spent(l *lab.Lab) (s spent, err error) {
	var id uint32
	err = within(l, func() error {
		id, err = classifierOn(dev, c.in)
		return err
	})
	if err != nil {
		return s, err
	}
	program, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return s, fmt.Errorf("cannot open the classifier: %w", err)
	}
	defer program.Close()
	used, err := program.Stats()
	if err != nil {
		return s, err
	}
	s.classified, s.classifier = used.RunCount, used.Runtime
	s.hook, err = hookTime()
	return s, err
}

// classifierOn finds Headgate's filter on a device.
func classifierOn(dev string, in bool) (id uint32, err error) {
	link, err := net.InterfaceByName(dev)
	if err != nil {
		return 0, err
	}
	conn, err := nl.Open()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	hook := nl.ClsactEgress
	if in {
		hook = nl.ClsactIngress
	}
	filters, err := conn.Objects("filters", unix.RTM_GETTFILTER, nl.TC{Ifindex: link.Index, Parent: hook})
	if err != nil {
		return 0, err
	}
	for _, f := range filters {
		if name, id := f.BPFFilter(); id != 0 && strings.HasPrefix(name, "headgate") {
			return id, nil
		}
	}
	return 0, fmt.Errorf("no Headgate classifier on %s", dev)
}

// hookName is the prefix of the departure hook's name; the kernel keeps 15 letters.
const hookName = "headgate_depart"

// hookTime returns the time that departure hooks have used, of all loaded versions.
func hookTime() (sum time.Duration, err error) {
	for id := ebpf.ProgramID(0); ; {
		if id, err = ebpf.ProgramGetNextID(id); errors.Is(err, unix.ENOENT) {
			return sum, nil
		} else if err != nil {
			return 0, fmt.Errorf("cannot list eBPF programs: %w", err)
		}
		program, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // it was removed
		}
		if info, err := program.Info(); err == nil && strings.HasPrefix(info.Name, hookName) {
			if used, err := program.Stats(); err == nil {
				sum += used.Runtime
			}
		}
		program.Close()
	}
}

func costBenches() (out []bench.Case) {
	for _, c := range costCases() {
		out = append(out, bench.Case{
			Name: c.id(), Run: c.run, Claims: []bench.Claim{c.claim()},
			Takes: func(quick bool) time.Duration {
				if quick {
					return 900 * time.Millisecond
				}
				return 6 * time.Second
			},
		})
	}
	return append(out, throughputBenches()...)
}
