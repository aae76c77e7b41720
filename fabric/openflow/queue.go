package openflow

// QueueID is the number of a queue of a port.
type QueueID uint32

// AllQueues in requests is all queues of a port (OFPQ_ALL).
const AllQueues QueueID = 0xffffffff

// QueueGetConfigRequest asks for the queues of a port, or of PortAny (section 7.3.6).
type QueueGetConfigRequest struct{ Port PortNo }

// QueueGetConfigReply has the queues of a port (section 7.3.6).
type QueueGetConfigReply struct {
	Port   PortNo
	Queues []Queue
}

// Queue describes a queue (struct ofp_packet_queue, section 7.2.2).
type Queue struct {
	ID         QueueID
	Port       PortNo
	Properties []QueueProperty
}

// QueueProperty is a property of a queue (struct ofp_queue_prop_header).
type QueueProperty struct {
	Kind         QueuePropertyType
	Rate         uint16 // QueueMinRate, QueueMaxRate: in 1/10 of a percent; above 1000 there is none
	Experimenter uint32 // QueueExperimenter
	Body         []byte // QueueExperimenter: what follows the id; other types: what follows the header; 8n bytes
}

// QueuePropertyType is the type of a property (enum ofp_queue_properties).
type QueuePropertyType uint16

// The types of properties.
const (
	QueueMinRate      QueuePropertyType = 1
	QueueMaxRate      QueuePropertyType = 2
	QueueExperimenter QueuePropertyType = 0xffff
)

// Type is TypeQueueGetConfigRequest.
func (m *QueueGetConfigRequest) Type() Type { return TypeQueueGetConfigRequest }

// Type is TypeQueueGetConfigReply.
func (m *QueueGetConfigReply) Type() Type { return TypeQueueGetConfigReply }

func (m *QueueGetConfigRequest) layout(c *codec) {
	u32(c, &m.Port, "ofp_queue_get_config_request.port")
	c.pad(4)
}

func (m *QueueGetConfigReply) layout(c *codec) {
	u32(c, &m.Port, "ofp_queue_get_config_reply.port")
	c.pad(4)
	list(c, &m.Queues, (*codec).queue)
}

func (c *codec) queue(p *Queue) {
	start := c.at()
	u32(c, &p.ID, "ofp_packet_queue.queue_id")
	u32(c, &p.Port, "ofp_packet_queue.port")
	s := c.length(start, "ofp_packet_queue.len")
	c.pad(6)
	list(c, &p.Properties, (*codec).queueProperty)
	c.close(s)
}

func (c *codec) queueProperty(p *QueueProperty) {
	start := c.at()
	u16(c, &p.Kind, "ofp_queue_prop_header.property")
	s := c.length(start, "ofp_queue_prop_header.len")
	c.pad(4)
	rate, body := p.Kind == QueueMinRate || p.Kind == QueueMaxRate, len(p.Body) > 0
	if c.encoding && (rate && body || !rate && p.Rate != 0 || p.Kind != QueueExperimenter && p.Experimenter != 0) {
		c.fail("ofp_queue_prop_header.property", start, "a property of type %d does not have these fields", p.Kind)
	}
	switch {
	case rate:
		u16(c, &p.Rate, "ofp_queue_prop_min_rate.rate")
		c.pad(6)
	case p.Kind == QueueExperimenter:
		c.unknown++
		u32(c, &p.Experimenter, "ofp_queue_prop_experimenter.experimenter")
		c.pad(4)
		c.rest(&p.Body, "ofp_queue_prop_experimenter.data")
	default:
		c.unknown++
		c.rest(&p.Body, "ofp_queue_prop_header")
	}
	c.multipleOf8(s)
	c.close(s)
}
