package sockops

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"headgate/collective"
	"headgate/internal/bpfobj"
	"headgate/internal/cgroup2"
)

// Table is the connections of some cgroups.
type Table struct {
	dir                   string
	lock                  *os.File
	slots, unused, counts *ebpf.Map
	connections           *ebpf.Map
	memory                []byte
	all                   []slot
	version               uint32
	seen                  []seen // by slot
	hot                   []int  // slots that are looked at every time
	turn                  int    // the next of the others
}

// Names of what is pinned.
const (
	pinSlots       = "slots"
	pinUnused      = "unused"
	pinConnections = "connections"
	pinCounts      = "counts"
	linkPrefix     = "set-"
)

// ErrTaken means that another process has the table open.
var ErrTaken = errors.New("another process has it: end that one first")

// Open finds what an earlier process left pinned under that name, with its connections, or
// makes a table for so many. Only one process at a time may have it.
func Open(name string, size int) (*Table, error) {
	dir, err := bpfobj.PinDir(filepath.Join("headgate", "collective", name))
	if err != nil {
		return nil, err
	}
	t := &Table{dir: dir}
	if t.lock, err = os.Open(dir); err == nil {
		err = unix.Flock(int(t.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrTaken
		}
	}
	if err == nil {
		err = t.open(size)
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("cannot open the table of connections: %w", err)
	}
	return t, nil
}

func (t *Table) open(size int) error {
	spec, err := loadSockops()
	if err != nil {
		return err
	}
	for _, m := range []string{pinSlots, pinUnused} {
		spec.Maps[m].MaxEntries = uint32(size)
	}
	for name, to := range t.maps() {
		m, err := ebpf.LoadPinnedMap(filepath.Join(t.dir, name), nil)
		if errors.Is(err, os.ErrNotExist) {
			return t.create(spec, size)
		}
		if err != nil {
			return err
		}
		*to = m
		if m.ValueSize() != spec.Maps[name].ValueSize {
			// Another build's: its program goes on lifting its caps, and ends with them.
			return t.create(spec, size)
		}
	}
	return t.mapSlots()
}

func (t *Table) maps() map[string]**ebpf.Map {
	return map[string]**ebpf.Map{pinSlots: &t.slots, pinUnused: &t.unused, pinCounts: &t.counts, pinConnections: &t.connections}
}

// create makes the maps anew. Whatever of an earlier process is there is taken away.
func (t *Table) create(spec *ebpf.CollectionSpec, size int) error {
	if err := t.unpin(); err != nil {
		return err
	}
	for name, to := range t.maps() {
		if *to != nil {
			(*to).Close()
		}
		m, err := ebpf.NewMap(spec.Maps[name])
		if err != nil {
			return err
		}
		*to = m
	}
	// The lowest slots are given out first, so that what is in use stays together.
	for i := size - 1; i >= 0; i-- {
		if err := t.unused.Update(nil, uint32(i), ebpf.UpdateAny); err != nil {
			return err
		}
	}
	for name, m := range t.maps() {
		if err := (*m).Pin(filepath.Join(t.dir, name)); err != nil {
			return err
		}
	}
	return t.mapSlots()
}

func (t *Table) mapSlots() error {
	size := int(t.slots.MaxEntries()) * int(unsafe.Sizeof(slot{}))
	memory, err := unix.Mmap(t.slots.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("cannot map it: %w", err)
	}
	t.memory = memory
	t.all = unsafe.Slice((*slot)(unsafe.Pointer(unsafe.SliceData(memory))), t.slots.MaxEntries())
	// Versions of an earlier process are not used again.
	for i := range t.all {
		t.version = max(t.version, t.all[i].Version)
	}
	return nil
}

// Set is which connections a program takes into the table.
type Set struct {
	// Number is what they are told apart by.
	Number uint32
	// Cgroup is that of the processes that make them: a path below the cgroup v2 mount, "/"
	// for all.
	Cgroup string
	// Rules: one of them has to be true of a connection; none is all.
	Rules []collective.Rule
}

// Depth is how far the set's cgroup is below the root.
func (s Set) Depth() int {
	if s.Cgroup == "/" {
		return 0
	}
	return strings.Count(s.Cgroup, "/")
}

// Attach watches the connections that are made from now on, if they are in the set.
func (t *Table) Attach(s Set) error {
	p, err := t.load(s, "headgate_collective")
	if err != nil {
		return fmt.Errorf("cannot load the program that reads connections: %w", err)
	}
	defer p.Close()
	pin := filepath.Join(t.dir, fmt.Sprintf("%s%d", linkPrefix, s.Number))
	if err := os.Remove(pin); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	mount, err := cgroup2.Mount()
	if err != nil {
		return err
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: filepath.Join(mount, s.Cgroup), Attach: ebpf.AttachCGroupSockOps, Program: p})
	if err != nil {
		return fmt.Errorf("cannot watch the cgroup %s: %w", s.Cgroup, err)
	}
	defer l.Close()
	return l.Pin(pin)
}

