package attach

import (
	"fmt"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/internal/nl"
)

// Snapshot holds references to the programs on a device's hooks before a change. The requests of a
// batch are independent (nl.Batch), so a batch in which one request failed has changed a part
// of the state. As long as references to the old programs are held, the kernel keeps the
// programs, and they can be attached again.
type Snapshot struct {
	dev      *Device
	programs [2]*ebpf.Program
}

// Snapshot takes references to the programs in force.
func (d *Device) Snapshot() (*Snapshot, error) {
	h := &Snapshot{dev: d}
	for i, s := range d.Sides {
		if s.Program == 0 {
			continue
		}
		p, err := ebpf.NewProgramFromID(s.Program)
		if err != nil {
			h.Close()
			return nil, fmt.Errorf("device %s: cannot hold eBPF program %d: %w", d.Name(), s.Program, err)
		}
		h.programs[i] = p
	}
	return h, nil
}

// Drop releases a program that is no longer usable: Restore then detaches it.
func (h *Snapshot) Drop(side int) {
	if h.programs[side] != nil {
		h.programs[side].Close()
		h.programs[side] = nil
	}
}

// Close releases all references; attached programs stay attached.
func (h *Snapshot) Close() {
	for i := range h.programs {
		h.Drop(i)
	}
}

// Restore restores the held programs on the hooks of now, the present state of the device.
// Foreign objects stay.
func (h *Snapshot) Restore(b *nl.Batch, now *Device, attach func(side int, p *ebpf.Program)) {
	some := false
	for i, p := range h.programs {
		switch {
		case p == nil:
			now.Detach(b, i)
		case now.Sides[i].Program != h.dev.Sides[i].Program:
			now.AddClsact(b)
			attach(i, p)
		}
		some = some || p != nil
	}
	if !some && !h.dev.Clsact && now.Clsact {
		now.removeClsact(b)
	}
}
