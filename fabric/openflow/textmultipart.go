package openflow

import (
	"fmt"
	"strings"
)

func (m *MultipartRequest) String() string { return multipartText("request", m.More, m.Body) }
func (m *MultipartReply) String() string   { return multipartText("reply", m.More, m.Body) }

func multipartText(what string, more bool, b body) string {
	if b == nil {
		return what + " without a body"
	}
	s := b.Kind().String() + " " + what
	if more {
		s += " (more)"
	}
	if t := b.String(); t != "" {
		s += " " + t
	}
	return s
}

func (b *ExperimenterMultipart) String() string {
	return fmt.Sprintf("experimenter %#x type %d %x", b.Experimenter, b.ExpType, b.Data)
}
func (b *UnknownMultipart) String() string { return fmt.Sprintf("%x", b.Data) }

func (*DescRequest) String() string          { return "" }
func (*TableStatsRequest) String() string    { return "" }
func (*GroupDescRequest) String() string     { return "" }
func (*GroupFeaturesRequest) String() string { return "" }
func (*MeterFeaturesRequest) String() string { return "" }
func (*PortDescRequest) String() string      { return "" }

func (b *PortStatsRequest) String() string { return "port_no=" + b.Port.String() }

func (b *QueueStatsRequest) String() string {
	return fmt.Sprintf("port=%s queue=%s", b.Port, b.Queue)
}

func (b *GroupStatsRequest) String() string  { return "group_id=" + b.Group.String() }
func (b *MeterStatsRequest) String() string  { return "meter=" + b.Meter.String() }
func (b *MeterConfigRequest) String() string { return "meter=" + b.Meter.String() }

func (f *FlowFilter) String() string {
	var words []string
	if f.Table != AllTables {
		words = append(words, fmt.Sprintf("table=%d", f.Table))
	}
	if f.OutPort != PortAny {
		words = append(words, "out_port="+f.OutPort.String())
	}
	if f.OutGroup != GroupAny {
		words = append(words, "out_group="+f.OutGroup.String())
	}
	if f.CookieMask != 0 {
		words = append(words, fmt.Sprintf("cookie=%#x/%#x", f.Cookie, f.CookieMask))
	}
	if len(f.Match) > 0 {
		words = append(words, f.Match.String())
	}
	return strings.Join(words, " ")
}

func (b *Desc) String() string {
	return fmt.Sprintf("\nManufacturer: %s\nHardware: %s\nSoftware: %s\nSerial Num: %s\nDP Description: %s",
		b.Manufacturer, b.Hardware, b.Software, b.SerialNum, b.Datapath)
}

// lines are the texts of a list, each on a line of its own.
func lines[T fmt.Stringer](all []T) string {
	var b strings.Builder
	for _, v := range all {
		b.WriteString("\n" + v.String())
	}
	return b.String()
}

func (b *FlowStatsReply) String() string { return lines(b.Flows) }

func (f FlowStats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cookie=%#x, duration=%s, table=%d, n_packets=%s, n_bytes=%s, ", f.Cookie, f.Duration, f.Table, count(f.Packets), count(f.Bytes))
	if f.IdleTimeout != 0 {
		fmt.Fprintf(&b, "idle_timeout=%d, ", f.IdleTimeout)
	}
	if f.HardTimeout != 0 {
		fmt.Fprintf(&b, "hard_timeout=%d, ", f.HardTimeout)
	}
	if f.Flags != 0 {
		b.WriteString(f.Flags.String() + " ")
	}
	if r := rule(f.Priority, f.Match); r != "" {
		b.WriteString(r + " ")
	}
	return b.String() + "actions=" + f.Instructions.String()
}

func (b *Aggregate) String() string {
	return fmt.Sprintf("packet_count=%d byte_count=%d flow_count=%d", b.Packets, b.Bytes, b.Flows)
}

func (b *TableStatsReply) String() string { return lines(b.Tables) }

func (t TableStats) String() string {
	return fmt.Sprintf("table %d: active=%d, lookup=%d, matched=%d", t.Table, t.Active, t.Lookups, t.Matched)
}

func (b *PortStatsReply) String() string {
	return fmt.Sprintf("%d ports", len(b.Ports)) + lines(b.Ports)
}

