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

	"headgate/internal/bpfobj"
)

// contents says what is in maps, to users who lose it.
var contents = map[string]string{
	Assigned: "connections assigned at run time",
	Counters: "counters of groups",
	RuleHits: "counters of rules",
}

// carried is an old map, the new one that has taken over its entries, and how.
type carried struct {
	to, from   *ebpf.Map
	key, value bpfobj.Translation
	layout     bpfobj.Layout // of the new values
	perEntry   int
	byClass    bool // and not by rule
	// copied is what stood in a map of counters when it was copied, in the new
	// layout; nil if the map is of something else.
	copied map[uint32][]byte
}

// carryAll copies what is in old maps into new ones of another layout. What it
// cannot read is left behind, and the log says what that is; an error is only
// what may be otherwise at the next try.
func carryAll(to, from map[string]*ebpf.Map) (all []carried, err error) {
	var lost, reasons []string
	lose := func(what string, why error) { lost, reasons = append(lost, what), append(reasons, why.Error()) }
	for _, name := range slices.Sorted(maps.Keys(from)) {
		what := contents[name]
		if what == "" {
			what = "table " + name
		}
		c, why, err := between(from[name], to[name])
		if err != nil {
			return nil, fmt.Errorf("cannot take over the %s: %w", what, err)
		}
		if why != nil {
			lose(what, why)
			continue
		}
		c.byClass = name != RuleHits
		left, err := c.carry()
		if err != nil {
			return nil, fmt.Errorf("cannot take over the %s: %w", what, err)
		}
		if left > 0 {
			lose(fmt.Sprintf("%d %s", left, what), errors.New("a number is too large for its new place"))
		}
		all = append(all, c)
	}
	if len(lost) > 0 {
		slog.Warn("some of what the Headgate before this one kept is lost, because this one cannot read it",
			"lost", strings.Join(lost, ", "), "reason", strings.Join(reasons, "; "))
	}
	return all, nil
}

// between finds the way from one map to another; why tells that there is none.
func between(from, to *ebpf.Map) (c carried, why, err error) {
	c = carried{to: to, from: from}
	if isArray(from.Type()) != isArray(to.Type()) || perCPU(from.Type()) != perCPU(to.Type()) {
		return c, fmt.Errorf("a map of type %v has become one of type %v", from.Type(), to.Type()), nil
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
	if c.key, why = bpfobj.Translate(oldKey, newKey); why == nil {
		c.value, why = bpfobj.Translate(oldValue, newValue)
	}
	return c, why, nil
}

func isArray(t ebpf.MapType) bool { return t == ebpf.Array || t == ebpf.PerCPUArray }

// carry copies all entries, and tells how many do not fit.
func (c *carried) carry() (left int, err error) {
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

// translate gives n entries in the new layout, without those that do not fit.
func (c carried) translate(old chunk, n int) (now chunk, filled, bad int) {
	oldKey, oldValue, newKey, newValue := int(c.from.KeySize()), int(c.from.ValueSize()), int(c.to.KeySize()), int(c.to.ValueSize())
	now = newChunk(n, c.perEntry, newKey, newValue)
	for i := range n {
		from, to := part(old.keyBytes, i, oldKey), part(now.keyBytes, filled, newKey)
		if isArray(c.to.Type()) && index(from) >= c.to.MaxEntries() {
			continue // nobody's
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
