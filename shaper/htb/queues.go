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
)

// queue is struct queue in bpf/headgate.h.
type queue struct {
	DepartedAtNS, SojournNS, ServiceByteTime                       uint64
	BusyNS                                                         uint64
	BusyBytes                                                      int64
	WaitedNS, Departures                                           uint64
	DepartedBytes, Ifindex                                         uint32
	ArrivedAtNS                                                    uint64
	CountedBytes, ArrivedBytes                                     uint32
	VirtualNS                                                      uint64
	BusySinceNS, GapNS, GapNextNS, GapAtNS                         uint64
	PeriodAtNS, IdleNS, SlackNS                                    uint64
	RTTNS, AskedAtNS, AskedLeftNS                                  uint64
	AskedFlow, AskedBytes                                          uint32
	MarkCount, LongBytes, MarkAtBytes, LongAtBytes, PeriodMarks, _ uint32
}

// byteTime is what one byte takes at a rate of bytes per second, in 1/1024 ns.
func byteTime(rate uint64) uint64 { return 1e9 << 10 / max(1, rate) }

// pace is struct pace in bpf/headgate.h.
type pace struct{ CeilingByteTime, GuaranteeByteTime uint64 }

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
		if have[c.minor].Ifindex != ifindex {
			minors = append(minors, uint32(c.minor))
			fresh = append(fresh, queue{Ifindex: ifindex, ServiceByteTime: byteTime(c.htb.Ceil)})
		}
	}
	if err := classifier.PutAll(m, minors, fresh); err != nil {
		return fmt.Errorf("cannot prepare the queues: %w", err)
	}
	return nil
}

// paces are what each class's bytes take, by minor number.
func (w *want) paces() (minors []uint32, values []pace) {
	for _, c := range w.classes {
		minors = append(minors, uint32(c.minor))
		values = append(values, pace{CeilingByteTime: byteTime(c.htb.Ceil), GuaranteeByteTime: byteTime(c.htb.Rate)})
	}
	return minors, values
}

func (w *want) setPaces(m *ebpf.Map) error {
	minors, values := w.paces()
	return putPaces(m, minors, values)
}

func putPaces(m *ebpf.Map, minors []uint32, values []pace) error {
	if err := classifier.PutAll(m, minors, values); err != nil {
		return fmt.Errorf("cannot tell the marker the rates of groups: %w", err)
	}
	return nil
}

func (w *want) pacesDiffer(m *ebpf.Map) bool {
	have, err := classifier.ReadAll[pace](m)
	if err != nil {
		return true
	}
	minors, values := w.paces()
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
		if err := m.want[i].setPaces(m.k.sides[i].Maps[paces]); err != nil {
			return err
		}
	}
	return nil
}

func readQueues(m *ebpf.Map) ([]queue, error) { return classifier.ReadAll[queue](m) }
