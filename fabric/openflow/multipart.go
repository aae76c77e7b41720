package openflow

import "fmt"

// MultipartType is the kind of a multipart message (enum ofp_multipart_types, section 7.3.5).
type MultipartType uint16

// The kinds of multipart messages.
const (
	MultipartDesc MultipartType = iota
	MultipartFlow
	MultipartAggregate
	MultipartTable
	MultipartPortStats
	MultipartQueue
	MultipartGroup
	MultipartGroupDesc
	MultipartGroupFeatures
	MultipartMeter
	MultipartMeterConfig
	MultipartMeterFeatures
	MultipartTableFeatures
	MultipartPortDesc
	MultipartExperimenter MultipartType = 0xffff
)

// multiparts has the name of each kind, and a new body of a request and of a reply.
var multiparts = [...]struct {
	name    string
	request func() RequestBody
	reply   func() ReplyBody
}{
	MultipartDesc:          {"desc", func() RequestBody { return new(DescRequest) }, func() ReplyBody { return new(Desc) }},
	MultipartFlow:          {"flow", func() RequestBody { return new(FlowStatsRequest) }, func() ReplyBody { return new(FlowStatsReply) }},
	MultipartAggregate:     {"aggregate", func() RequestBody { return new(AggregateRequest) }, func() ReplyBody { return new(Aggregate) }},
	MultipartTable:         {"table", func() RequestBody { return new(TableStatsRequest) }, func() ReplyBody { return new(TableStatsReply) }},
	MultipartPortStats:     {"port-stats", func() RequestBody { return new(PortStatsRequest) }, func() ReplyBody { return new(PortStatsReply) }},
	MultipartQueue:         {"queue", func() RequestBody { return new(QueueStatsRequest) }, func() ReplyBody { return new(QueueStatsReply) }},
	MultipartGroup:         {"group", func() RequestBody { return new(GroupStatsRequest) }, func() ReplyBody { return new(GroupStatsReply) }},
	MultipartGroupDesc:     {"group-desc", func() RequestBody { return new(GroupDescRequest) }, func() ReplyBody { return new(GroupDescReply) }},
	MultipartGroupFeatures: {"group-features", func() RequestBody { return new(GroupFeaturesRequest) }, func() ReplyBody { return new(GroupFeatures) }},
	MultipartMeter:         {"meter", func() RequestBody { return new(MeterStatsRequest) }, func() ReplyBody { return new(MeterStatsReply) }},
	MultipartMeterConfig:   {"meter-config", func() RequestBody { return new(MeterConfigRequest) }, func() ReplyBody { return new(MeterConfigReply) }},
	MultipartMeterFeatures: {"meter-features", func() RequestBody { return new(MeterFeaturesRequest) }, func() ReplyBody { return new(MeterFeatures) }},
	MultipartTableFeatures: {"table-features", func() RequestBody { return new(TableFeaturesList) }, func() ReplyBody { return new(TableFeaturesList) }},
	MultipartPortDesc:      {"port-desc", func() RequestBody { return new(PortDescRequest) }, func() ReplyBody { return new(PortDescReply) }},
}

// String is the name of the kind in lower case, such as "port-desc".
func (t MultipartType) String() string {
	if int(t) < len(multiparts) {
		return multiparts[t].name
	}
	if t == MultipartExperimenter {
		return "experimenter"
	}
	return fmt.Sprintf("multipart type %d", uint16(t))
}

// body is the body of a request or a reply.
type body interface {
	Kind() MultipartType
	String() string
	layout(c *codec)
}

// RequestBody is the body of a MultipartRequest: a pointer to a structure of this package whose name ends in
// Request, TableFeaturesList, ExperimenterMultipart or UnknownMultipart.
type RequestBody interface {
	body
	request()
}

// ReplyBody is the body of a MultipartReply: a pointer to a structure of this package whose name ends in Reply,
// Desc, Aggregate, GroupFeatures, MeterFeatures, TableFeaturesList, ExperimenterMultipart or UnknownMultipart.
type ReplyBody interface {
	body
	reply()
}

