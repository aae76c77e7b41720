package openflow

func (b *FlowStatsReply) layout(c *codec)    { list(c, &b.Flows, (*codec).flowStats) }
func (b *TableStatsReply) layout(c *codec)   { list(c, &b.Tables, (*codec).tableStats) }
func (b *TableFeaturesList) layout(c *codec) { list(c, &b.Tables, (*codec).tableFeatures) }
func (b *PortStatsReply) layout(c *codec)    { list(c, &b.Ports, (*codec).portStats) }
func (b *QueueStatsReply) layout(c *codec)   { list(c, &b.Queues, (*codec).queueStats) }
func (b *GroupStatsReply) layout(c *codec)   { list(c, &b.Groups, (*codec).groupStats) }
func (b *GroupDescReply) layout(c *codec)    { list(c, &b.Groups, (*codec).groupDesc) }
func (b *MeterConfigReply) layout(c *codec)  { list(c, &b.Meters, (*codec).meterConfig) }
func (b *PortDescReply) layout(c *codec)     { list(c, &b.Ports, (*codec).port) }

func (b *MeterStatsReply) layout(c *codec) {
	again := !c.encoding && c.into == ReplyBody(b)
	if again {
		b.Meters, c.counted = b.Meters[:0], b.bands[:0]
	}
	list(c, &b.Meters, (*codec).meterCounters)
	if again {
		b.bands = c.counted
	}
}

func (b *Desc) layout(c *codec) {
	c.text(&b.Manufacturer, 256, "ofp_desc.mfr_desc")
	c.text(&b.Hardware, 256, "ofp_desc.hw_desc")
	c.text(&b.Software, 256, "ofp_desc.sw_desc")
	c.text(&b.SerialNum, 32, "ofp_desc.serial_num")
	c.text(&b.Datapath, 256, "ofp_desc.dp_desc")
}

func (c *codec) flowStats(p *FlowStats) {
	s := c.length(c.at(), "ofp_flow_stats.length")
	u8(c, &p.Table, "ofp_flow_stats.table_id")
	c.pad(1)
	c.duration(&p.Duration, "ofp_flow_stats.duration_sec")
	u16(c, &p.Priority, "ofp_flow_stats.priority")
	u16(c, &p.IdleTimeout, "ofp_flow_stats.idle_timeout")
	u16(c, &p.HardTimeout, "ofp_flow_stats.hard_timeout")
	u16(c, &p.Flags, "ofp_flow_stats.flags")
	c.pad(4)
	u64(c, &p.Cookie, "ofp_flow_stats.cookie")
	u64(c, &p.Packets, "ofp_flow_stats.packet_count")
	u64(c, &p.Bytes, "ofp_flow_stats.byte_count")
	c.match(&p.Match)
	c.instructions(&p.Instructions)
	c.close(s)
}

func (b *Aggregate) layout(c *codec) {
	u64(c, &b.Packets, "ofp_aggregate_stats_reply.packet_count")
	u64(c, &b.Bytes, "ofp_aggregate_stats_reply.byte_count")
	u32(c, &b.Flows, "ofp_aggregate_stats_reply.flow_count")
	c.pad(4)
}

func (c *codec) tableStats(p *TableStats) {
	u8(c, &p.Table, "ofp_table_stats.table_id")
	c.pad(3)
	u32(c, &p.Active, "ofp_table_stats.active_count")
	u64(c, &p.Lookups, "ofp_table_stats.lookup_count")
	u64(c, &p.Matched, "ofp_table_stats.matched_count")
}

func (c *codec) portStats(p *PortStats) {
	u32(c, &p.Port, "ofp_port_stats.port_no")
	c.pad(4)
	u64(c, &p.RxPackets, "ofp_port_stats.rx_packets")
	u64(c, &p.TxPackets, "ofp_port_stats.tx_packets")
	u64(c, &p.RxBytes, "ofp_port_stats.rx_bytes")
	u64(c, &p.TxBytes, "ofp_port_stats.tx_bytes")
	u64(c, &p.RxDropped, "ofp_port_stats.rx_dropped")
	u64(c, &p.TxDropped, "ofp_port_stats.tx_dropped")
	u64(c, &p.RxErrors, "ofp_port_stats.rx_errors")
	u64(c, &p.TxErrors, "ofp_port_stats.tx_errors")
	u64(c, &p.RxFrameErr, "ofp_port_stats.rx_frame_err")
	u64(c, &p.RxOverErr, "ofp_port_stats.rx_over_err")
	u64(c, &p.RxCRCErr, "ofp_port_stats.rx_crc_err")
	u64(c, &p.Collisions, "ofp_port_stats.collisions")
	c.duration(&p.Duration, "ofp_port_stats.duration_sec")
}

