package stripe

import (
	"errors"
	"fmt"
	"slices"
)

// reassembly puts the chunks of one direction of a connection in order. Chunks come in any order, and more than
// once if the sender has sent them on another stream as well, but always with the same boundaries.
type reassembly struct {
	next   uint64            // offset of the next byte to deliver
	chunks map[uint64][]byte // by offset, at or after next
	// spans are the ranges of bytes in chunks, sorted, neither overlapping nor adjacent. There are about as many
	// as streams, each of which is in order.
	spans []span
	bytes int // in chunks
	end   uint64
	ended bool // end is known: the offset after the last byte
}

type span struct{ from, to uint64 }

// errPeer means that the other agent breaks the protocol of a connection: the connection must end.
var errPeer = errors.New("the other agent broke the protocol")

// insert takes a chunk, and reports whether it is new. The memory of a chunk that is not new is not kept.
func (r *reassembly) insert(offset uint64, data []byte, fin bool) (isNew bool, err error) {
	to := offset + uint64(len(data))
	if fin && r.ended && to != r.end || r.ended && to > r.end || fin && len(r.spans) > 0 && to < r.spans[len(r.spans)-1].to {
		return false, fmt.Errorf("%w: data after the end", errPeer)
	}
	if fin {
		r.end, r.ended = to, true
	}
	switch {
	case len(data) == 0:
		return false, nil
	case to <= r.next:
		return false, nil
	case offset < r.next:
		return false, fmt.Errorf("%w: chunk at %d begins within one that was delivered", errPeer, offset)
	case len(r.chunks[offset]) == len(data):
		return false, nil
	}
	// n is the first span that ends at or after offset.
	n, _ := slices.BinarySearchFunc(r.spans, offset, func(s span, at uint64) int {
		if s.to < at {
			return -1
		}
		return 1
	})
	last := n
	joined := span{offset, to}
	for ; last < len(r.spans) && r.spans[last].from <= to; last++ {
		s := r.spans[last]
		if s.from < to && offset < s.to {
			return false, fmt.Errorf("%w: chunk at %d overlaps another", errPeer, offset)
		}
		joined.from, joined.to = min(joined.from, s.from), max(joined.to, s.to)
	}
	r.spans = slices.Replace(r.spans, n, last, joined)
	if r.chunks == nil {
		r.chunks = map[uint64][]byte{}
	}
	r.chunks[offset] = data
	r.bytes += len(data)
	return true, nil
}

// pop returns the next chunk to deliver, nil if it has not come.
func (r *reassembly) pop() []byte {
	data := r.chunks[r.next]
	if data == nil {
		return nil
	}
	delete(r.chunks, r.next)
	r.next += uint64(len(data))
	r.bytes -= len(data)
	if s := &r.spans[0]; s.to == r.next {
		r.spans = slices.Delete(r.spans, 0, 1)
	} else {
		s.from = r.next
	}
	return data
}

// blocked returns how many bytes wait for earlier ones.
func (r *reassembly) blocked() int {
	if len(r.spans) > 0 && r.spans[0].from == r.next {
		return r.bytes - int(r.spans[0].to-r.next)
	}
	return r.bytes
}

// finished reports whether all bytes of the direction were delivered.
func (r *reassembly) finished() bool { return r.ended && r.next == r.end }
