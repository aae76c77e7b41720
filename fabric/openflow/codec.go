package openflow

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// DecodeError is what Decode returns for bytes that are no OpenFlow 1.3 message.
type DecodeError struct {
	Message string // the kind of message, such as "flow-mod"
	Field   string // the field of the specification's structure, such as "ofp_bucket.len"
	Offset  int    // bytes from the begin of the message to the field
	Problem string
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("cannot decode %s: %s at byte %d: %s", e.Message, e.Field, e.Offset, e.Problem)
}

// EncodeError is what Append returns for a message that OpenFlow 1.3 cannot express.
type EncodeError struct {
	Message string // the kind of message, such as "flow-mod"
	Field   string // the field of the specification's structure, such as "ofp_bucket.len"
	Problem string
}

func (e *EncodeError) Error() string {
	return fmt.Sprintf("cannot encode %s: %s: %s", e.Message, e.Field, e.Problem)
}

// codec passes over the fields of a message in the order of the wire, and either writes them or reads them. Each
// structure has one function that names its fields for both directions, so that the directions cannot differ.
// After the first error the functions do nothing.
type codec struct {
	encoding bool
	message  string // for errors
	what     string // for errors: "request" or "reply" of a multipart message
	xid      uint32
	nested   bool // in the message of a bundle-add
	unknown  int  // structures that are kept as bytes
	b        []byte
	base     int       // encoding: where the message begins in b
	off, end int       // decoding: the next byte, and the end of the structure around it
	counted  []Counter // decoding: memory for lists of counters
	into     ReplyBody // decoding: in whose memory the body of a reply may be
	err      error
}

// at is the offset of the next byte in the message.
func (c *codec) at() int {
	if c.encoding {
		return len(c.b) - c.base
	}
	return c.off
}

func (c *codec) fail(field string, offset int, format string, args ...any) {
	if c.err != nil {
		return
	}
	message, problem := c.message, fmt.Sprintf(format, args...)
	if c.what != "" {
		message += " " + c.what
	}
	if c.encoding {
		c.err = &EncodeError{message, field, problem}
	} else {
		c.err = &DecodeError{message, field, offset, problem}
	}
}

// take returns the next n bytes when decoding, or nil if the structure ends before.
func (c *codec) take(n int, field string) []byte {
	if c.err != nil {
		return nil
	}
	if n > c.end-c.off {
		c.fail(field, c.off, "the structure ends after %d of %d bytes", c.end-c.off, n)
		return nil
	}
	b := c.b[c.off : c.off+n]
	c.off += n
	return b
}

func u8[T ~uint8](c *codec, p *T, field string) {
	if c.encoding {
		c.b = append(c.b, byte(*p))
	} else if b := c.take(1, field); b != nil {
		*p = T(b[0])
	}
}

func u16[T ~uint16](c *codec, p *T, field string) {
	if c.encoding {
		c.b = binary.BigEndian.AppendUint16(c.b, uint16(*p))
	} else if b := c.take(2, field); b != nil {
		*p = T(binary.BigEndian.Uint16(b))
	}
}

func u32[T ~uint32](c *codec, p *T, field string) {
	if c.encoding {
		c.b = binary.BigEndian.AppendUint32(c.b, uint32(*p))
	} else if b := c.take(4, field); b != nil {
		*p = T(binary.BigEndian.Uint32(b))
	}
}

func u64[T ~uint64](c *codec, p *T, field string) {
	if c.encoding {
		c.b = binary.BigEndian.AppendUint64(c.b, uint64(*p))
	} else if b := c.take(8, field); b != nil {
		*p = T(binary.BigEndian.Uint64(b))
	}
}

var zeros [8]byte

// pad is up to 8 bytes that have no meaning: zero when encoding, ignored when decoding.
func (c *codec) pad(n int) {
	if c.encoding {
		c.b = append(c.b, zeros[:n]...)
	} else {
		c.take(n, "pad")
	}
}

// align pads to a multiple of 8 bytes after start.
func (c *codec) align(start int) { c.pad((start - c.at()) & 7) }

func (c *codec) mac(p *MAC, field string) {
	if c.encoding {
		c.b = append(c.b, p[:]...)
	} else if b := c.take(len(p), field); b != nil {
		*p = MAC(b)
	}
}

// text is a string that fills n bytes with zeros, at least one.
func (c *codec) text(p *string, n int, field string) {
	if !c.encoding {
		s, _, _ := strings.Cut(string(c.take(n, field)), "\x00")
		*p = s[:min(len(s), n-1)]
		return
	}
	if len(*p) >= n || strings.Contains(*p, "\x00") {
		c.fail(field, c.at(), "%q has %d bytes: write up to %d that are not zero", *p, len(*p), n-1)
		return
	}
	c.b = append(c.b, *p...)
	c.b = append(c.b, make([]byte, n-len(*p))...)
}

// rest is all bytes to the end of the structure.
func (c *codec) rest(p *[]byte, field string) {
	if c.encoding {
		c.b = append(c.b, *p...)
	} else if n := c.end - c.off; n > 0 {
		*p = append([]byte(nil), c.take(n, field)...)
	}
}

// span is a structure with a length on the wire.
type span struct {
	field      string
	start, at  int // where the bytes that are counted begin, and the length
	outer, end int // decoding: the end of the structure around it, and of this one
}

// length is a length of 16 bits that counts the bytes from start to the call of close.
func (c *codec) length(start int, field string) span {
	s := span{field: field, start: start, at: c.at(), outer: c.end}
	var n uint16
	u16(c, &n, field)
	if c.encoding || c.err != nil {
		return s
	}
	s.end = start + int(n)
	switch {
	case s.end < c.off:
		c.fail(field, s.at, "%d bytes, less than the %d before and with it", n, c.off-start)
	case s.end > c.end:
		c.fail(field, s.at, "%d bytes, but only %d remain", n, c.end-start)
	default:
		c.end = s.end
	}
	return s
}

// close ends a structure: the length is written, or all of its bytes must have been read.
func (c *codec) close(s span) {
	if c.err != nil {
		return
	}
	if !c.encoding {
		if c.off != c.end {
			c.fail(s.field, s.at, "%d bytes, %d more than the structure has", s.end-s.start, c.end-c.off)
		}
		c.end = s.outer
		return
	}
	n := c.at() - s.start
	if n > maxLength {
		c.fail(s.field, s.at, "%d bytes do not fit into a length of 16 bits (65535): divide the message", n)
		return
	}
	binary.BigEndian.PutUint16(c.b[c.base+s.at:], uint16(n))
}

// multipleOf8 refuses a length that is no multiple of 8.
func (c *codec) multipleOf8(s span) {
	n := s.end - s.start
	if c.encoding {
		n = c.at() - s.start
	}
	if c.err == nil && n%8 != 0 {
		c.fail(s.field, s.at, "%d bytes are no multiple of 8", n)
	}
}

// list is structures to the end of the structure around them.
func list[T any](c *codec, p *[]T, each func(*codec, *T)) {
	if c.encoding {
		for i := range *p {
			each(c, &(*p)[i])
		}
		return
	}
	for last := 0; c.err == nil && c.off < c.end; {
		if len(*p) == cap(*p) {
			n := 1
			if last > 0 {
				n = (c.end-c.off)/last + 1 // often all have the same length
			}
			*p = slices.Grow(*p, n)
		}
		var zero T
		*p = append(*p, zero)
		start := c.off
		each(c, &(*p)[len(*p)-1])
		last = c.off - start
	}
}
