package link

// Packet is one segment that comes to the link.
type Packet struct {
	Size int    // layer-2 bytes
	DSCP uint8  // 0 to 63
	ECN  uint8  // the two bits: 0 not capable, 1 and 2 capable, 3 marked
	Ref  uint32 // the caller's own
}

// Fate is what became of a packet.
type Fate uint8

// The fates.
const (
	Delivered Fate = iota
	Lost           // on the wire, after its time on the serialiser
	Overflowed     // the queue was full
	Early          // RED
	Policed        // no tokens
)

// Result is a packet with its fate and its times in ns, 0 where it never came.
type Result struct {
	Packet
	Number                      uint64 // in order of arrival
	Arrived, Departed, Released int64  // Departed is the end of the serialiser
	Fate                        Fate
	Marked                      bool // CE is to be set
	Cross                       bool // virtual
}

// Link is one direction. Not for use by several goroutines at once.
type Link struct{}

// New makes a link that begins at now.
func New(s Spec, seed uint64, now int64) *Link { panic("later") }

// Offer lets a packet arrive at now, which is not before any earlier call's.
func (l *Link) Offer(now int64, p Packet) { panic("later") }

// Take gives the next result that is ready at now: drops at once, and the rest
// when they are released, in order.
func (l *Link) Take(now int64) (Result, bool) { panic("later") }

// Next is when Take will have something, as far as is known without new
// arrivals; ok is false if nothing is held.
func (l *Link) Next() (at int64, ok bool) { panic("later") }

// Change gives the link other properties from now on. What is on the serialiser
// or the wire stays as it was.
func (l *Link) Change(now int64, s Spec) { panic("later") }
