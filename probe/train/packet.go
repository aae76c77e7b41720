package train

import (
	"encoding/binary"
	"net/netip"
)

// Kind says what a datagram is for.
type Kind byte

// Kinds of datagrams.
const (
	Data      Kind = iota // a packet of a train
	Hello                 // the client shows from where it will speak
	Challenge             // the server's nonce, to there
	Proof                 // the nonce, back
)

// header is what each datagram begins with:
//
//	0  3  "HGp"
//	3  1  version and kind: 16 * version + kind
//	4  8  session
//	12 4  train, or the nonce's upper half
//	16 4  packet, or its lower half
//
// The rest is of no meaning.
const headerSize = 20

// version of this format.
const version = 1

// Header is a datagram's.
type Header struct {
	Kind    Kind
	Session uint64
	Train   uint32
	Packet  uint32
}

// Nonce is what a challenge or its proof carries.
func (h Header) Nonce() uint64 { return uint64(h.Train)<<32 | uint64(h.Packet) }

// WithNonce is h with a nonce.
func (h Header) WithNonce(n uint64) Header {
	h.Train, h.Packet = uint32(n>>32), uint32(n)
	return h
}

// Put writes h to the beginning of b, which has room for it.
func (h Header) Put(b []byte) {
	copy(b, "HGp")
	b[3] = version<<4 | byte(h.Kind)
	binary.BigEndian.PutUint64(b[4:], h.Session)
	binary.BigEndian.PutUint32(b[12:], h.Train)
	binary.BigEndian.PutUint32(b[16:], h.Packet)
}

// Bytes are a datagram of h alone.
func (h Header) Bytes() []byte {
	b := make([]byte, headerSize)
	h.Put(b)
	return b
}

// ParseHeader reads what Put wrote; ok is false for anything else.
func ParseHeader(b []byte) (h Header, ok bool) {
	if len(b) < headerSize || string(b[:3]) != "HGp" || b[3]>>4 != version || Kind(b[3]&15) > Proof {
		return Header{}, false
	}
	return Header{
		Kind:    Kind(b[3] & 15),
		Session: binary.BigEndian.Uint64(b[4:]),
		Train:   binary.BigEndian.Uint32(b[12:]),
		Packet:  binary.BigEndian.Uint32(b[16:]),
	}, true
}

// headers is what IP and UDP add to a datagram's payload, in bytes.
func headers(peer netip.Addr) int {
	if peer.Unmap().Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// Least is the smallest IP packet that can be sent to peer.
func Least(peer netip.Addr) int { return headers(peer) + headerSize }
