package openflow

// The bodies of multipart replies (section 7.3.5).

// Desc describes a switch in words (struct ofp_desc, section 7.3.5.1). Each has up to 255 bytes, SerialNum up to 31.
type Desc struct {
	Manufacturer string
	Hardware     string
	Software     string
	SerialNum    string
	Datapath     string
}

// FlowStatsReply has flows with their counters.
type FlowStatsReply struct{ Flows []FlowStats }

// FlowStats is a flow with its counters (struct ofp_flow_stats, section 7.3.5.2).
type FlowStats struct {
	Table        TableID
	Duration     Duration
	Priority     uint16
	IdleTimeout  uint16 // seconds
	HardTimeout  uint16 // seconds
	Flags        FlowFlags
	Cookie       uint64
	Packets      uint64
	Bytes        uint64
	Match        Match
	Instructions Instructions
}

// Aggregate is the sum of counters of flows (struct ofp_aggregate_stats_reply, section 7.3.5.3).
type Aggregate struct {
	Packets uint64
	Bytes   uint64
	Flows   uint32
}

// TableStatsReply has counters of tables.
type TableStatsReply struct{ Tables []TableStats }

// TableStats is counters of a table (struct ofp_table_stats, section 7.3.5.4).
type TableStats struct {
	Table   TableID
	Active  uint32 // flows
	Lookups uint64 // packets
	Matched uint64 // packets that matched a flow
}

// TableFeaturesList has the features of tables (section 7.3.5.5). In a reply it is what they can do; in a request it
// changes that, or asks for it if it is empty.
type TableFeaturesList struct{ Tables []TableFeatures }

// PortStatsReply has counters of ports.
type PortStatsReply struct{ Ports []PortStats }

// PortStats is counters of a port (struct ofp_port_stats, section 7.3.5.6). Counters that the switch does not have
// are all ones.
type PortStats struct {
	Port                 PortNo
	RxPackets, TxPackets uint64
	RxBytes, TxBytes     uint64
	RxDropped, TxDropped uint64
	RxErrors, TxErrors   uint64
	RxFrameErr           uint64
	RxOverErr            uint64
	RxCRCErr             uint64
	Collisions           uint64
	Duration             Duration
}

// QueueStatsReply has counters of queues.
type QueueStatsReply struct{ Queues []QueueStats }

// QueueStats is counters of a queue (struct ofp_queue_stats, section 7.3.5.8).
type QueueStats struct {
	Port      PortNo
	Queue     QueueID
	TxBytes   uint64
	TxPackets uint64
	TxErrors  uint64 // dropped packets
	Duration  Duration
}

// GroupStatsReply has counters of groups.
type GroupStatsReply struct{ Groups []GroupStats }

// GroupStats is counters of a group (struct ofp_group_stats, section 7.3.5.9).
type GroupStats struct {
	Group    GroupID
	RefCount uint32 // flows and groups that use the group
	Packets  uint64
	Bytes    uint64
	Duration Duration
	Buckets  []Counter
}

// Counter is packets and bytes of a bucket or a band (struct ofp_bucket_counter, struct ofp_meter_band_stats).
type Counter struct{ Packets, Bytes uint64 }

// GroupDescReply has groups with their buckets.
type GroupDescReply struct{ Groups []GroupDesc }

// GroupDesc is a group with its buckets (struct ofp_group_desc, section 7.3.5.10).
type GroupDesc struct {
	Kind    GroupType
	Group   GroupID
	Buckets []Bucket
}

// GroupFeatures is which groups a switch can have (struct ofp_group_features, section 7.3.5.11).
type GroupFeatures struct {
	Types        uint32    // bit n is GroupType n
	Capabilities uint32    // enum ofp_group_capabilities
	MaxGroups    [4]uint32 // by GroupType
	Actions      [4]uint32 // by GroupType; bit n is ActionType n
}

// MeterStatsReply has counters of meters.
type MeterStatsReply struct {
	Meters []MeterCounters
	bands  []Counter // memory for those of Meters, after DecodeInto
}

// MeterCounters is counters of a meter (struct ofp_meter_stats, section 7.3.5.12).
type MeterCounters struct {
	Meter    MeterID
	Flows    uint32
	Packets  uint64 // that passed through the meter, with those above its rates
	Bytes    uint64
	Duration Duration
	Bands    []Counter // packets and bytes above the rate of each band
}

// MeterConfigReply has meters with their bands.
type MeterConfigReply struct{ Meters []MeterConfig }

// MeterConfig is a meter with its bands (struct ofp_meter_config, section 7.3.5.13).
type MeterConfig struct {
	Flags MeterFlags
	Meter MeterID
	Bands []Band
}

// MeterFeatures is which meters a switch can have (struct ofp_meter_features, section 7.3.5.14).
type MeterFeatures struct {
	MaxMeters    uint32
	BandTypes    uint32 // bit n is BandType n
	Capabilities uint32 // bits as MeterFlags
	MaxBands     uint8  // of a meter
	MaxColor     uint8
}

// PortDescReply has the ports of a switch (section 7.3.5.7).
type PortDescReply struct{ Ports []Port }

// Kind is MultipartDesc.
func (*Desc) Kind() MultipartType { return MultipartDesc }

// Kind is MultipartFlow.
func (*FlowStatsReply) Kind() MultipartType { return MultipartFlow }

// Kind is MultipartAggregate.
func (*Aggregate) Kind() MultipartType { return MultipartAggregate }

// Kind is MultipartTable.
func (*TableStatsReply) Kind() MultipartType { return MultipartTable }

// Kind is MultipartTableFeatures.
func (*TableFeaturesList) Kind() MultipartType { return MultipartTableFeatures }

// Kind is MultipartPortStats.
func (*PortStatsReply) Kind() MultipartType { return MultipartPortStats }

// Kind is MultipartQueue.
func (*QueueStatsReply) Kind() MultipartType { return MultipartQueue }

// Kind is MultipartGroup.
func (*GroupStatsReply) Kind() MultipartType { return MultipartGroup }

// Kind is MultipartGroupDesc.
func (*GroupDescReply) Kind() MultipartType { return MultipartGroupDesc }

// Kind is MultipartGroupFeatures.
func (*GroupFeatures) Kind() MultipartType { return MultipartGroupFeatures }

// Kind is MultipartMeter.
func (*MeterStatsReply) Kind() MultipartType { return MultipartMeter }

// Kind is MultipartMeterConfig.
func (*MeterConfigReply) Kind() MultipartType { return MultipartMeterConfig }

// Kind is MultipartMeterFeatures.
func (*MeterFeatures) Kind() MultipartType { return MultipartMeterFeatures }

// Kind is MultipartPortDesc.
func (*PortDescReply) Kind() MultipartType { return MultipartPortDesc }

func (*Desc) reply()              {}
func (*FlowStatsReply) reply()    {}
func (*Aggregate) reply()         {}
func (*TableStatsReply) reply()   {}
func (*TableFeaturesList) reply() {}
func (*PortStatsReply) reply()    {}
func (*QueueStatsReply) reply()   {}
func (*GroupStatsReply) reply()   {}
func (*GroupDescReply) reply()    {}
func (*GroupFeatures) reply()     {}
func (*MeterStatsReply) reply()   {}
func (*MeterConfigReply) reply()  {}
func (*MeterFeatures) reply()     {}
func (*PortDescReply) reply()     {}
