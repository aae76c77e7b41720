package htb

import (
	"fmt"
	"log/slog"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/shaper/classifier"
)

// Names of the marker's maps.
const (
	queues        = "queues"
	classTimesMap = "paces"
	levels        = "levels"
)

// queue is struct queue in bpf/headgate.h.
type queue struct {
	ArrivedBytes, DepartedBytes, StampEvery, LookEvery uint32
	BoundBytes, LargeFrame                             uint32
	LeftAtNS, DepartedAtNS, SojournNS, ServiceByteTime uint64
	ArrivedAtNS                                        uint64

	BusyNS                 uint64
	BusyBytes              int64
	WaitedNS, Departures   uint64
	QueuedNS               uint64
	QueuedBytes            int64
	AskedAtNS, AskedLeftNS uint64

	CountedBytes, PeriodMarks                     uint32
	VirtualNS, BusySinceNS                        uint64
	GapNS, GapNextNS, GapAtNS, PeriodAtNS, IdleNS uint64

	SlackNS, RTTNS                                 uint64
	AskedFlow, AskedBytes                          uint32
	MarkCount, LongBytes, MarkAtBytes, LongAtBytes uint32
	Flooded, Ifindex, ShortAtBytes                 uint32
	_                                              [3]uint32
}

// byteTime returns the time per byte at a rate in bytes per second, in 1/1024 ns.
func byteTime(rate uint64) uint64 { return 1e9 << 10 / max(1, rate) }

// classTimes is struct pace in bpf/headgate.h.
type classTimes struct {
	CeilingByteTime, GuaranteeByteTime uint64
	QueueBytes, FrameBytes             uint32
	LargeMinor, _                      uint32
}

// queues prepares the map of queue states and registers it with the departure hook. Without the
// hook (a kernel without BTF, no bpf file system), no packets are marked, and queues are
// limited only by their length.
func (w *desiredSide) queues(k *kernel, i int, spec *ebpf.CollectionSpec, reuse map[string]*ebpf.Map) (*ebpf.Map, func(), error) {
	none := func() {}
	d, err := openDepartures()
	if err != nil {
		slog.Warn("cannot open departure hook; queue delay is not measured and ECN marking is disabled", "reason", err)
		w.record.Token = 0
		return nil, none, nil
	}
	defer d.close()
	m, kept := reuse[queues]
	if !kept {
		if m, err = ebpf.NewMap(spec.Maps[queues]); err != nil {
			return nil, none, fmt.Errorf("cannot create the map of queues: %w", err)
		}
		none = func() { m.Close() }
	}
	if err := w.initQueues(m, uint32(k.sides[i].qdisc.Attrs().Index)); err != nil {
		return nil, none, err
	}
	if !kept || !d.hasToken(w.record.Token) {
		if w.record.Token, err = d.register(m); err != nil {
			return nil, none, err
		}
	}
	return m, none, nil
}

// initQueues sets each queue's device, and its time per byte at the ceiling until the time is
// measured.
func (w *desiredSide) initQueues(m *ebpf.Map, ifindex uint32) error {
	have, err := readQueues(m)
	if err != nil {
		return err
	}
	var minors []uint32
	var fresh []queue
	for _, c := range w.classes {
		if !c.large && have[c.minor].Ifindex != ifindex {
			minors = append(minors, uint32(c.minor))
			fresh = append(fresh, queue{Ifindex: ifindex, ServiceByteTime: byteTime(c.ceiling.BytesPerSecond())})
		}
	}
	if err := classifier.PutAll(m, minors, fresh); err != nil {
		return fmt.Errorf("cannot initialize the queues: %w", err)
	}
	return nil
}

// classTimes returns the times per byte of each class, by minor number.
func (w *desiredSide) classTimes() (minors []uint32, values []classTimes) {
	large := map[uint16]bool{}
	for _, c := range w.classes {
		large[c.minor] = c.large
	}
	for _, c := range w.classes {
		if c.large {
			continue
		}
		beside := uint32(0) // the class of frames larger than c's leaf passes
		for _, minor := range []uint16{c.minor, c.parent} {
			if beside == 0 && large[minor|largeFrames] {
				beside = uint32(minor | largeFrames)
			}
		}
		minors = append(minors, uint32(c.minor))
		values = append(values, classTimes{LargeMinor: beside, CeilingByteTime: byteTime(c.ceiling.BytesPerSecond()), GuaranteeByteTime: byteTime(c.htb.Rate), QueueBytes: c.queue.fillLimit(), FrameBytes: c.queue.fifo.Segment})
	}
	return minors, values
}

// setClassTimes writes the times per byte of classes into a program's maps: for the marker, and
// for the budgets of control traffic.
func (w *desiredSide) setClassTimes(maps map[string]*ebpf.Map) error {
	minors, values := w.classTimes()
	if err := putClassTimes(maps[classTimesMap], minors, values); err != nil {
		return err
	}
	minors, allowances := w.allowances()
	return classifier.PutAllowances(maps[classifier.Allowances], minors, allowances)
}

// setLevels writes the parent classes of each leaf into a program's map (bpf/queue.h,
// STAMP_LEVELS).
func (w *desiredSide) setLevels(m *ebpf.Map) error {
	var minors, above []uint32
	for i := range w.Tree.Nodes {
		minors, above = append(minors, uint32(w.minor(i))), append(above, w.above(i))
	}
	if err := classifier.PutAll(m, minors, above); err != nil {
		return fmt.Errorf("cannot write the parent classes of groups: %w", err)
	}
	return nil
}

// above returns the parent classes of a leaf, or of a group's clients.
func (w *desiredSide) above(node int) (levels uint32) {
	n := w.Tree.Nodes[node]
	if !n.Clients.IsZero() {
		levels = uint32(w.minor(node))
	}
	for p := n.Parent; p >= 0; p = w.Tree.Nodes[p].Parent {
		levels = levels<<16 | uint32(w.minor(p))
	}
	return levels
}

func (w *desiredSide) allowances() (minors []uint32, values []classifier.Allowance) {
	return classifier.AllowancesOf(*w.Tree, w.minor, rootMinor, w.record.Places)
}

func putClassTimes(m *ebpf.Map, minors []uint32, values []classTimes) error {
	if err := classifier.PutAll(m, minors, values); err != nil {
		return fmt.Errorf("cannot write the rates of groups: %w", err)
	}
	return nil
}

func (w *desiredSide) classTimesDiffer(maps map[string]*ebpf.Map) bool {
	minors, values := w.classTimes()
	if differ(maps[classTimesMap], minors, values) {
		return true
	}
	minors, allowances := w.allowances()
	return differ(maps[classifier.Allowances], minors, allowances)
}

// differ reports whether a map indexed by minor number exists and has other values.
func differ[T comparable](m *ebpf.Map, minors []uint32, values []T) bool {
	if m == nil {
		return false
	}
	have, err := classifier.ReadAll[T](m)
	if err != nil {
		return true
	}
	for i, minor := range minors {
		if int(minor) >= len(have) || have[minor] != values[i] {
			return true
		}
	}
	return false
}

// rewriteClassTimes writes the new times per byte into the maps of programs that stay.
func (m *transition) rewriteClassTimes() error {
	for i, s := range m.sides {
		if !s.newClassTimes {
			continue
		}
		if err := m.desired[i].setClassTimes(m.k.sides[i].Maps); err != nil {
			return err
		}
	}
	return nil
}

func readQueues(m *ebpf.Map) ([]queue, error) { return classifier.ReadAll[queue](m) }
