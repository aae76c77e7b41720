package openflow

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// Field is a field of a match with its value, and a mask if it has one (struct ofp_oxm, section 7.2.3.2). Fields
// can be compared with ==. The constructors, such as InPort, make the fields of OpenFlow 1.3 and FieldTCPFlags; fields of other
// classes and numbers keep their bytes.
type Field struct {
	header uint32 // OXM TLV header: class, field, has mask, length
	body   string // the experimenter of a field that has one, the value, and then the mask
}

// MAC is an Ethernet address.
type MAC [6]byte

// String is such as "0a:00:00:00:00:01".
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// NewField returns a field with a value and a mask, nil for none. The constructors of single fields are easier to
// read; this one also makes fields that OpenFlow 1.3 does not define. It is an error if value and mask differ in
// length, do not fit into 255 bytes, or are not of the length of a field of OpenFlow 1.3.
func NewField(id FieldID, value, mask []byte) (Field, error) {
	n := len(value) + len(mask)
	switch f := id.info(); {
	case id>>23 != 0:
		return Field{}, fmt.Errorf("field id %#x has more than 23 bits", uint32(id))
	case mask != nil && len(mask) != len(value):
		return Field{}, fmt.Errorf("%s has a value of %d bytes and a mask of %d", id, len(value), len(mask))
	case n > 255:
		return Field{}, fmt.Errorf("%s has %d bytes: up to 255 are possible", id, n)
	case f != nil && len(value) != f.bytes():
		return Field{}, fmt.Errorf("%s has a value of %d bytes, want %d", id, len(value), f.bytes())
	}
	return field(id, value, mask), nil
}

func field(id FieldID, value, mask []byte) Field {
	body := id.experimenter() + string(value) + string(mask)
	h := uint32(id)<<9 | uint32(len(body))
	if mask != nil {
		h |= 1 << 8
	}
	return Field{h, body}
}

// number makes a field of up to 64 bits.
func number(id FieldID, v uint64) Field {
	return field(id, bigEndian(id, v), nil)
}

func numberMasked(id FieldID, v, mask uint64) Field {
	return field(id, bigEndian(id, v), bigEndian(id, mask))
}

func bigEndian(id FieldID, v uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, v)
	return b[8-id.info().bytes():]
}

// ID is the class and number of the field.
func (f Field) ID() FieldID { return FieldID(f.header >> 9) }

// Masked tells whether the field has a mask.
func (f Field) Masked() bool { return f.header>>8&1 == 1 }

// data is the value and the mask.
func (f Field) data() string { return strings.TrimPrefix(f.body, f.ID().experimenter()) }

func (f Field) value() string {
	d := f.data()
	if f.Masked() {
		return d[:len(d)/2]
	}
	return d
}

func (f Field) mask() string {
	d := f.data()
	if f.Masked() {
		return d[len(d)/2:]
	}
	return ""
}

// Value is the bytes of the value.
func (f Field) Value() []byte { return []byte(f.value()) }

// Mask is the bytes of the mask, or nil if the field has none. A bit of 1 must match.
func (f Field) Mask() []byte {
	if !f.Masked() {
		return nil
	}
	return []byte(f.mask())
}

// Uint is the value of a field of up to 64 bits. It is 0 for longer ones.
func (f Field) Uint() uint64 { return toUint(f.value()) }

// UintMask is the mask of a field of up to 64 bits. All bits of the value are 1 if the field has no mask. It is 0
// for longer fields.
func (f Field) UintMask() uint64 {
	if f.Masked() {
		return toUint(f.mask())
	}
	if len(f.data()) > 8 {
		return 0
	}
	return 1<<(8*len(f.data())) - 1
}

func toUint(s string) (v uint64) {
	if len(s) > 8 {
		return 0
	}
	for i := range len(s) {
		v = v<<8 | uint64(s[i])
	}
	return v
}

// MAC is the value of a field with an Ethernet address. It is zero for other fields.
func (f Field) MAC() (m MAC) {
	if len(f.value()) == len(m) {
		copy(m[:], f.value())
	}
	return m
}

// Addr is the value of a field with an IPv4 or IPv6 address. It is the zero Addr for other fields.
func (f Field) Addr() netip.Addr {
	a, _ := netip.AddrFromSlice([]byte(f.value()))
	return a
}

// Prefix is the value and mask of a field with an IPv4 or IPv6 address. It is false if the field has no address, or
// the mask is no prefix.
func (f Field) Prefix() (netip.Prefix, bool) {
	a := f.Addr()
	if !a.IsValid() {
		return netip.Prefix{}, false
	}
	n, ok := a.BitLen(), true
	if f.Masked() {
		n, ok = ones(f.mask())
	}
	return netip.PrefixFrom(a, n), ok
}

// ones is the number of leading ones of a mask, and whether only zeros follow them.
func ones(mask string) (n int, prefix bool) {
	end := false
	for i := range 8 * len(mask) {
		if mask[i/8]>>(7-i%8)&1 == 0 {
			end = true
		} else if n++; end {
			return n, false
		}
	}
	return n, true
}

// oxm is a field with its header.
func (c *codec) oxm(f *Field, name string) {
	start := c.at()
	if c.encoding {
		if int(f.header&0xff) != len(f.body) {
			c.fail(name, start, "it has no value: make it with a constructor such as InPort")
			return
		}
	}
	u32(c, &f.header, name)
	if c.encoding {
		c.b = append(c.b, f.body...)
	} else {
		f.body = string(c.take(int(f.header&0xff), name))
	}
	c.checkLength(*f, start, name)
}

// checkLength refuses a field that is known here with a value of another length.
func (c *codec) checkLength(f Field, offset int, name string) {
	id, n := f.ID(), len(f.data())
	info := id.info()
	if info == nil || !strings.HasPrefix(f.body, id.experimenter()) {
		c.unknown++
		return
	}
	want := info.bytes()
	if f.Masked() {
		want *= 2
	}
	if n != want {
		c.fail(name, offset, "%s has %d bytes, want %d", id, n, want)
	}
}
