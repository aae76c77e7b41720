package openflow

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Match is the fields that a packet must have (struct ofp_match, section 7.2.3). An empty match is all packets.
type Match []Field

// matchOXM is the type of a match with OXM fields (OFPMT_OXM). The other type is deprecated.
const matchOXM = 1

func (c *codec) match(p *Match) {
	if c.err != nil {
		return
	}
	start := c.at()
	typ := uint16(matchOXM)
	u16(c, &typ, "ofp_match.type")
	s := c.length(start, "ofp_match.length")
	if c.err == nil && typ != matchOXM {
		c.fail("ofp_match.type", start, "type %d, want %d (OXM)", typ, matchOXM)
	}
	if c.encoding {
		for i := range *p {
			c.oxm(&(*p)[i], "ofp_match.oxm_fields")
		}
	} else {
		*p = c.readFields()
	}
	c.close(s)
	c.align(start)
}

// readFields reads the fields to the end of the match. The bodies of all of them are parts of one string.
func (c *codec) readFields() Match {
	if c.err != nil || c.off == c.end {
		return nil
	}
	start, n := c.off, 0
	for off := start; off < c.end; n++ {
		if c.end-off < 4 {
			c.fail("ofp_match.oxm_fields", off, "a header has 4 bytes, but %d remain", c.end-off)
			return nil
		}
		off += 4 + int(c.b[off+3])
	}
	m := make(Match, n)
	all := string(c.b[start:c.end])
	for i := range m {
		offset := c.off
		header := binary.BigEndian.Uint32(c.b[offset:])
		c.off += 4
		c.take(int(header&0xff), "ofp_match.oxm_fields")
		if c.err == nil {
			m[i] = Field{header, all[offset+4-start : c.off-start]}
			c.checkLength(m[i], offset, "ofp_match.oxm_fields")
		}
		if c.err != nil {
			return nil
		}
	}
	return m
}

// Get returns the first field with an id.
func (m Match) Get(id FieldID) (Field, bool) {
	for _, f := range m {
		if f.ID() == id {
			return f, true
		}
	}
	return Field{}, false
}

// Canonical returns the fields in the order of their class and number, in which each comes after those that it
// needs, and without masks of all ones, which mean the same as none, and fields whose mask is all zeros. Matches of
// the same packets of different order are then equal.
func (m Match) Canonical() Match {
	var out Match
	for _, f := range m {
		if info := f.ID().info(); f.Masked() && info != nil {
			mask := f.mask()
			all, none := true, true
			for i := max(0, 8*len(mask)-info.bits); i < 8*len(mask); i++ {
				one := mask[i/8]>>(7-i%8)&1 == 1
				all, none = all && one, none && !one
			}
			switch {
			case none:
				continue
			case all:
				f = field(f.ID(), f.Value(), nil)
			}
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Field) int {
		return cmp.Or(cmp.Compare(a.header, b.header), cmp.Compare(a.body, b.body))
	})
	return out
}
