package openflow

// NoBuffer as the id of a buffer means that the message has the whole packet (OFP_NO_BUFFER).
const NoBuffer = 0xffffffff

// PacketIn has a packet that a switch sends to the controller (struct ofp_packet_in, section 7.4.1).
type PacketIn struct {
	Buffer   uint32 // where the switch keeps the packet, or NoBuffer
	TotalLen uint16 // bytes of the frame; Data may have fewer
	Reason   PacketInReason
	Table    TableID
	Cookie   uint64 // of the flow that sent the packet, or all ones
	Match    Match  // InPort, and pipeline fields such as Metadata
	Data     []byte
}

// PacketInReason is why a switch sends a packet (enum ofp_packet_in_reason).
type PacketInReason uint8

// Why a switch sends a packet.
const (
	ReasonNoMatch    PacketInReason = iota // the table-miss flow
	ReasonAction                           // an action of another flow
	ReasonInvalidTTL                       // the TTL became 0
)

// Type is TypePacketIn.
func (m *PacketIn) Type() Type { return TypePacketIn }

func (m *PacketIn) layout(c *codec) {
	u32(c, &m.Buffer, "ofp_packet_in.buffer_id")
	u16(c, &m.TotalLen, "ofp_packet_in.total_len")
	u8(c, &m.Reason, "ofp_packet_in.reason")
	u8(c, &m.Table, "ofp_packet_in.table_id")
	u64(c, &m.Cookie, "ofp_packet_in.cookie")
	c.match(&m.Match)
	c.pad(2)
	c.rest(&m.Data, "ofp_packet_in.data")
}

// PacketOut makes a switch send a packet (struct ofp_packet_out, section 7.3.7).
type PacketOut struct {
	Buffer  uint32 // of a PacketIn, or NoBuffer
	InPort  PortNo // where the packet seems to have arrived, or PortController
	Actions Actions
	Data    []byte // the packet, if Buffer is NoBuffer
}

// Type is TypePacketOut.
func (m *PacketOut) Type() Type { return TypePacketOut }

func (m *PacketOut) layout(c *codec) {
	u32(c, &m.Buffer, "ofp_packet_out.buffer_id")
	u32(c, &m.InPort, "ofp_packet_out.in_port")
	start := c.at() + 8 // actions_len counts only the actions
	s := c.length8(start, "ofp_packet_out.actions_len")
	c.actions(&m.Actions)
	c.close(s)
	c.rest(&m.Data, "ofp_packet_out.data")
}

// length8 is a length of 16 bits with 6 bytes of padding.
func (c *codec) length8(start int, field string) span {
	s := span{field: field, start: start, at: c.at(), outer: c.end}
	var n uint16
	u16(c, &n, field)
	c.pad(6)
	if !c.encoding && c.err == nil {
		if s.end = start + int(n); s.end > c.end {
			c.fail(field, s.at, "%d bytes, but only %d remain", n, c.end-start)
		}
		c.end = s.end
	}
	return s
}
