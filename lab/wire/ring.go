package wire

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of the ring, chosen by this project.
const (
	// spareRing holds what a TAP's queue may pass at once after a stall: 1 MiB was too little for
	// that.
	spareRing = 8 << 20
	// maxRing is the maximum memory of a direction's frames: 1 Gbit/s for 4 s, or 10 for 0.4. Memory
	// is allocated when it is first used; slots take another eighth.
	maxRing = 512 << 20
	// slotBytes is the number of bytes for each slot: a flood of smaller frames is dropped before it
	// fills the memory.
	slotBytes = 256
)

// A reference to a segment, which the link's model stores: the slot of its frame and its number in it.
// The kernel's super-packets have at most 1,365 segments (64 KB at TCP_MIN_MSS).
const (
	segmentBits = 11
	maxSlots    = 1 << (32 - segmentBits)
	maxSegments = 1 << segmentBits
)

func reference(slot, segment int) uint32 { return uint32(slot<<segmentBits | segment) }

func dereference(ref uint32) (slot, segment int) {
	return int(ref >> segmentBits), int(ref & (maxSegments - 1))
}

// ring holds frames in their order of arrival, each contiguous, in a fixed block of memory, until the
// last of their segments is done. Frames are read into it and written from it without a copy.
//
// It can grow while it holds frames: the block has its maximum size from the start, and unused parts
// take no memory.
type ring struct {
	block, table []byte // as mapped
	data         []byte // the part of block that is used
	slots        []slot // ring buffer of the held frames; the used part of table
	head         int    // index of the oldest, in slots
	n            int    // number of frames
	tail         int    // offset of the next frame, in data
	want         int    // bytes to which it should grow
}

// slot is one frame: its offset, and how many of its segments are not done.
type slot struct {
	off, size uint32
	left      uint16
	frame
}

const slotSize = int(unsafe.Sizeof(slot{}))

// newRing creates a ring of size bytes.
func newRing(size int) (*ring, error) {
	reserve := func(n int) ([]byte, error) {
		b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
		if err != nil {
			return nil, fmt.Errorf("cannot reserve %d MiB of addresses for frames: %w", n>>20, err)
		}
		return b, nil
	}
	r := &ring{}
	var err error
	if r.block, err = reserve(maxRing); err != nil {
		return nil, err
	}
	if r.table, err = reserve(maxSlots * slotSize); err != nil {
		unix.Munmap(r.block)
		return nil, err
	}
	r.grow(size)
	return r, nil
}

func (r *ring) close() {
	unix.Munmap(r.block)
	unix.Munmap(r.table)
}

// grow makes the ring hold size bytes, if it is smaller, as soon as its slots can be enlarged.
func (r *ring) grow(size int) {
	r.want = max(r.want, min(max(size, 4*maxFrame), maxRing))
	if r.want == len(r.data) || r.head+r.n > len(r.slots) {
		return
	}
	r.data = r.block[:r.want]
	slots := min(max(r.want/slotBytes, 256), maxSlots)
	r.slots = unsafe.Slice((*slot)(unsafe.Pointer(&r.table[0])), maxSlots)[:slots]
}

// space returns the memory for the next frame, or nil if the ring is full.
func (r *ring) space() []byte {
	if r.want > len(r.data) {
		r.grow(r.want)
	}
	if r.n == len(r.slots) {
		return nil
	}
	if r.n == 0 {
		r.tail = 0
		return r.data[:maxFrame]
	}
	oldest := int(r.slots[r.head].off)
	switch {
	case r.tail <= oldest: // wrapped: the free part is in between
		if oldest-r.tail < maxFrame {
			return nil
		}
	case len(r.data)-r.tail < maxFrame: // no space at the end: start over
		if oldest < maxFrame {
			return nil
		}
		r.tail = 0
	}
	return r.data[r.tail : r.tail+maxFrame]
}

// push keeps the size bytes that were read into space, and returns their slot.
func (r *ring) push(size int, f frame) int {
	i := r.index(r.n)
	r.slots[i] = slot{off: uint32(r.tail), size: uint32(size), left: f.segments, frame: f}
	r.n++
	r.tail += size
	return i
}

// bytes returns the frame in a slot, with its vnet header.
func (r *ring) bytes(i int) []byte {
	s := &r.slots[i]
	return r.data[s.off : s.off+s.size]
}

// done is called once for each segment of the frame in slot i that no longer needs its bytes. Memory
// is freed from the oldest frame on; a newest frame without remaining segments, because the queue was
// full, is freed as well.
func (r *ring) done(i int) {
	r.slots[i].left--
	if r.slots[i].left > 0 {
		return
	}
	for r.n > 0 && r.slots[r.head].left == 0 {
		r.head = r.index(1)
		r.n--
	}
	for r.n > 0 {
		newest := &r.slots[r.index(r.n-1)]
		if newest.left > 0 {
			return
		}
		r.tail = int(newest.off)
		r.n--
	}
}

// shorten frees the part of the newest frame beyond keep bytes: a full queue takes the first segments
// of a super-packet and drops the rest.
func (r *ring) shorten(i, keep int) {
	if r.n == 0 || i != r.index(r.n-1) {
		return
	}
	s := &r.slots[i]
	s.size = min(s.size, uint32(keep))
	r.tail = int(s.off + s.size)
}

// index returns the slot that is i places behind the oldest.
func (r *ring) index(i int) int { return (r.head + i) % len(r.slots) }
