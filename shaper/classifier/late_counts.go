package classifier

import (
	"bytes"
	"fmt"
	"log/slog"
)

// AddLateCounts adds the counts of the old program since its counters were copied. It must be called
// after p has replaced the old program. Packets that a group sends in the microseconds while
// its counter is updated may not be counted.
func (p *Program) AddLateCounts() {
	for _, c := range p.migrations {
		if c.copied == nil {
			continue
		}
		if err := c.settle(p.newClassIDs); err != nil {
			slog.Warn("cannot count packets that passed during program replacement", "reason", err)
		}
	}
	p.migrations = nil
}

// settle adds the counts of one map. It skips the entries of new groups.
func (c migration) settle(fresh map[uint32]bool) error {
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
				c.layout.AddDelta(part(sumBytes, j, valueSize), part(values, j, valueSize), part(before, j, valueSize))
			}
			if err := c.to.Put(id, sum); err != nil {
				return fmt.Errorf("cannot write eBPF map %v: %w", c.to, err)
			}
		}
		return nil
	})
}
