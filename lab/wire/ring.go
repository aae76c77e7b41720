package wire

// maxFrame is the largest read: a super-packet of 64 KB with its Ethernet header,
// two VLAN tags and the vnet header, rounded up.
const maxFrame = 66_000

// ring holds frames in the order they came, each in one piece, in a fixed block
// of memory. Frames are read into it and written from it without a copy.
type ring struct {
	data   []byte
	frames []held // a circle of the frames that are held
	head   int    // the oldest, in frames
	n      int    // how many
	tail   int    // where the next frame goes, in data
}

// held is one frame: where it is, and when it is due (ns).
type held struct {
	off, size int
	due       int64
}

// newRing makes a ring for size bytes. There is a slot for every 512 bytes: a
// flood of small frames is dropped before it fills the memory.
func newRing(size int) *ring {
	size = max(size, 4*maxFrame)
	return &ring{data: make([]byte, size), frames: make([]held, max(size/512, 256))}
}

// space is where the next frame may be read into, or nil if the ring is full.
func (r *ring) space() []byte {
	if r.n == len(r.frames) {
		return nil
	}
	if r.n == 0 {
		r.tail = 0
		return r.data[:maxFrame]
	}
	oldest := r.frames[r.head].off
	switch {
	case r.tail <= oldest: // wrapped: the free part lies between
		if oldest-r.tail < maxFrame {
			return nil
		}
	case len(r.data)-r.tail < maxFrame: // no room at the end: begin again
		if oldest < maxFrame {
			return nil
		}
		r.tail = 0
	}
	return r.data[r.tail : r.tail+maxFrame]
}

// push keeps the size bytes that were read into space.
func (r *ring) push(size int, due int64) {
	r.frames[(r.head+r.n)%len(r.frames)] = held{r.tail, size, due}
	r.n++
	r.tail += size
}

// first is the oldest frame and when it is due; ok is false if there is none.
func (r *ring) first() (frame []byte, due int64, ok bool) {
	if r.n == 0 {
		return nil, 0, false
	}
	h := r.frames[r.head]
	return r.data[h.off : h.off+h.size], h.due, true
}

// pop forgets the oldest frame.
func (r *ring) pop() {
	r.head = (r.head + 1) % len(r.frames)
	r.n--
}
