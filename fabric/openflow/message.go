package openflow

import (
	"encoding/binary"
	"fmt"
)

// Version is the version of OpenFlow 1.3 in the header of messages.
const Version = 4

// HeaderLen is the number of bytes of the header of a message (struct ofp_header, section 7.1).
const HeaderLen = 8

const maxLength = 65535

// Type is the type of a message (enum ofp_type, section 7.1).
type Type uint8

// The types of messages.
const (
	TypeHello Type = iota
	TypeError
	TypeEchoRequest
	TypeEchoReply
	TypeExperimenter
	TypeFeaturesRequest
	TypeFeaturesReply
	TypeGetConfigRequest
	TypeGetConfigReply
	TypeSetConfig
	TypePacketIn
	TypeFlowRemoved
	TypePortStatus
	TypePacketOut
	TypeFlowMod
	TypeGroupMod
	TypePortMod
	TypeTableMod
	TypeMultipartRequest
	TypeMultipartReply
	TypeBarrierRequest
	TypeBarrierReply
	TypeQueueGetConfigRequest
	TypeQueueGetConfigReply
	TypeRoleRequest
	TypeRoleReply
	TypeGetAsyncRequest
	TypeGetAsyncReply
	TypeSetAsync
	TypeMeterMod
)

// types has the name of each type, and a new message of it.
var types = [...]struct {
	name string
	make func() Message
}{
	TypeHello:                 {"hello", func() Message { return new(Hello) }},
	TypeError:                 {"error", func() Message { return new(Error) }},
	TypeEchoRequest:           {"echo-request", func() Message { return new(EchoRequest) }},
	TypeEchoReply:             {"echo-reply", func() Message { return new(EchoReply) }},
	TypeExperimenter:          {"experimenter", func() Message { return new(Experimenter) }},
	TypeFeaturesRequest:       {"features-request", func() Message { return new(FeaturesRequest) }},
	TypeFeaturesReply:         {"features-reply", func() Message { return new(FeaturesReply) }},
	TypeGetConfigRequest:      {"get-config-request", func() Message { return new(GetConfigRequest) }},
	TypeGetConfigReply:        {"get-config-reply", func() Message { return new(GetConfigReply) }},
	TypeSetConfig:             {"set-config", func() Message { return new(SetConfig) }},
	TypePacketIn:              {"packet-in", func() Message { return new(PacketIn) }},
	TypeFlowRemoved:           {"flow-removed", func() Message { return new(FlowRemoved) }},
	TypePortStatus:            {"port-status", func() Message { return new(PortStatus) }},
	TypePacketOut:             {"packet-out", func() Message { return new(PacketOut) }},
	TypeFlowMod:               {"flow-mod", func() Message { return new(FlowMod) }},
	TypeGroupMod:              {"group-mod", func() Message { return new(GroupMod) }},
	TypePortMod:               {"port-mod", func() Message { return new(PortMod) }},
	TypeTableMod:              {"table-mod", func() Message { return new(TableMod) }},
	TypeMultipartRequest:      {"multipart-request", func() Message { return new(MultipartRequest) }},
	TypeMultipartReply:        {"multipart-reply", func() Message { return new(MultipartReply) }},
	TypeBarrierRequest:        {"barrier-request", func() Message { return new(BarrierRequest) }},
	TypeBarrierReply:          {"barrier-reply", func() Message { return new(BarrierReply) }},
	TypeQueueGetConfigRequest: {"queue-get-config-request", func() Message { return new(QueueGetConfigRequest) }},
	TypeQueueGetConfigReply:   {"queue-get-config-reply", func() Message { return new(QueueGetConfigReply) }},
	TypeRoleRequest:           {"role-request", func() Message { return new(RoleRequest) }},
	TypeRoleReply:             {"role-reply", func() Message { return new(RoleReply) }},
	TypeGetAsyncRequest:       {"get-async-request", func() Message { return new(GetAsyncRequest) }},
	TypeGetAsyncReply:         {"get-async-reply", func() Message { return new(GetAsyncReply) }},
	TypeSetAsync:              {"set-async", func() Message { return new(SetAsync) }},
	TypeMeterMod:              {"meter-mod", func() Message { return new(MeterMod) }},
}

// String is the name of the type in lower case, such as "flow-mod".
func (t Type) String() string {
	if int(t) < len(types) {
		return types[t].name
	}
	return fmt.Sprintf("message type %d", uint8(t))
}

// Message is an OpenFlow message without its header. The messages are pointers to the structures of this package.
// String returns text in the style of ovs-ofctl.
type Message interface {
	Type() Type
	String() string
	layout(c *codec)
}

