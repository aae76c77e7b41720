package openflow

import (
	"fmt"
	"strings"
)

func (m *FlowMod) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "flow-mod %s ", word(m.Command, "ADD", "MOD", "MOD_STRICT", "DEL", "DEL_STRICT"))
	if m.Table != 0 {
		fmt.Fprintf(&b, "table:%d ", m.Table)
	}
	if r := rule(m.Priority, m.Match); r != "" {
		b.WriteString(r + " ")
	}
	switch {
	case m.CookieMask != 0:
		fmt.Fprintf(&b, "cookie:%#x/%#x ", m.Cookie, m.CookieMask)
	case m.Command == FlowAdd && m.Cookie != 0 && m.Cookie != ^uint64(0): // all ones is no cookie; others only select
		fmt.Fprintf(&b, "cookie:%#x ", m.Cookie)
	}
	if m.IdleTimeout != 0 {
		fmt.Fprintf(&b, "idle:%d ", m.IdleTimeout)
	}
	if m.HardTimeout != 0 {
		fmt.Fprintf(&b, "hard:%d ", m.HardTimeout)
	}
	if m.Buffer != NoBuffer {
		fmt.Fprintf(&b, "buf:%#x ", m.Buffer)
	}
	if m.OutPort != PortAny {
		fmt.Fprintf(&b, "out_port:%s ", m.OutPort)
	}
	if m.OutGroup != GroupAny {
		fmt.Fprintf(&b, "out_group:%d ", m.OutGroup)
	}
	if m.Flags != 0 {
		b.WriteString(m.Flags.String() + " ")
	}
	return b.String() + "actions=" + m.Instructions.String()
}

// String is such as "send_flow_rem check_overlap".
func (f FlowFlags) String() string {
	return bitNames(f, "send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts")
}

// String is such as "1.5s".
func (d Duration) String() string {
	if d.Nsec == 0 {
		return fmt.Sprintf("%ds", d.Sec)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%09d", d.Sec, d.Nsec), "0") + "s"
}

func (m *FlowRemoved) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "flow-removed %s reason=%s ", rule(m.Priority, m.Match), m.Reason)
	if m.Table != AllTables {
		fmt.Fprintf(&b, "table_id=%d ", m.Table)
	}
	if m.Cookie != 0 {
		fmt.Fprintf(&b, "cookie:%#x ", m.Cookie)
	}
	fmt.Fprintf(&b, "duration%s idle%d ", m.Duration, m.IdleTimeout)
	if m.HardTimeout != 0 {
		fmt.Fprintf(&b, "hard%d ", m.HardTimeout)
	}
	fmt.Fprintf(&b, "pkts%d bytes%d", m.Packets, m.Bytes)
	return b.String()
}

// String is such as "idle".
func (r FlowRemovedReason) String() string {
	return word(r, "idle", "hard", "delete", "group_delete")
}

func (m *PacketIn) String() string {
	var b strings.Builder
	b.WriteString("packet-in ")
	if m.Table != 0 {
		fmt.Fprintf(&b, "table_id=%d ", m.Table)
	}
	if m.Cookie != ^uint64(0) {
		fmt.Fprintf(&b, "cookie=%#x ", m.Cookie)
	}
	fmt.Fprintf(&b, "total_len=%d %s (via %s) data_len=%d ", m.TotalLen, m.Match, m.Reason, len(m.Data))
	if m.Buffer == NoBuffer {
		b.WriteString("(unbuffered)")
	} else {
		fmt.Fprintf(&b, "buffer=0x%08x", m.Buffer)
	}
	return b.String()
}

// String is such as "no_match".
func (r PacketInReason) String() string {
	return word(r, "no_match", "action", "invalid_ttl")
}

func (m *PacketOut) String() string {
	s := fmt.Sprintf("packet-out in_port=%s actions=%s ", m.InPort, m.Actions)
	if m.Buffer == NoBuffer {
		return s + fmt.Sprintf("data_len=%d", len(m.Data))
	}
	return s + fmt.Sprintf("buffer=0x%08x", m.Buffer)
}

func (m *GroupMod) String() string {
	s := fmt.Sprintf("group-mod %s group_id=%s", word(m.Command, "ADD", "MOD", "DEL"), m.Group)
	return s + buckets(m.Kind, m.Buckets)
}

// String is the number, or "ALL" or "ANY".
func (g GroupID) String() string {
	switch g {
	case GroupAll:
		return "ALL"
	case GroupAny:
		return "ANY"
	}
	return fmt.Sprint(uint32(g))
}

// String is such as "select".
func (t GroupType) String() string { return word(t, "all", "select", "indirect", "ff") }

func buckets(t GroupType, all []Bucket) string {
	var s strings.Builder
	s.WriteString(",type=" + t.String())
	for _, b := range all {
		s.WriteString(",bucket=")
		if b.Weight != 0 && (b.Weight != 1 || t != GroupTypeSelect) {
			fmt.Fprintf(&s, "weight:%d,", b.Weight)
		}
		if b.WatchPort != PortAny {
			fmt.Fprintf(&s, "watch_port:%s,", b.WatchPort)
		}
		if b.WatchGroup != GroupAny {
			fmt.Fprintf(&s, "watch_group:%d,", b.WatchGroup)
		}
		s.WriteString("actions=" + b.Actions.String())
	}
	return s.String()
}

func (m *MeterMod) String() string {
	s := fmt.Sprintf("meter-mod %s meter=%s", word(m.Command, "ADD", "MOD", "DEL"), m.Meter)
	return s + " " + bands(m.Flags, m.Bands)
}

// String is the number, or a name such as "controller".
func (m MeterID) String() string {
	switch m {
	case MeterSlowPath:
		return "slowpath"
	case MeterController:
		return "controller"
	case MeterAll:
		return "all"
	}
	return fmt.Sprint(uint32(m))
}

// String is such as "kbps burst stats".
func (f MeterFlags) String() string { return bitNames(f, "kbps", "pktps", "burst", "stats") }

func bands(f MeterFlags, all []Band) string {
	s := "bands="
	if f != 0 {
		s = f.String() + " " + s
	}
	for _, b := range all {
		s += "\ntype=" + b.Type().String() + " " + b.text(f)
	}
	return s
}

// text is the rate, and the burst if it is in force.
func (l BandLimit) text(f MeterFlags) string {
	s := fmt.Sprintf("rate=%d", l.Rate)
	if f&MeterBurst != 0 {
		s += fmt.Sprintf(" burst_size=%d", l.Burst)
	}
	return s
}

func (b DSCPRemarkBand) text(f MeterFlags) string {
	return fmt.Sprintf("%s prec_level=%d", b.BandLimit.text(f), b.Levels)
}

func (b ExperimenterBand) text(f MeterFlags) string {
	return fmt.Sprintf("%s experimenter=%#x data=%x", b.BandLimit.text(f), b.Experimenter, b.Data)
}

func (b UnknownBand) text(f MeterFlags) string {
	return fmt.Sprintf("%s body=%x", b.BandLimit.text(f), b.Body)
}
