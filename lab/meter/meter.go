package meter

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Options of a meter.
type Options struct {
	// Flows is the maximum number of flows; 0 is 64.
	Flows int
	// Bin is the duration of a bin; 0 is 1 ms.
	Bin time.Duration
	// Length is the duration of the measurement from the start; 0 is 2 minutes. A flow takes 8 bytes
	// per bin: 960 KB for 2 minutes of 1 ms.
	Length time.Duration
}

// Meter counts arrivals by flow. A flow is a name to which any number of ports
// and sockets is assigned.
type Meter struct {
	options  Options
	perFlow  int // bins
	objects  objectObjects
	memory   *ebpf.Memory
	flows    map[string]uint32
	attached []attachment
}

// totals is struct totals of meter.c.
type totals struct{ Bytes, Packets, SKBs, OutsideBytes uint64 }

// portKey is struct port_key of meter.c.
type portKey struct {
	Port  uint16
	Proto uint8
	Dst   uint8
}

// New loads the programs. The meter counts nothing until something is attached or watched, and Start
// was called.
func New(o Options) (*Meter, error) {
	if o.Flows == 0 {
		o.Flows = 64
	}
	if o.Bin == 0 {
		o.Bin = time.Millisecond
	}
	if o.Length == 0 {
		o.Length = 2 * time.Minute
	}
	m := &Meter{options: o, perFlow: int((o.Length + o.Bin - 1) / o.Bin), flows: map[string]uint32{}}
	entries := uint64(o.Flows) * uint64(m.perFlow)
	if o.Flows < 0 || o.Bin < 0 || o.Length < 0 || entries > 1<<28 {
		return nil, fmt.Errorf("%d flows of %d bins exceed the maximum of 2 GiB", o.Flows, m.perFlow)
	}
	spec, err := loadObject()
	if err != nil {
		return nil, err
	}
	spec.Maps["bins"].MaxEntries = uint32(entries)
	spec.Maps["flow_totals"].MaxEntries = uint32(o.Flows)
	if err := errors.Join(
		spec.Variables["bin_ns"].Set(uint64(o.Bin)),
		spec.Variables["bins_per_flow"].Set(uint32(m.perFlow)),
	); err != nil {
		return nil, err
	}
	if err := spec.LoadAndAssign(&m.objects, nil); err != nil {
		return nil, fmt.Errorf("cannot load the arrivals meter: %w", err)
	}
	if m.memory, err = m.objects.Bins.Memory(); err != nil {
		m.Close()
		return nil, fmt.Errorf("cannot map the meter's bins: %w", err)
	}
	return m, nil
}

// index returns the flow's number; a new name gets the next.
func (m *Meter) index(flow string) (uint32, error) {
	i, ok := m.flows[flow]
	if !ok {
		if len(m.flows) == m.options.Flows {
			return 0, fmt.Errorf("the meter has at most %d flows: increase Options.Flows", m.options.Flows)
		}
		i = uint32(len(m.flows))
		m.flows[flow] = i
	}
	return i, nil
}

// DstPort counts packets of a protocol (an IP protocol number) to a port as the flow's, at every
// attached device. A destination port takes precedence over a source port.
func (m *Meter) DstPort(flow string, proto uint8, port uint16) error {
	return m.port(flow, portKey{port, proto, 1})
}

// SrcPort is DstPort for packets from a port.
func (m *Meter) SrcPort(flow string, proto uint8, port uint16) error {
	return m.port(flow, portKey{port, proto, 0})
}

func (m *Meter) port(flow string, k portKey) error {
	i, err := m.index(flow)
	if err != nil {
		return err
	}
	return m.objects.FlowOfPort.Put(k, i)
}

// Watch counts what reaches the receiving socket fd as the flow's. The filter is removed with the
// socket. Watch can be used as traffic.Options.OnReceiver.
func (m *Meter) Watch(flow string, fd int) error {
	i, err := m.index(flow)
	if err != nil {
		return err
	}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return fmt.Errorf("cannot read the socket cookie: %w", err)
	}
	if err := m.objects.FlowOfSocket.Put(cookie, i); err != nil {
		return fmt.Errorf("cannot watch a socket: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, m.objects.MeterSocket.FD()); err != nil {
		return fmt.Errorf("cannot attach the meter to a socket: %w", err)
	}
	return nil
}

// Start sets the beginning of bin 0, in CLOCK_MONOTONIC ns; earlier arrivals are in no bin.
// traffic.Session.StartMonotonicNs is on that clock.
func (m *Meter) Start(monotonicNs int64) error {
	return m.objects.StartNs.Put(uint32(0), uint64(monotonicNs))
}

// Close stops counting and releases all resources.
func (m *Meter) Close() error {
	var errs []error
	for _, a := range m.attached {
		errs = append(errs, a.detach())
	}
	m.attached = nil
	return errors.Join(append(errs, m.objects.Close())...)
}