// Unknown is a message of a type that OpenFlow 1.3 does not define. It is encoded to the bytes that were decoded.
type Unknown struct {
	Kind Type
	Body []byte // all bytes after the header
}

// Type is the type in the header.
func (m *Unknown) Type() Type { return m.Kind }

func (m *Unknown) layout(c *codec) {
	c.unknown++
	if int(m.Kind) < len(types) {
		c.fail("ofp_header.type", 1, "a message of type %d is no Unknown: use the structure of %s", m.Kind, m.Kind)
	}
	c.rest(&m.Body, "body")
}

// Append appends a message with its header to b and returns the extended slice. It returns b and an EncodeError
// if the message does not fit into its 65,535 bytes, or if Decode would refuse it.
func Append(b []byte, xid uint32, m Message) ([]byte, error) {
	c := codec{encoding: true, b: b, base: len(b), xid: xid}
	c.encode(m)
	if c.err != nil {
		return b, c.err
	}
	return c.b, nil
}

// encode appends a message with its header.
func (c *codec) encode(m Message) {
	if m == nil {
		c.message = "message"
		c.fail("message", 0, "it is nil")
		return
	}
	t := m.Type()
	c.message = t.String()
	start := c.at()
	version := uint8(Version)
	if hello, ok := m.(*Hello); ok && !c.nested {
		version = hello.Version
	}
	u8(c, &version, "ofp_header.version")
	u8(c, &t, "ofp_header.type")
	s := c.length(start, "ofp_header.length")
	u32(c, &c.xid, "ofp_header.xid")
	m.layout(c)
	c.close(s)
}

// Length returns the length in bytes of the message that begins with the header b (ofp_header.length), which is
// how a stream is divided into messages. It is an error if b is shorter than HeaderLen, or the length is.
func Length(b []byte) (int, error) {
	if len(b) < HeaderLen {
		return 0, &DecodeError{"message", "ofp_header", 0, fmt.Sprintf("%d bytes, but a header has %d", len(b), HeaderLen)}
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	if n < HeaderLen {
		return 0, &DecodeError{Type(b[1]).String(), "ofp_header.length", 2, fmt.Sprintf("%d bytes, but a header has %d", n, HeaderLen)}
	}
	return n, nil
}

// Decode reads one message, which must fill b. The message keeps no reference to b. A DecodeError names the
// message, the field and its offset. Hello and error messages may be of any version, the others only of Version.
func Decode(b []byte) (xid uint32, m Message, err error) {
	xid, m, _, err = DecodeCount(b)
	return xid, m, err
}

// DecodeCount is Decode, and returns as well how many structures of the message are kept as bytes because they are of experimenters,
// or of types that OpenFlow 1.3 does not define: messages, match fields, instructions, actions, meter bands and properties.
func DecodeCount(b []byte) (xid uint32, m Message, unknown int, err error) {
	return DecodeInto(b, nil)
}

// DecodeInto is DecodeCount for a multipart reply, whose body is decoded into an earlier one if that is of the same kind: into the memory of its list. Only
// MeterStatsReply has use for it.
func DecodeInto(b []byte, body ReplyBody) (xid uint32, m Message, unknown int, err error) {
	c := codec{b: b, end: len(b), into: body}
	m = c.decode()
	if c.err != nil {
		return 0, nil, 0, c.err
	}
	return c.xid, m, c.unknown, nil
}

// decode reads a message with its header that fills the bytes to the end.
func (c *codec) decode() Message {
	start := c.off
	n, err := Length(c.b[c.off:c.end])
	if err != nil {
		c.err = err
		return nil
	}
	t := Type(c.b[c.off+1])
	c.message = t.String()
	if v := c.b[c.off]; v != Version && t != TypeHello && t != TypeError {
		c.fail("ofp_header.version", start, "version %d, want %d (OpenFlow 1.3)", v, Version)
		return nil
	}
	if n != c.end-start {
		c.fail("ofp_header.length", start+2, "%d bytes, but the message has %d", n, c.end-start)
		return nil
	}
	c.xid = binary.BigEndian.Uint32(c.b[c.off+4:])
	version := c.b[c.off]
	c.off += HeaderLen
	var m Message
	switch {
	case int(t) >= len(types):
		m = &Unknown{Kind: t}
	case t == TypeHello:
		m = &Hello{Version: version}
	case t == TypeExperimenter:
		m = c.experimenter()
	default:
		m = types[t].make()
	}
	m.layout(c)
	if c.err == nil && c.off != c.end {
		c.fail("ofp_header.length", start+2, "%d bytes, %d more than the message has", n, c.end-c.off)
	}
	return m
}
