package openflow

import "encoding/binary"

// Experimenter is a message of an extension (struct ofp_experimenter_header, section 7.5.4), kept as bytes.
type Experimenter struct {
	Experimenter uint32 // an ONF experimenter id, or an IEEE OUI
	ExpType      uint32
	Data         []byte
}

// ONF is the experimenter id of the Open Networking Foundation's extensions.
const ONF = 0x4f4e4600

// The types of messages of the bundle extension (ONF EXT-230, enum onf_exp_type).
const (
	expBundleControl = 2300
	expBundleAdd     = 2301
)

// Type is TypeExperimenter.
func (m *Experimenter) Type() Type { return TypeExperimenter }

func (m *Experimenter) layout(c *codec) {
	if c.encoding && m.Experimenter == ONF && (m.ExpType == expBundleControl || m.ExpType == expBundleAdd) {
		c.fail("ofp_experimenter_header.exp_type", 12, "%d is a message of a bundle: use BundleControl or BundleAdd", m.ExpType)
	}
	c.unknown++
	u32(c, &m.Experimenter, "ofp_experimenter_header.experimenter")
	u32(c, &m.ExpType, "ofp_experimenter_header.exp_type")
	c.rest(&m.Data, "data")
}

// experimenter returns the structure for the experimenter message that follows.
func (c *codec) experimenter() Message {
	if c.end-c.off >= 8 && binary.BigEndian.Uint32(c.b[c.off:]) == ONF {
		switch binary.BigEndian.Uint32(c.b[c.off+4:]) {
		case expBundleControl:
			return new(BundleControl)
		case expBundleAdd:
			return new(BundleAdd)
		}
	}
	return new(Experimenter)
}

// BundleControl opens, closes, commits or discards a bundle: changes that take effect together (struct
// onf_bundle_ctrl_msg of ONF EXT-230, "Bundle extension for OpenFlow 1.3").
type BundleControl struct {
	ID         uint32
	Control    BundleControlType
	Flags      BundleFlags
	Properties []BundleProperty
}

// BundleAdd adds a change to a bundle (struct onf_bundle_add_msg). Message has the transaction id of the BundleAdd,
// and is no message of a bundle itself.
type BundleAdd struct {
	ID         uint32
	Flags      BundleFlags
	Message    Message
	Properties []BundleProperty
}

// BundleControlType is what is done with a bundle (enum onf_bundle_ctrl_type).
type BundleControlType uint16

// What is done with a bundle.
const (
	BundleOpenRequest BundleControlType = iota
	BundleOpenReply
	BundleCloseRequest
	BundleCloseReply
	BundleCommitRequest
	BundleCommitReply
	BundleDiscardRequest
	BundleDiscardReply
)

// BundleFlags is how a bundle is committed (enum onf_bundle_flags).
type BundleFlags uint16

// How a bundle is committed.
const (
	BundleAtomic  BundleFlags = 1 << 0 // no packet sees a part of the changes
	BundleOrdered BundleFlags = 1 << 1 // the changes are made in their order
)

// BundleProperty is a property of a message of a bundle, kept as bytes. The extension defines only those of
// experimenters (type 0xffff).
type BundleProperty struct {
	Kind uint16
	Body []byte // what follows the length
}

// Type is TypeExperimenter.
func (m *BundleControl) Type() Type { return TypeExperimenter }

// Type is TypeExperimenter.
func (m *BundleAdd) Type() Type { return TypeExperimenter }

func (m *BundleControl) layout(c *codec) {
	c.bundle("bundle-control", expBundleControl)
	u32(c, &m.ID, "onf_bundle_ctrl_msg.bundle_id")
	u16(c, &m.Control, "onf_bundle_ctrl_msg.type")
	u16(c, &m.Flags, "onf_bundle_ctrl_msg.flags")
	list(c, &m.Properties, (*codec).bundleProperty)
}

func (m *BundleAdd) layout(c *codec) {
	c.bundle("bundle-add", expBundleAdd)
	u32(c, &m.ID, "onf_bundle_add_msg.bundle_id")
	c.pad(2)
	u16(c, &m.Flags, "onf_bundle_add_msg.flags")
	start := c.at()
	c.nestedMessage(&m.Message)
	if c.encoding && len(m.Properties) > 0 || !c.encoding && c.off < c.end {
		c.align(start)
		list(c, &m.Properties, (*codec).bundleProperty)
	}
}

// bundle is the header of a message of a bundle.
func (c *codec) bundle(name string, expType uint32) {
	if c.nested {
		c.fail("onf_bundle_add_msg.message", c.at(), "a bundle contains no messages of bundles")
	}
	c.message = name
	id := uint32(ONF)
	u32(c, &id, "ofp_experimenter_header.experimenter")
	u32(c, &expType, "ofp_experimenter_header.exp_type")
}

// nestedMessage is a whole message with its header.
func (c *codec) nestedMessage(p *Message) {
	if c.err != nil {
		return
	}
	outer, end, start := c.message, c.end, c.off
	c.nested = true
	if c.encoding {
		c.encode(*p)
	} else {
		n, err := Length(c.b[start:end])
		if err != nil || n > end-start {
			c.fail("onf_bundle_add_msg.message", start, "its length is %d, but %d bytes remain", n, end-start)
			return
		}
		xid := c.xid
		c.end = start + n
		*p = c.decode()
		c.end = end
		switch {
		case c.err != nil:
		case c.xid != xid:
			c.fail("ofp_header.xid", start+4, "%#x, but that of the bundle-add is %#x", c.xid, xid)
		case c.b[start] != Version:
			c.fail("ofp_header.version", start, "version %d, want %d (OpenFlow 1.3)", c.b[start], Version)
		}
	}
	c.nested = false
	if c.err == nil {
		c.message, c.what = outer, ""
	}
}

func (c *codec) bundleProperty(p *BundleProperty) {
	c.unknown++
	start := c.at()
	u16(c, &p.Kind, "onf_bundle_prop_header.type")
	s := c.length(start, "onf_bundle_prop_header.length")
	c.rest(&p.Body, "onf_bundle_prop_header")
	c.close(s)
	c.align(start)
}
