package pipeline

import (
	"encoding/binary"

	"headgate.dev/headgate/fabric/openflow"
)

// The match fields of a packet are kept at fixed places of an array, so that a match is a mask and a value of the same
// size, and any mask can be compared word by word.

// keySize is the bytes of all fields, a multiple of 8.
const keySize = 168

// KeyWords is the words of a key.
const KeyWords = keySize / 8

// Key has the fields of a packet, or the mask or value of a match. A field that a packet does not have is 0; the
// prerequisites of a match keep it from matching.
type Key [keySize]byte

// fieldPlace is where a field is in a key.
type fieldPlace struct{ off, size int }

// standardFields is the number of fields of OpenFlow 1.3.
const standardFields = int(openflow.FieldIPv6ExtHdr-openflow.FieldInPort) + 1

// numberOf returns the number of a field in places, and false for one that has no place.
func numberOf(id openflow.FieldID) (int, bool) {
	if id == openflow.FieldTCPFlags {
		return standardFields, true
	}
	n := int(id) - int(openflow.FieldInPort)
	return n, 0 <= n && n < standardFields
}

// places has the place of each field by its number.
var places = func() (p [standardFields + 1]fieldPlace) {
	off := 0
	for i := range p {
		size := (openflow.FieldTCPFlags.Bits() + 7) / 8
		if i < standardFields {
			size = int((openflow.FieldInPort + openflow.FieldID(i)).TypeOf(false).Length)
		}
		p[i] = fieldPlace{off, size}
		off += size
	}
	if off > keySize {
		panic("pipeline: keySize is too small")
	}
	return p
}()

// Bytes is the part of a key that has a field of OpenFlow 1.3, or the flags of TCP. It panics for others.
func (k *Key) Bytes(id openflow.FieldID) []byte {
	n, _ := numberOf(id)
	p := places[n]
	return k[p.off : p.off+p.size]
}

// Set sets a field.
func (k *Key) Set(id openflow.FieldID, value []byte) { copy(k.Bytes(id), value) }

// setUint sets a field of up to 8 bytes.
func (k *Key) setUint(id openflow.FieldID, v uint64) {
	b := k.Bytes(id)
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte(v)
		v >>= 8
	}
}

// Uint is the value of a field of up to 8 bytes.
func (k *Key) Uint(id openflow.FieldID) (v uint64) {
	for _, b := range k.Bytes(id) {
		v = v<<8 | uint64(b)
	}
	return v
}

// Word is 8 bytes of a key.
func (k *Key) Word(i int) uint64 { return binary.LittleEndian.Uint64(k[8*i:]) }

// covers reports whether every bit of a mask is in this mask.
func (k *Key) covers(mask *Key) bool {
	for i := range KeyWords {
		if mask.Word(i)&^k.Word(i) != 0 {
			return false
		}
	}
	return true
}

// equalUnder reports whether two keys are equal in the bits of a mask.
func (k *Key) equalUnder(o, mask *Key) bool {
	for i := range KeyWords {
		if (k.Word(i)^o.Word(i))&mask.Word(i) != 0 {
			return false
		}
	}
	return true
}

// and is the bits of both keys.
func (k *Key) and(o *Key) (all Key) {
	for i := range all {
		all[i] = k[i] & o[i]
	}
	return all
}