// MultipartRequest asks for a description or statistics (struct ofp_multipart_request, section 7.3.5).
type MultipartRequest struct {
	More bool // another part of the request follows (OFPMPF_REQ_MORE)
	Body RequestBody
}

// MultipartReply is an answer to a MultipartRequest, or a part of it (struct ofp_multipart_reply, section 7.3.5).
// A Reassembler joins the parts.
type MultipartReply struct {
	More bool // another part of the reply follows (OFPMPF_REPLY_MORE)
	Body ReplyBody
}

// Type is TypeMultipartRequest.
func (m *MultipartRequest) Type() Type { return TypeMultipartRequest }

// Type is TypeMultipartReply.
func (m *MultipartReply) Type() Type { return TypeMultipartReply }

func (m *MultipartRequest) layout(c *codec) {
	if c.encoding && m.Body == nil {
		c.fail("ofp_multipart.body", c.at(), "it is nil")
		return
	}
	t := multipartHeader(c, m.Body, &m.More, "request")
	switch {
	case c.encoding:
	case int(t) < len(multiparts):
		m.Body = multiparts[t].request()
	case t == MultipartExperimenter:
		m.Body = new(ExperimenterMultipart)
	default:
		m.Body = &UnknownMultipart{Type: t}
	}
	m.Body.layout(c)
}

func (m *MultipartReply) layout(c *codec) {
	if c.encoding && m.Body == nil {
		c.fail("ofp_multipart.body", c.at(), "it is nil")
		return
	}
	t := multipartHeader(c, m.Body, &m.More, "reply")
	switch {
	case c.encoding:
	case c.into != nil && c.into.Kind() == t:
		m.Body = c.into
	case int(t) < len(multiparts):
		m.Body = multiparts[t].reply()
	case t == MultipartExperimenter:
		m.Body = new(ExperimenterMultipart)
	default:
		m.Body = &UnknownMultipart{Type: t}
	}
	m.Body.layout(c)
}

// multipartHeader passes over the type and flags, and returns the type.
func multipartHeader(c *codec, b body, more *bool, what string) MultipartType {
	var t MultipartType
	var flags uint16
	if c.encoding {
		t = b.Kind()
		if *more {
			flags = 1
		}
	}
	u16(c, &t, "ofp_multipart.type")
	u16(c, &flags, "ofp_multipart.flags")
	c.pad(4)
	if !c.encoding {
		*more = flags&1 == 1
	}
	c.message, c.what = t.String(), what
	return t
}

// ExperimenterMultipart is the body of a request or reply of an extension, kept as bytes (struct
// ofp_experimenter_multipart_header).
type ExperimenterMultipart struct {
	Experimenter uint32
	ExpType      uint32
	Data         []byte
}

// UnknownMultipart is the body of a request or reply of a kind that OpenFlow 1.3 does not define.
type UnknownMultipart struct {
	Type MultipartType
	Data []byte
}

// Kind is MultipartExperimenter.
func (*ExperimenterMultipart) Kind() MultipartType { return MultipartExperimenter }

// Kind is the kind in the header.
func (b *UnknownMultipart) Kind() MultipartType { return b.Type }

func (b *ExperimenterMultipart) layout(c *codec) {
	c.unknown++
	u32(c, &b.Experimenter, "ofp_experimenter_multipart_header.experimenter")
	u32(c, &b.ExpType, "ofp_experimenter_multipart_header.exp_type")
	c.rest(&b.Data, "ofp_experimenter_multipart_header")
}

func (b *UnknownMultipart) layout(c *codec) {
	c.unknown++
	if c.encoding && (int(b.Type) < len(multiparts) || b.Type == MultipartExperimenter) {
		c.fail("ofp_multipart.type", 8, "a body of type %d is no UnknownMultipart: use that of %s", b.Type, b.Type)
	}
	c.rest(&b.Data, "body")
}

func (*ExperimenterMultipart) request() {}
func (*ExperimenterMultipart) reply()   {}
func (*UnknownMultipart) request()      {}
func (*UnknownMultipart) reply()        {}
