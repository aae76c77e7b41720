package train

import (
	"encoding/binary"
	"net/netip"
)

// Kind is the type of a datagram.
type Kind byte

// The kinds of datagrams.
const (
	Data      Kind = iota // a packet of a train
	Hello                 // from the client; its source is the client's UDP address
	Challenge             // the server's nonce, sent to that address
	Proof                 // the nonce, returned by the client
)

// headerSize is the size of the header of each datagram in bytes. The header has these
// fields (offset, length, content); the rest of a datagram has no meaning:
//
//	0  3  "HGp"
//	3  1  version and kind: 16 * version + kind
//	4  8  session
//	12 4  train, or the upper half of the nonce
//	16 4  packet, or the lower half of the nonce
const headerSize = 20

// version is the version of the datagram format.
const version = 1

// Header is the header of a datagram.
type Header struct {
	Kind    Kind
	Session uint64
	Train   uint32
	Packet  uint32
}

// Nonce returns the nonce of a Challenge or a Proof.
func (h Header) Nonce() uint64 { return uint64(h.Train)<<32 | uint64(h.Packet) }

// WithNonce returns h with a nonce.
func (h Header) WithNonce(n uint64) Header {
	h.Train, h.Packet = uint32(n>>32), uint32(n)
	return h
}

// Put writes h to the first headerSize bytes of b.
func (h Header) Put(b []byte) {
	copy(b, "HGp")
	b[3] = version<<4 | byte(h.Kind)
	binary.BigEndian.PutUint64(b[4:], h.Session)
	binary.BigEndian.PutUint32(b[12:], h.Train)
	binary.BigEndian.PutUint32(b[16:], h.Packet)
}

// Bytes returns a datagram that has only the header.
func (h Header) Bytes() []byte {
	b := make([]byte, headerSize)
	h.Put(b)
	return b
}

// ParseHeader parses a header that Put wrote; ok is false for anything else.
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

// headerOverhead returns the size of the IP and UDP headers of a datagram to peer, in bytes.
func headerOverhead(peer netip.Addr) int {
	if peer.Unmap().Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// MinSize returns the size of the smallest IP packet that can be sent to peer.
func MinSize(peer netip.Addr) int { return headerOverhead(peer) + headerSize }
