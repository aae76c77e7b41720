package openflow

import (
	"fmt"
	"math/bits"
)

// Hello opens a connection in both directions (section 7.5.1). The header of a Hello has the highest version that
// its sender supports.
type Hello struct {
	Version  uint8          // ofp_header.version
	Elements []HelloElement // of types that OpenFlow 1.3 does not define, as well
}

// HelloElement is an element of a Hello (struct ofp_hello_elem_header).
type HelloElement struct {
	Kind     uint16   // HelloVersions or another type
	Versions []uint32 // of HelloVersions: bit v%32 of Versions[v/32] is set if version v is supported
	Body     []byte   // of other types: what follows the length
}

// HelloVersions is the type of the element with the versions that a sender supports (OFPHET_VERSIONBITMAP).
const HelloVersions = 1

// NewHello returns a Hello with a version bitmap of the given wire versions, such as Version.
func NewHello(versions ...uint8) *Hello {
	h := &Hello{}
	e := HelloElement{Kind: HelloVersions}
	for _, v := range versions {
		h.Version = max(h.Version, v)
		for int(v)/32 >= len(e.Versions) {
			e.Versions = append(e.Versions, 0)
		}
		e.Versions[v/32] |= 1 << (v % 32)
	}
	h.Elements = []HelloElement{e}
	return h
}

// Type is TypeHello.
func (m *Hello) Type() Type { return TypeHello }

func (m *Hello) layout(c *codec) { list(c, &m.Elements, (*codec).helloElement) }

func (c *codec) helloElement(e *HelloElement) {
	start := c.at()
	u16(c, &e.Kind, "ofp_hello_elem_header.type")
	s := c.length(start, "ofp_hello_elem_header.length")
	if e.Kind == HelloVersions {
		if len(e.Body) > 0 {
			c.fail("ofp_hello_elem_versionbitmap", start, "it has a body: use Versions")
		}
		list(c, &e.Versions, func(c *codec, v *uint32) { u32(c, v, "ofp_hello_elem_versionbitmap.bitmaps") })
	} else {
		if len(e.Versions) > 0 {
			c.fail("ofp_hello_elem_header.type", start, "an element of type %d has versions: use type %d", e.Kind, HelloVersions)
		}
		c.unknown++
		c.rest(&e.Body, "ofp_hello_elem_header")
	}
	c.close(s)
	c.align(start)
}

// bitmap returns the words of the first version bitmap.
func (m *Hello) bitmap() []uint32 {
	for _, e := range m.Elements {
		if e.Kind == HelloVersions && len(e.Versions) > 0 {
			return e.Versions
		}
	}
	return nil
}

// supports tells whether the sender supports a version: by its bitmap, or without one all versions up to that of the
// header.
func (m *Hello) supports(v uint8) bool {
	if b := m.bitmap(); b != nil {
		return int(v)/32 < len(b) && b[v/32]>>(v%32)&1 == 1
	}
	return v <= m.Version
}

// highest returns the highest version that a sender supports.
func (m *Hello) highest() uint8 {
	b := m.bitmap()
	for i := min(len(b), 8) - 1; i >= 0; i-- {
		if b[i] != 0 {
			return uint8(i*32 + bits.Len32(b[i]) - 1)
		}
	}
	return m.Version
}

// Negotiate returns the version of a connection from the Hello of each side (section 6.3.1): the highest version in
// both bitmaps, or if one side has none, the lower of the versions of the headers. It is an error if there is no
// such version; its sender answers an Error with ErrHelloFailed and HelloIncompatible.
func Negotiate(a, b *Hello) (uint8, error) {
	if a.bitmap() == nil || b.bitmap() == nil {
		if v := min(a.Version, b.Version); v > 0 && a.supports(v) && b.supports(v) {
			return v, nil
		}
	} else {
		for v := min(a.highest(), b.highest()); v > 0; v-- {
			if a.supports(v) && b.supports(v) {
				return v, nil
			}
		}
	}
	return 0, fmt.Errorf("cannot negotiate an OpenFlow version: one side supports %s, the other %s", a.versions(), b.versions())
}
