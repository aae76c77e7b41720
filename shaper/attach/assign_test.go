package attach

import (
	"encoding/binary"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/classifier"
)

// smallTable returns a table with capacity for two connections.
func smallTable(t *testing.T) table {
	labtest.NeedRoot(t)
	newMap := func(s ebpf.MapSpec) *ebpf.Map {
		m, err := ebpf.NewMap(&s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	return table{
		assigned: newMap(ebpf.MapSpec{Type: ebpf.Hash, Flags: unix.BPF_F_NO_PREALLOC, KeySize: uint32(binary.Size(classifier.ConnKey{})), ValueSize: 4, MaxEntries: 4}),
		control:  newMap(ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: uint32(binary.Size(classifier.Control{})), MaxEntries: 1}),
	}
}

// conns returns n connections and their map keys as Assign uses them.
func conns(n int) (list []shaper.Conn, keys []classifier.ConnKey) {
	for i := range n {
		at := func(port int) netip.AddrPort {
			return netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(port))
		}
		c := shaper.Conn{Proto: group.TCP, A: at(1000 + i), B: at(443)}
		both := classifier.Keys(c)
		list, keys = append(list, c), append(keys, both[:]...)
	}
	return list, keys
}

func (t table) state(tb testing.TB) (entries map[classifier.ConnKey]uint32, epoch uint32) {
	tb.Helper()
	entries = map[classifier.ConnKey]uint32{}
	var key classifier.ConnKey
	var value uint32
	for it := t.assigned.Iterate(); it.Next(&key, &value); {
		entries[key] = value
	}
	var now classifier.Control
	if err := t.control.Lookup(uint32(0), &now); err != nil {
		tb.Fatal(err)
	}
	return entries, now.AssignEpoch
}

// TestAssignAllOrNone: entries that do not fit leave the table unchanged, and the flow caches
// are invalidated, because some entries may have been visible.
func TestAssignAllOrNone(t *testing.T) {
	table := smallTable(t)
	_, keys := conns(3)
	if err := table.put(keys[:2], []uint32{7, 7}); err != nil {
		t.Fatal(err)
	}
	before, epoch := table.state(t)
	// The first connection exists and gets another class, the second fits, the third does not.
	for _, n := range []int{6, 5} {
		if err := table.put(keys[:n], slices.Repeat([]uint32{8}, n)); !errors.Is(err, errFull) {
			t.Errorf("put %d entries into a table of 4: %v", n, err)
		}
	}
	if after, _ := table.state(t); !maps.Equal(after, before) {
		t.Errorf("before %v, after %v", before, after)
	}
	if err := table.put(keys[2:5], []uint32{8, 8, 8}); !errors.Is(err, errFull) {
		t.Errorf("put 3 entries with 2 free: %v", err)
	}
	after, now := table.state(t)
	if !maps.Equal(after, before) {
		t.Errorf("before %v, after %v", before, after)
	}
	if now == epoch {
		t.Error("the flow caches are not invalidated")
	}
	if err := table.put(keys[:4], []uint32{9, 9, 9, 9}); err != nil {
		t.Errorf("put 4 entries, 2 of them present, into a table of 4: %v", err)
	}
}

// TestUnassignAnnounces: entries that cannot be deleted do not prevent the invalidation of the
// flow caches.
func TestUnassignAnnounces(t *testing.T) {
	table := smallTable(t)
	list, keys := conns(2)
	if err := table.put(keys[:2], []uint32{7, 7}); err != nil {
		t.Fatal(err)
	}
	if err := table.assigned.Freeze(); err != nil {
		t.Fatal(err)
	}
	_, epoch := table.state(t)
	if err := table.remove(list, "eth0"); err == nil {
		t.Error("remove succeeds on a frozen table")
	}
	if _, now := table.state(t); now == epoch {
		t.Error("the flow caches are not invalidated")
	}
}