func (c *codec) queueStats(p *QueueStats) {
	u32(c, &p.Port, "ofp_queue_stats.port_no")
	u32(c, &p.Queue, "ofp_queue_stats.queue_id")
	u64(c, &p.TxBytes, "ofp_queue_stats.tx_bytes")
	u64(c, &p.TxPackets, "ofp_queue_stats.tx_packets")
	u64(c, &p.TxErrors, "ofp_queue_stats.tx_errors")
	c.duration(&p.Duration, "ofp_queue_stats.duration_sec")
}

func (c *codec) counter(p *Counter) {
	u64(c, &p.Packets, "ofp_bucket_counter.packet_count")
	u64(c, &p.Bytes, "ofp_bucket_counter.byte_count")
}

// counters is counters to the end of a structure, after its first bytes. Those of a message share memory: a switch with 20 meters took 21 allocations for
// each reading.
func (c *codec) counters(p *[]Counter, before int) {
	const size = 16 // struct ofp_bucket_counter, struct ofp_meter_band_stats
	if n := (c.end - c.off) / size; !c.encoding && n > 0 {
		if cap(c.counted)-len(c.counted) < n {
			alike := 1 + (len(c.b)-c.end)/(before+n*size) // structures, as most have as many
			c.counted = make([]Counter, 0, n*alike)
		}
		at := len(c.counted)
		c.counted = c.counted[:at+n]
		*p = c.counted[at : at : at+n]
	}
	list(c, p, (*codec).counter)
}

func (c *codec) groupStats(p *GroupStats) {
	s := c.length(c.at(), "ofp_group_stats.length")
	c.pad(2)
	u32(c, &p.Group, "ofp_group_stats.group_id")
	u32(c, &p.RefCount, "ofp_group_stats.ref_count")
	c.pad(4)
	u64(c, &p.Packets, "ofp_group_stats.packet_count")
	u64(c, &p.Bytes, "ofp_group_stats.byte_count")
	c.duration(&p.Duration, "ofp_group_stats.duration_sec")
	c.counters(&p.Buckets, c.off-s.start)
	c.close(s)
}

func (c *codec) groupDesc(p *GroupDesc) {
	s := c.length(c.at(), "ofp_group_desc.length")
	u8(c, &p.Kind, "ofp_group_desc.type")
	c.pad(1)
	u32(c, &p.Group, "ofp_group_desc.group_id")
	list(c, &p.Buckets, (*codec).bucket)
	c.close(s)
}

func (b *GroupFeatures) layout(c *codec) {
	u32(c, &b.Types, "ofp_group_features.types")
	u32(c, &b.Capabilities, "ofp_group_features.capabilities")
	for i := range b.MaxGroups {
		u32(c, &b.MaxGroups[i], "ofp_group_features.max_groups")
	}
	for i := range b.Actions {
		u32(c, &b.Actions[i], "ofp_group_features.actions")
	}
}

func (c *codec) meterCounters(p *MeterCounters) {
	start := c.at()
	u32(c, &p.Meter, "ofp_meter_stats.meter_id")
	s := c.length(start, "ofp_meter_stats.len")
	c.pad(6)
	u32(c, &p.Flows, "ofp_meter_stats.flow_count")
	u64(c, &p.Packets, "ofp_meter_stats.packet_in_count")
	u64(c, &p.Bytes, "ofp_meter_stats.byte_in_count")
	c.duration(&p.Duration, "ofp_meter_stats.duration_sec")
	c.counters(&p.Bands, c.off-s.start)
	c.close(s)
}

func (c *codec) meterConfig(p *MeterConfig) {
	s := c.length(c.at(), "ofp_meter_config.length")
	u16(c, &p.Flags, "ofp_meter_config.flags")
	u32(c, &p.Meter, "ofp_meter_config.meter_id")
	list(c, &p.Bands, (*codec).band)
	c.close(s)
}

func (b *MeterFeatures) layout(c *codec) {
	u32(c, &b.MaxMeters, "ofp_meter_features.max_meter")
	u32(c, &b.BandTypes, "ofp_meter_features.band_types")
	u32(c, &b.Capabilities, "ofp_meter_features.capabilities")
	u8(c, &b.MaxBands, "ofp_meter_features.max_bands")
	u8(c, &b.MaxColor, "ofp_meter_features.max_color")
	c.pad(2)
}