// Join takes in the connections of a set that are open already, in every network namespace
// that a process is in or that has a name. It needs Linux 6.13.
func (t *Table) Join(s Set) error {
	p, err := t.load(s, "headgate_open")
	if err != nil {
		return fmt.Errorf("cannot load the program that finds open connections: %w", err)
	}
	defer p.Close()
	l, err := link.AttachIter(link.IterOptions{Program: p})
	if err != nil {
		return err
	}
	defer l.Close()
	return everyNamespace(func() error {
		r, err := l.Open()
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(io.Discard, r)
		return err
	})
}

// load loads one of the programs for a set, on the table's maps.
func (t *Table) load(s Set, name string) (*ebpf.Program, error) {
	spec, err := loadSockops()
	if err != nil {
		return nil, err
	}
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	id, err := cgroup2.ID(s.Cgroup)
	if err != nil {
		return nil, err
	}
	rules, n, err := kernelRules(s.Rules)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]any{
		"set_of": s.Number, "rules": rules, "rules_n": n, "cgroup_id": id, "cgroup_level": uint32(s.Depth()),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, err
		}
	}
	replace := map[string]*ebpf.Map{}
	for name, m := range t.maps() {
		spec.Maps[name].MaxEntries = (*m).MaxEntries()
		replace[name] = *m
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: replace})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.DetachProgram(name), nil
}

// Detach takes away what an earlier process watched as sets from that number on.
func (t *Table) Detach(from int) error {
	links, err := filepath.Glob(filepath.Join(t.dir, linkPrefix+"*"))
	if err != nil {
		return err
	}
	for _, l := range links {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(l), linkPrefix)); err == nil && n < from {
			continue
		}
		if err := os.Remove(l); err != nil {
			return err
		}
	}
	return nil
}

// Refused is how many connections found the table full.
func (t *Table) Refused() (n uint64, err error) {
	err = t.counts.Lookup(uint32(0), &n)
	return n, err
}

// Cap bounds a connection until a time of Now; zeros are no bounds. It has no effect on one
// that has ended.
func (t *Table) Cap(c *Connection, bytesPerSecond, packets uint32, until time.Duration) {
	s := &t.all[c.slot]
	atomic.StoreUint64(&s.LeaseUntilNs, uint64(until))
	if s.Owner == uint64(c.ID) && s.Pace == bytesPerSecond && s.Window == packets && s.Version != 0 {
		return
	}
	t.version = max(t.version+1, 1)
	atomic.StoreUint64(&s.Owner, uint64(c.ID))
	atomic.StoreUint32(&s.Pace, bytesPerSecond)
	atomic.StoreUint32(&s.Window, packets)
	atomic.StoreUint32(&s.Version, t.version)
}

// Lift ends all leases. Connections notice it at their next callback.
func (t *Table) Lift() {
	for i := range t.all {
		atomic.StoreUint64(&t.all[i].LeaseUntilNs, 0)
	}
}

// Close ends the process's use of the table; what is pinned goes on.
func (t *Table) Close() {
	if t.memory != nil {
		unix.Munmap(t.memory)
		t.memory, t.all = nil, nil
	}
	for _, m := range t.maps() {
		(*m).Close()
	}
	t.lock.Close()
}

// Remove takes away the programs and the table. A connection that is capped then stays so:
// Lift, and wait until none is.
func (t *Table) Remove() error { return errors.Join(t.unpin(), os.Remove(t.dir)) }

func (t *Table) unpin() error {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(t.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Now is the clock of leases and readings: the kernel's monotonic one, which nobody sets.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // it has no other arguments
	}
	return time.Duration(t.Nano())
}
