package openflow

import (
	"encoding/binary"
)

// Actions is a list or a set of actions.
type Actions []Action

func (c *codec) actions(p *Actions) { list(c, (*[]Action)(p), (*codec).action) }

// action is an action with its header.
func (c *codec) action(p *Action) {
	start := c.at()
	var t ActionType
	if c.encoding {
		if *p == nil {
			c.fail("ofp_action_header.type", start, "an action is nil")
			return
		}
		t = (*p).Type()
	}
	u16(c, &t, "ofp_action_header.type")
	s := c.length(start, "ofp_action_header.len")
	if c.err != nil {
		return
	}
	a := *p
	if !c.encoding {
		a = actionTypes[t].empty
		if a == nil || t == ActionSetField && c.maskFollows() {
			a = UnknownAction{Kind: t}
		}
	}
	a = a.fields(c)
	if t == ActionSetField {
		c.align(start)
	}
	c.multipleOf8(s)
	c.close(s)
	if !c.encoding {
		*p = a
	}
}

// maskFollows tells whether the header of a field with a mask is next.
func (c *codec) maskFollows() bool {
	return c.end-c.off >= 4 && c.b[c.off+2]&1 == 1
}

func (a Output) fields(c *codec) Action {
	u32(c, &a.Port, "ofp_action_output.port")
	u16(c, &a.MaxLen, "ofp_action_output.max_len")
	c.pad(6)
	return a
}

func (a CopyTTLOut) fields(c *codec) Action { c.pad(4); return a }
func (a CopyTTLIn) fields(c *codec) Action  { c.pad(4); return a }
func (a DecMPLSTTL) fields(c *codec) Action { c.pad(4); return a }
func (a PopVLAN) fields(c *codec) Action    { c.pad(4); return a }
func (a DecNwTTL) fields(c *codec) Action   { c.pad(4); return a }
func (a PopPBB) fields(c *codec) Action     { c.pad(4); return a }

func (a SetMPLSTTL) fields(c *codec) Action {
	u8(c, &a.TTL, "ofp_action_mpls_ttl.mpls_ttl")
	c.pad(3)
	return a
}

func (a SetNwTTL) fields(c *codec) Action {
	u8(c, &a.TTL, "ofp_action_nw_ttl.nw_ttl")
	c.pad(3)
	return a
}

func (a PushVLAN) fields(c *codec) Action {
	c.ethertype(&a.EthType, "ofp_action_push.ethertype")
	return a
}
func (a PushMPLS) fields(c *codec) Action {
	c.ethertype(&a.EthType, "ofp_action_push.ethertype")
	return a
}
func (a PushPBB) fields(c *codec) Action {
	c.ethertype(&a.EthType, "ofp_action_push.ethertype")
	return a
}
func (a PopMPLS) fields(c *codec) Action {
	c.ethertype(&a.EthType, "ofp_action_pop_mpls.ethertype")
	return a
}

func (c *codec) ethertype(p *uint16, field string) {
	u16(c, p, field)
	c.pad(2)
}

func (a SetQueue) fields(c *codec) Action {
	u32(c, &a.Queue, "ofp_action_set_queue.queue_id")
	return a
}

func (a Group) fields(c *codec) Action {
	u32(c, &a.Group, "ofp_action_group.group_id")
	return a
}

func (a SetField) fields(c *codec) Action {
	if c.encoding && a.Field.Masked() {
		c.fail("ofp_action_set_field.field", c.at(), "%s has a mask: remove it", a.Field.ID())
	}
	c.oxm(&a.Field, "ofp_action_set_field.field")
	return a
}

func (a ExperimenterAction) fields(c *codec) Action {
	c.unknown++
	u32(c, &a.Experimenter, "ofp_action_experimenter_header.experimenter")
	c.rest(&a.Data, "ofp_action_experimenter_header")
	return a
}

func (a UnknownAction) fields(c *codec) Action {
	c.unknown++
	if c.encoding && actionTypes[a.Kind].empty != nil {
		masked := a.Kind == ActionSetField && len(a.Body) >= 4 && binary.BigEndian.Uint32(a.Body)>>8&1 == 1
		if !masked {
			c.fail("ofp_action_header.type", c.at(), "an action of type %d is no UnknownAction: use that of %s", a.Kind, a.Kind)
		}
	}
	c.rest(&a.Body, "ofp_action_header")
	return a
}
