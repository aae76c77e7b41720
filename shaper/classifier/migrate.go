package classifier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/internal/bpfobj"
)

// contents describes the content of maps, for the message about lost state.
var contents = map[string]string{
	Assigned: "connections assigned at run time",
	Counters: "counters of groups",
	RuleHits: "counters of rules",
}

// migration is an old map, the new map that takes over its entries, and the translation.
type migration struct {
	to, from   *ebpf.Map
	key, value bpfobj.Conversion
	layout     bpfobj.Layout // of the values of the new map
	perEntry   int
	byClass    bool // indexed by class, not by rule
	// copied has the values of a counter map at the time of the copy, in the new layout; nil
	// for other maps.
	copied map[uint32][]byte
}

// migrateAll copies the entries of old maps into new maps with another layout. Entries that
// cannot be translated are dropped with a log message. An error is returned only for failures
// that may not recur on the next try.
func migrateAll(to, from map[string]*ebpf.Map) (all []migration, err error) {
	var lost, reasons []string
	lose := func(what string, why error) { lost, reasons = append(lost, what), append(reasons, why.Error()) }
	for _, name := range slices.Sorted(maps.Keys(from)) {
		what := contents[name]
		if what == "" {
			what = "table " + name
		}
		c, why, err := newMigration(from[name], to[name])
		if err != nil {
			return nil, fmt.Errorf("cannot take over the %s: %w", what, err)
		}
		if why != nil {
			lose(what, why)
			continue
		}
		c.byClass = name != RuleHits
		left, err := c.copyEntries()
		if err != nil {
			return nil, fmt.Errorf("cannot take over the %s: %w", what, err)
		}
		if left > 0 {
			lose(fmt.Sprintf("%d %s", left, what), errors.New("a value does not fit the new layout"))
		}
		all = append(all, c)
	}
	if len(lost) > 0 {
		slog.Warn("cannot migrate all state of the previous Headgate version",
			"lost", strings.Join(lost, ", "), "reason", strings.Join(reasons, "; "))
	}
	return all, nil
}

// newMigration returns the translation from one map to another; why is set if there is none.
func newMigration(from, to *ebpf.Map) (c migration, why, err error) {
	c = migration{to: to, from: from}
	if isArray(from.Type()) != isArray(to.Type()) || perCPU(from.Type()) != perCPU(to.Type()) {
		return c, fmt.Errorf("the map type changed from %v to %v", from.Type(), to.Type()), nil
	}
	if c.perEntry, err = valuesPerEntry(from); err != nil {
		return c, nil, err
	}
	oldKey, oldValue, err := bpfobj.MapLayouts(from)
	if err != nil {
		return c, nil, err
	}
	newKey, newValue, err := bpfobj.MapLayouts(to)
	if err != nil {
		return c, nil, err
	}
	c.layout = newValue
	if c.key, why = bpfobj.NewConversion(oldKey, newKey); why == nil {
		c.value, why = bpfobj.NewConversion(oldValue, newValue)
	}
	return c, why, nil
}

func isArray(t ebpf.MapType) bool { return t == ebpf.Array || t == ebpf.PerCPUArray }

// copyEntries copies all entries, and returns the number of entries that do not fit.
func (c *migration) copyEntries() (left int, err error) {
	if c.to.Type() == ebpf.PerCPUArray {
		c.copied = map[uint32][]byte{}
	}
	err = entries(c.from, func(old chunk, n int) error {
		now, filled, bad := c.translate(old, n)
		left += bad
		if filled == 0 {
			return nil
		}
		keys, values := now.first(filled, c.perEntry)
		if _, err := c.to.BatchUpdate(keys, values, nil); err != nil {
			return fmt.Errorf("cannot fill eBPF map %v: %w", c.to, err)
		}
		for i := 0; c.copied != nil && i < filled; i++ {
			id := index(part(now.keyBytes, i, int(c.to.KeySize())))
			c.copied[id] = part(now.valBytes, i, c.perEntry*int(c.to.ValueSize()))
		}
		return nil
	})
	return left, err
}

// translate returns n entries in the new layout, without those that do not fit.
func (c migration) translate(old chunk, n int) (now chunk, filled, bad int) {
	oldKey, oldValue, newKey, newValue := int(c.from.KeySize()), int(c.from.ValueSize()), int(c.to.KeySize()), int(c.to.ValueSize())
	now = newChunk(n, c.perEntry, newKey, newValue)
	for i := range n {
		from, to := part(old.keyBytes, i, oldKey), part(now.keyBytes, filled, newKey)
		if isArray(c.to.Type()) && index(from) >= c.to.MaxEntries() {
			continue // the new array is smaller; the index is unused
		}
		fits := c.key.Copy(to, from)
		for j := range c.perEntry {
			fits = fits && c.value.Copy(part(now.valBytes, filled*c.perEntry+j, newValue), part(old.valBytes, i*c.perEntry+j, oldValue))
		}
		if fits {
			filled++
			continue
		}
		bad++
		clear(to)
		clear(part(now.valBytes, filled, newValue*c.perEntry))
	}
	return now, filled, bad
}

func index(key []byte) uint32 { return binary.NativeEndian.Uint32(key) }
