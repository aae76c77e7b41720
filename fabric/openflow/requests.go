package openflow

// The bodies of multipart requests (section 7.3.5).

// DescRequest asks for a Desc.
type DescRequest struct{}

// FlowFilter selects flows (struct ofp_flow_stats_request, section 7.3.5.2).
type FlowFilter struct {
	Table      TableID // or AllTables
	OutPort    PortNo  // only flows that output to this port, or PortAny
	OutGroup   GroupID // only flows that use this group, or GroupAny
	Cookie     uint64  // only flows whose cookie has these bits under CookieMask
	CookieMask uint64
	Match      Match // only flows that are as specific as this or more
}

// AllFlows selects all flows of a switch.
func AllFlows() FlowFilter {
	return FlowFilter{Table: AllTables, OutPort: PortAny, OutGroup: GroupAny}
}

// FlowsWith selects the flows of a switch whose cookie has these bits under a mask.
func FlowsWith(cookie, mask uint64) FlowFilter {
	f := AllFlows()
	f.Cookie, f.CookieMask = cookie, mask
	return f
}

// FlowStatsRequest asks for a FlowStatsReply.
type FlowStatsRequest struct{ FlowFilter }

// AggregateRequest asks for an Aggregate.
type AggregateRequest struct{ FlowFilter }

// TableStatsRequest asks for a TableStatsReply.
type TableStatsRequest struct{}

// PortStatsRequest asks for a PortStatsReply, for a port or PortAny.
type PortStatsRequest struct{ Port PortNo }

// QueueStatsRequest asks for a QueueStatsReply, for a port or PortAny, and a queue or AllQueues.
type QueueStatsRequest struct {
	Port  PortNo
	Queue QueueID
}

// GroupStatsRequest asks for a GroupStatsReply, for a group or GroupAll.
type GroupStatsRequest struct{ Group GroupID }

// GroupDescRequest asks for a GroupDescReply.
type GroupDescRequest struct{}

// GroupFeaturesRequest asks for GroupFeatures.
type GroupFeaturesRequest struct{}

// MeterStatsRequest asks for a MeterStatsReply, for a meter or MeterAll.
type MeterStatsRequest struct{ Meter MeterID }

// MeterConfigRequest asks for a MeterConfigReply, for a meter or MeterAll.
type MeterConfigRequest struct{ Meter MeterID }

// MeterFeaturesRequest asks for MeterFeatures.
type MeterFeaturesRequest struct{}

// PortDescRequest asks for a PortDescReply.
type PortDescRequest struct{}

// Kind is MultipartDesc.
func (*DescRequest) Kind() MultipartType { return MultipartDesc }

// Kind is MultipartFlow.
func (*FlowStatsRequest) Kind() MultipartType { return MultipartFlow }

// Kind is MultipartAggregate.
func (*AggregateRequest) Kind() MultipartType { return MultipartAggregate }

// Kind is MultipartTable.
func (*TableStatsRequest) Kind() MultipartType { return MultipartTable }

// Kind is MultipartPortStats.
func (*PortStatsRequest) Kind() MultipartType { return MultipartPortStats }

// Kind is MultipartQueue.
func (*QueueStatsRequest) Kind() MultipartType { return MultipartQueue }

// Kind is MultipartGroup.
func (*GroupStatsRequest) Kind() MultipartType { return MultipartGroup }

// Kind is MultipartGroupDesc.
func (*GroupDescRequest) Kind() MultipartType { return MultipartGroupDesc }

// Kind is MultipartGroupFeatures.
func (*GroupFeaturesRequest) Kind() MultipartType { return MultipartGroupFeatures }

// Kind is MultipartMeter.
func (*MeterStatsRequest) Kind() MultipartType { return MultipartMeter }

// Kind is MultipartMeterConfig.
func (*MeterConfigRequest) Kind() MultipartType { return MultipartMeterConfig }

// Kind is MultipartMeterFeatures.
func (*MeterFeaturesRequest) Kind() MultipartType { return MultipartMeterFeatures }

// Kind is MultipartPortDesc.
func (*PortDescRequest) Kind() MultipartType { return MultipartPortDesc }

func (*DescRequest) request()          {}
func (*FlowStatsRequest) request()     {}
func (*AggregateRequest) request()     {}
func (*TableStatsRequest) request()    {}
func (*PortStatsRequest) request()     {}
func (*QueueStatsRequest) request()    {}
func (*GroupStatsRequest) request()    {}
func (*GroupDescRequest) request()     {}
func (*GroupFeaturesRequest) request() {}
func (*MeterStatsRequest) request()    {}
func (*MeterConfigRequest) request()   {}
func (*MeterFeaturesRequest) request() {}
func (*TableFeaturesList) request()    {}
func (*PortDescRequest) request()      {}

func (*DescRequest) layout(*codec)          {}
func (*TableStatsRequest) layout(*codec)    {}
func (*GroupDescRequest) layout(*codec)     {}
func (*GroupFeaturesRequest) layout(*codec) {}
func (*MeterFeaturesRequest) layout(*codec) {}
func (*PortDescRequest) layout(*codec)      {}

func (f *FlowFilter) layout(c *codec) {
	u8(c, &f.Table, "ofp_flow_stats_request.table_id")
	c.pad(3)
	u32(c, &f.OutPort, "ofp_flow_stats_request.out_port")
	u32(c, &f.OutGroup, "ofp_flow_stats_request.out_group")
	c.pad(4)
	u64(c, &f.Cookie, "ofp_flow_stats_request.cookie")
	u64(c, &f.CookieMask, "ofp_flow_stats_request.cookie_mask")
	c.match(&f.Match)
}

func (b *PortStatsRequest) layout(c *codec) {
	u32(c, &b.Port, "ofp_port_stats_request.port_no")
	c.pad(4)
}

func (b *QueueStatsRequest) layout(c *codec) {
	u32(c, &b.Port, "ofp_queue_stats_request.port_no")
	u32(c, &b.Queue, "ofp_queue_stats_request.queue_id")
}

func (b *GroupStatsRequest) layout(c *codec) {
	u32(c, &b.Group, "ofp_group_stats_request.group_id")
	c.pad(4)
}

func (b *MeterStatsRequest) layout(c *codec) {
	u32(c, &b.Meter, "ofp_meter_multipart_request.meter_id")
	c.pad(4)
}

func (b *MeterConfigRequest) layout(c *codec) {
	u32(c, &b.Meter, "ofp_meter_multipart_request.meter_id")
	c.pad(4)
}
