package oftest

import (
	"encoding/binary"

	"headgate.dev/headgate/fabric/openflow"
)

// The match fields of a packet are kept at fixed places of an array, so that a match is a mask and a value of the same
// size, and any mask can be compared word by word.

// keySize is the bytes of all fields, a multiple of 8.
const keySize = 168

const keyWords = keySize / 8

// key has the fields of a packet, or the mask or value of a match. A field that a packet does not have is 0; the
// prerequisites of a match keep it from matching.
type key [keySize]byte

// fieldPlace is where a field is in a key.
type fieldPlace struct{ off, size int }

const fieldCount = int(openflow.FieldIPv6ExtHdr-openflow.FieldInPort) + 1

// places has the place of each field by its number.
var places = func() (p [fieldCount]fieldPlace) {
	off := 0
	for i := range p {
		id := openflow.FieldInPort + openflow.FieldID(i)
		p[i] = fieldPlace{off, int(id.TypeOf(false).Length)}
		off += p[i].size
	}
	if off > keySize {
		panic("oftest: keySize is too small")
	}
	return p
}()

// bytes is the part of a key that has a field.
func (k *key) bytes(id openflow.FieldID) []byte {
	p := places[id-openflow.FieldInPort]
	return k[p.off : p.off+p.size]
}

func (k *key) set(id openflow.FieldID, value []byte) { copy(k.bytes(id), value) }

// setUint sets a field of up to 8 bytes.
func (k *key) setUint(id openflow.FieldID, v uint64) {
	b := k.bytes(id)
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte(v)
		v >>= 8
	}
}

// uint is the value of a field of up to 8 bytes.
func (k *key) uint(id openflow.FieldID) (v uint64) {
	for _, b := range k.bytes(id) {
		v = v<<8 | uint64(b)
	}
	return v
}

// word is 8 bytes of a key.
func (k *key) word(i int) uint64 { return binary.LittleEndian.Uint64(k[8*i:]) }

// covers reports whether every bit of a mask is in this mask.
func (k *key) covers(mask *key) bool {
	for i := range keyWords {
		if mask.word(i)&^k.word(i) != 0 {
			return false
		}
	}
	return true
}

// equalUnder reports whether two keys are equal in the bits of a mask.
func (k *key) equalUnder(o, mask *key) bool {
	for i := range keyWords {
		if (k.word(i)^o.word(i))&mask.word(i) != 0 {
			return false
		}
	}
	return true
}

// and is the bits of both keys.
func (k *key) and(o *key) (all key) {
	for i := range all {
		all[i] = k[i] & o[i]
	}
	return all
}
