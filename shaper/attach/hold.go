package attach

import (
	"fmt"

	"github.com/cilium/ebpf"

	"headgate/internal/nl"
)

// Held are the programs on a device's hooks before it is changed. Requests of one
// batch are independent (nl.Batch), so that a batch of which one is refused has
// changed a part. As long as the old programs are held the kernel keeps them, and
// they can be put back.
type Held struct {
	dev      *Device
	programs [2]*ebpf.Program
}

// Hold holds the programs that are in force.
func (d *Device) Hold() (*Held, error) {
	h := &Held{dev: d}
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

// Drop lets a program go that is of no use any more: Restore will detach it.
func (h *Held) Drop(side int) {
	if h.programs[side] != nil {
		h.programs[side].Close()
		h.programs[side] = nil
	}
}

// Close lets all go; what is attached stays.
func (h *Held) Close() {
	for i := range h.programs {
		h.Drop(i)
	}
}

// Restore leads the hooks of the device as it is now back to what was held; what
// others put there stays.
func (h *Held) Restore(b *nl.Batch, now *Device, attach func(side int, p *ebpf.Program)) {
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