// count is a counter of a port, or "?" if the switch does not have it.
func count(v uint64) string {
	if v == ^uint64(0) {
		return "?"
	}
	return fmt.Sprint(v)
}

func (p PortStats) String() string {
	return fmt.Sprintf("port %s: rx pkts=%s, bytes=%s, drop=%s, errs=%s, frame=%s, over=%s, crc=%s\ntx pkts=%s, bytes=%s, drop=%s, errs=%s, coll=%s\nduration=%s",
		p.Port, count(p.RxPackets), count(p.RxBytes), count(p.RxDropped), count(p.RxErrors), count(p.RxFrameErr), count(p.RxOverErr), count(p.RxCRCErr),
		count(p.TxPackets), count(p.TxBytes), count(p.TxDropped), count(p.TxErrors), count(p.Collisions), p.Duration)
}

func (b *QueueStatsReply) String() string {
	return fmt.Sprintf("%d queues", len(b.Queues)) + lines(b.Queues)
}

func (q QueueStats) String() string {
	return fmt.Sprintf("port %s queue %s: bytes=%s, pkts=%s, errors=%s, duration=%s", q.Port, q.Queue, count(q.TxBytes), count(q.TxPackets), count(q.TxErrors), q.Duration)
}

func (b *GroupStatsReply) String() string { return lines(b.Groups) }

func (g GroupStats) String() string {
	s := fmt.Sprintf("group_id=%s,duration=%s,ref_count=%d,packet_count=%d,byte_count=%d", g.Group, g.Duration, g.RefCount, g.Packets, g.Bytes)
	for i, b := range g.Buckets {
		if b.Packets == ^uint64(0) {
			continue // the switch does not have it
		}
		s += fmt.Sprintf(",bucket%d:packet_count=%d,byte_count=%d", i, b.Packets, b.Bytes)
	}
	return s
}

func (b *GroupDescReply) String() string { return lines(b.Groups) }

func (g GroupDesc) String() string {
	return "group_id=" + g.Group.String() + buckets(g.Kind, g.Buckets)
}

func (b *GroupFeatures) String() string {
	s := fmt.Sprintf("Group table:\nTypes: %#x\nCapabilities: %#x", b.Types, b.Capabilities)
	for i := range b.MaxGroups {
		if b.Types>>i&1 == 1 {
			s += fmt.Sprintf("\n%s group:\nmax_groups=%s\nactions: %s", word(uint8(i), "all", "select", "indirect", "fast failover"), hexadecimal(b.MaxGroups[i]), actionBits(b.Actions[i]))
		}
	}
	return s
}

// actionBits lists the actions of a bitmap.
func actionBits(mask uint32) string {
	words := make([]string, 32)
	for i := range words {
		if a, ok := actionTypes[ActionType(i)]; ok {
			words[i] = a.name
		}
	}
	return bitNames(mask, words...)
}

func (b *MeterStatsReply) String() string { return lines(b.Meters) }

func (m MeterCounters) String() string {
	s := fmt.Sprintf("meter:%s flow_count:%d packet_in_count:%d byte_in_count:%d duration:%s bands:", m.Meter, m.Flows, m.Packets, m.Bytes, m.Duration)
	for i, b := range m.Bands {
		s += fmt.Sprintf("\n%d: packet_count:%d byte_count:%d", i, b.Packets, b.Bytes)
	}
	return s
}

func (b *MeterConfigReply) String() string { return lines(b.Meters) }

func (m MeterConfig) String() string {
	return "meter=" + m.Meter.String() + " " + bands(m.Flags, m.Bands)
}

func (b *MeterFeatures) String() string {
	return fmt.Sprintf("max_meter:%d max_bands:%d max_color:%d band_types: %s capabilities: %s", b.MaxMeters, b.MaxBands, b.MaxColor,
		bitNames(b.BandTypes, "", "drop", "dscp_remark"), bitNames(b.Capabilities, "kbps", "pktps", "burst", "stats"))
}

func (b *PortDescReply) String() string     { return lines(b.Ports) }
func (b *TableFeaturesList) String() string { return lines(b.Tables) }
