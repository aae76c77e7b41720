package htb

import (
	"fmt"
	"log/slog"

	"github.com/cilium/ebpf"

	"headgate/shaper/classifier"
)

// Names of the marker's maps.
const (
	queues = "queues"
	paces  = "paces"
	levels = "levels"
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

// byteTime is what one byte takes at a rate of bytes per second, in 1/1024 ns.
func byteTime(rate uint64) uint64 { return 1e9 << 10 / max(1, rate) }

// pace is struct pace in bpf/headgate.h.
type pace struct {
	CeilingByteTime, GuaranteeByteTime uint64
	QueueBytes, FrameBytes             uint32
	LargeMinor, _                      uint32
}

// queues prepares the map of queue states, registered with the departure hook.
// Without the hook (a kernel without BTF, no bpf file system) nothing is marked,
// and queues are bounded by their length alone.
func (w *want) queues(k *kernel, i int, spec *ebpf.CollectionSpec, reuse map[string]*ebpf.Map) (*ebpf.Map, func(), error) {
	none := func() {}
	d, err := openDepartures()
	if err != nil {
		slog.Warn("queues are not measured, and ECN is not marked", "reason", err)
		w.record.Token = 0
		return nil, none, nil
	}
	defer d.close()
	m, kept := reuse[queues]
	if !kept {
		if m, err = ebpf.NewMap(spec.Maps[queues]); err != nil {
			return nil, none, fmt.Errorf("cannot make the map of queues: %w", err)
		}
		none = func() { m.Close() }
	}
	if err := w.initQueues(m, uint32(k.sides[i].qdisc.Attrs().Index)); err != nil {
		return nil, none, err
	}
	if !kept || !d.knows(w.record.Token) {
		if w.record.Token, err = d.register(m); err != nil {
			return nil, none, err
		}
	}
	return m, none, nil
}

// initQueues tells each class's queue its device, and what its bytes take at the
// ceiling until that is measured.
func (w *want) initQueues(m *ebpf.Map, ifindex uint32) error {
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
		return fmt.Errorf("cannot prepare the queues: %w", err)
	}
	return nil
}

// paces are what each class's bytes take, by minor number.
func (w *want) paces() (minors []uint32, values []pace) {
	large := map[uint16]bool{}
	for _, c := range w.classes {
		large[c.minor] = c.large
	}
	for _, c := range w.classes {
		if c.large {
			continue
		}
		beside := uint32(0) // the class of frames that are larger than c's leaf passes
		for _, minor := range []uint16{c.minor, c.parent} {
			if beside == 0 && large[minor|largeFrames] {
				beside = uint32(minor | largeFrames)
			}
		}
		minors = append(minors, uint32(c.minor))
		values = append(values, pace{LargeMinor: beside, CeilingByteTime: byteTime(c.ceiling.BytesPerSecond()), GuaranteeByteTime: byteTime(c.htb.Rate), QueueBytes: c.queue.bounded(), FrameBytes: c.queue.fifo.Segment})
	}
	return minors, values
}

// setPaces tells a program the rates of groups: the marker, and the budgets of
// control traffic.
func (w *want) setPaces(maps map[string]*ebpf.Map) error {
	minors, values := w.paces()
	if err := putPaces(maps[paces], minors, values); err != nil {
		return err
	}
	minors, allowances := w.allowances()
	return classifier.PutAllowances(maps[classifier.Allowances], minors, allowances)
}

// setLevels tells a program the classes above each leaf (bpf/queue.h, STAMP_LEVELS).
func (w *want) setLevels(m *ebpf.Map) error {
	var minors, above []uint32
	for i := range w.Tree.Nodes {
		minors, above = append(minors, uint32(w.minor(i))), append(above, w.above(i))
	}
	if err := classifier.PutAll(m, minors, above); err != nil {
		return fmt.Errorf("cannot tell the classifier what groups are in: %w", err)
	}
	return nil
}

// above are the classes above a leaf, or above a group's clients.
func (w *want) above(node int) (levels uint32) {
	n := w.Tree.Nodes[node]
	if !n.Clients.IsZero() {
		levels = uint32(w.minor(node))
	}
	for p := n.Parent; p >= 0; p = w.Tree.Nodes[p].Parent {
		levels = levels<<16 | uint32(w.minor(p))
	}
	return levels
}

func (w *want) allowances() (minors []uint32, values []classifier.Allowance) {
	return classifier.AllowancesOf(*w.Tree, w.minor, rootMinor, w.record.Places)
}

func putPaces(m *ebpf.Map, minors []uint32, values []pace) error {
	if err := classifier.PutAll(m, minors, values); err != nil {
		return fmt.Errorf("cannot tell the marker the rates of groups: %w", err)
	}
	return nil
}

func (w *want) pacesDiffer(maps map[string]*ebpf.Map) bool {
	minors, values := w.paces()
	if differ(maps[paces], minors, values) {
		return true
	}
	minors, allowances := w.allowances()
	return differ(maps[classifier.Allowances], minors, allowances)
}

// differ tells whether a map by minor number, if there is one, has other values.
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

// rewritePaces tells the markers of programs that stay the new rates.
func (m *move) rewritePaces() error {
	for i, s := range m.sides {
		if !s.paces {
			continue
		}
		if err := m.want[i].setPaces(m.k.sides[i].Maps); err != nil {
			return err
		}
	}
	return nil
}

func readQueues(m *ebpf.Map) ([]queue, error) { return classifier.ReadAll[queue](m) }
