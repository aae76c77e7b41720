package classifier

import (
	"bytes"
	"fmt"
	"log/slog"
)

// Settle adds what the old program counted after its counters were copied. It is
// for the moment after p has taken the old one's place. What a group sends in the
// microseconds in which its own counter is added to may be missing from it.
func (p *Program) Settle() {
	for _, c := range p.carried {
		if c.copied == nil {
			continue
		}
		if err := c.settle(p.fresh); err != nil {
			slog.Warn("packets that passed while the program was exchanged are not counted", "reason", err)
		}
	}
	p.carried = nil
}

// settle leaves out the entries of groups that are new.
func (c carried) settle(fresh map[uint32]bool) error {
	valueSize := int(c.to.ValueSize())
	return entries(c.from, func(old chunk, n int) error {
		now, filled, _ := c.translate(old, n)
		for i := range filled {
			id := index(part(now.keyBytes, i, int(c.to.KeySize())))
			values, before := part(now.valBytes, i, c.perEntry*valueSize), c.copied[id]
			if before == nil || c.byClass && fresh[id] || bytes.Equal(values, before) {
				continue
			}
			sum, sumBytes := byteArrays(c.perEntry, valueSize)
			if err := c.to.Lookup(id, sum); err != nil {
				return fmt.Errorf("cannot read eBPF map %v: %w", c.to, err)
			}
			for j := range c.perEntry {
				c.layout.Advance(part(sumBytes, j, valueSize), part(values, j, valueSize), part(before, j, valueSize))
			}
			if err := c.to.Put(id, sum); err != nil {
				return fmt.Errorf("cannot write eBPF map %v: %w", c.to, err)
			}
		}
		return nil
	})
}
