package sockops

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/bpfobj"
)

// Table is the table of the connections of some sets.
type Table struct {
	name, dir             string
	lock                  *os.File
	slots, unused, counts *ebpf.Map
	connections, lives    *ebpf.Map
	starts                *ebpf.Map
	reader                *ringbuf.Reader // of lives
	record                ringbuf.Record
	memory                []byte
	all                   []slot
	programs              map[uint32]*ebpf.Collection // by set
	enabler               *callbackEnabler            // nil until the first use
	threshold             congestionName
	version               uint32
	slotStates            []slotState // by slot
	hot                   []int       // slots that every look checks
	fresh                 []int       // slots whose connection has begun since the last look
	turn                  int         // the next of the other slots
}

// Names of the pins.
const (
	pinSlots         = "slots"
	pinUnused        = "unused"
	pinConnections   = "connections"
	pinCounts        = "counts"
	pinLives         = "lives"
	pinStarts        = "starts"
	linkPrefix       = "set-" // and the set's number
	otherBuildPrefix = "before-"
)

// Exists reports whether a process has, or left, pins with that name.
func Exists(name string) (bool, error) {
	root, ok := bpfobj.FS()
	if !ok {
		return false, nil
	}
	_, err := os.Stat(filepath.Join(root, "headgate", "collective", name))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// ErrInUse is the error if another process has the table open.
var ErrInUse = errors.New("another process uses it: stop that process first")

// Open opens the table that an earlier process left pinned with that name, with its
// connections, or creates one for size connections. Only one process at a time can open a
// table.
func Open(name string, size int) (*Table, error) {
	dir, err := bpfobj.PinDir(filepath.Join("headgate", "collective", name))
	if err != nil {
		return nil, err
	}
	t := &Table{name: name, dir: dir, programs: map[uint32]*ebpf.Collection{}}
	if t.lock, err = os.Open(dir); err == nil {
		err = unix.Flock(int(t.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrInUse
		}
	}
	if err == nil {
		err = t.open(size)
	}
	if err == nil {
		_, err = t.RetireOtherBuilds()
	}
	if err == nil {
		t.registerThreshold()
	}
	if err != nil {
		if !errors.Is(err, ErrInUse) {
			_ = os.Remove(dir) // it is empty if nothing was created
		}
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
	}
	if is, err := t.counted(countLayout); err != nil || is != layout() {
		return t.create(spec, size) // from another build
	}
	if err := t.mapSlots(); err != nil {
		return err
	}
	return t.completeJoins()
}

func (t *Table) maps() map[string]**ebpf.Map {
	return map[string]**ebpf.Map{pinSlots: &t.slots, pinUnused: &t.unused, pinCounts: &t.counts, pinConnections: &t.connections, pinLives: &t.lives, pinStarts: &t.starts}
}

// create creates the maps. Those of another build are left to its programs, which remain
// until its caps are lifted (retire).
func (t *Table) create(spec *ebpf.CollectionSpec, size int) error {
	if err := t.moveOtherBuild(); err != nil {
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
	// The lowest slots are allocated first, so that the used ones are adjacent.
	for i := size - 1; i >= 0; i-- {
		if err := t.unused.Update(nil, uint32(i), ebpf.UpdateAny); err != nil {
			return err
		}
	}
	if err := t.counts.Put(countLayout, layout()); err != nil {
		return err
	}
	for name, m := range t.maps() {
		if err := (*m).Pin(filepath.Join(t.dir, name)); err != nil {
			return err
		}
	}
	return t.mapSlots()
}

// moveOtherBuild renames the programs of another build, and unpins its maps.
func (t *Table) moveOtherBuild() error {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(t.dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), linkPrefix):
			err = os.Rename(name, filepath.Join(t.dir, fmt.Sprintf("%s%d-%s", otherBuildPrefix, Now(), e.Name())))
		case !strings.HasPrefix(e.Name(), otherBuildPrefix) && e.Name() != pinThreshold:
			err = os.Remove(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) mapSlots() error {
	size := int(t.slots.MaxEntries()) * int(unsafe.Sizeof(slot{}))
	memory, err := unix.Mmap(t.slots.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("cannot map the slots: %w", err)
	}
	t.memory = memory
	t.all = unsafe.Slice((*slot)(unsafe.Pointer(unsafe.SliceData(memory))), t.slots.MaxEntries())
	// Versions of an earlier process are not reused.
	for i := range t.all {
		t.version = max(t.version, t.all[i].Version)
	}
	return t.openLives()
}

// Name returns the name of the table.
func (t *Table) Name() string { return t.name }

// Size returns the number of slots: that of an earlier process if the table is its.
func (t *Table) Size() int { return len(t.all) }

// RefusedWhenFull returns how many connections were refused because the table was full.
func (t *Table) RefusedWhenFull() (uint64, error) { return t.counted(countRefused) }

// Indexes of the counters, as in sockops.c.
const (
	countRefused uint32 = iota
	countNoCallback
	countLayout
)

func (t *Table) counted(what uint32) (n uint64, err error) {
	err = t.counts.Lookup(what, &n)
	return n, err
}

// Cap caps a connection until a time of Now; zeros are no bounds. It has no effect on a
// connection that has ended.
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

// Lift expires all leases. Each connection notices that at its next callback.
func (t *Table) Lift() {
	for i := range t.all {
		atomic.StoreUint64(&t.all[i].LeaseUntilNs, 0)
	}
}

// Close ends this process's use of the table; the pins remain.
func (t *Table) Close() {
	if t.memory != nil {
		unix.Munmap(t.memory)
		t.memory, t.all = nil, nil
	}
	for _, c := range t.programs {
		c.Close()
	}
	if t.reader != nil {
		t.reader.Close()
	}
	if t.enabler != nil {
		t.enabler.Close()
	}
	for _, m := range t.maps() {
		(*m).Close()
	}
	t.lock.Close()
}

// Remove removes the programs and the table. Connections that are capped then stay
// capped: call Lift before, and wait until none is capped and none is held by a program
// of another build (RetireOtherBuilds).
func (t *Table) Remove() error { return errors.Join(t.unpin(), os.Remove(t.dir)) }

func (t *Table) unpin() error {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		remove := os.Remove
		if e.Name() == pinThreshold {
			remove = removeThreshold
		}
		if err := remove(filepath.Join(t.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Now returns the clock of leases and readings: the kernel's monotonic one, which cannot
// be set.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // cannot fail with these arguments
	}
	return time.Duration(t.Nano())
}
