package openflow

import (
	"fmt"
	"strings"
)

func (m *PortStatus) String() string {
	return fmt.Sprintf("port-status %s:%s", m.Reason, m.Port)
}

// String is such as "ADD".
func (r PortReason) String() string { return word(r, "ADD", "DEL", "MOD") }

// String is the port as ovs-ofctl prints it, in several lines.
func (p Port) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, " %s(%s): addr:%s\n     config:     %s\n     state:      %s\n", p.No, p.Name, p.HWAddr, p.Config, p.State)
	for _, f := range []struct {
		name     string
		features PortFeatures
	}{{"current:   ", p.Current}, {"advertised:", p.Advertised}, {"supported: ", p.Supported}, {"peer:      ", p.Peer}} {
		if f.features != 0 {
			fmt.Fprintf(&b, "     %s %s\n", f.name, f.features)
		}
	}
	fmt.Fprintf(&b, "     speed: %d Mbps now, %d Mbps max", p.CurrSpeed/1000, p.MaxSpeed/1000)
	return b.String()
}

// String is such as "PORT_DOWN NO_FWD".
func (c PortConfig) String() string {
	return bitNames(c, "PORT_DOWN", "", "NO_RECV", "", "", "NO_FWD", "NO_PACKET_IN")
}

// String is such as "LINK_DOWN".
func (s PortState) String() string { return bitNames(s, "LINK_DOWN", "BLOCKED", "LIVE") }

// String is such as "1GB-FD COPPER AUTO_NEG".
func (f PortFeatures) String() string {
	return bitNames(f, "10MB-HD", "10MB-FD", "100MB-HD", "100MB-FD", "1GB-HD", "1GB-FD", "10GB-FD", "40GB-FD", "100GB-FD", "1TB-FD",
		"OTHER", "COPPER", "FIBER", "AUTO_NEG", "AUTO_PAUSE", "AUTO_PAUSE_ASYM")
}

func (m *PortMod) String() string {
	advertise := "UNCHANGED"
	if m.Advertise != 0 {
		advertise = m.Advertise.String()
	}
	return fmt.Sprintf("port-mod port: %s: addr:%s\n     config: %s\n     mask:   %s\n     advertise: %s", m.No, m.HWAddr, m.Config, m.Mask, advertise)
}

// String is the number, or "ALL_TABLES".
func (t TableID) String() string {
	if t == AllTables {
		return "ALL_TABLES"
	}
	return fmt.Sprint(uint8(t))
}

func (m *TableMod) String() string {
	s := "table-mod table_id=" + m.Table.String()
	if m.Config != 0 {
		s += fmt.Sprintf(" config=%#x", m.Config)
	}
	return s
}

func (m *QueueGetConfigRequest) String() string {
	return fmt.Sprintf("queue-get-config-request port=%s", m.Port)
}

func (m *QueueGetConfigReply) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "queue-get-config-reply port=%s", m.Port)
	for _, q := range m.Queues {
		fmt.Fprintf(&b, "\nqueue %d:", q.ID)
		for _, p := range q.Properties {
			b.WriteString(" " + p.String())
		}
	}
	return b.String()
}

// String is such as "min_rate:10.5%".
func (p QueueProperty) String() string {
	name := word(p.Kind, "", "min_rate", "max_rate")
	switch {
	case p.Kind != QueueMinRate && p.Kind != QueueMaxRate:
		return fmt.Sprintf("property(%d,%#x,%x)", uint16(p.Kind), p.Experimenter, p.Body)
	case p.Rate > 1000:
		return name + ":(disabled)"
	}
	return fmt.Sprintf("%s:%d.%d%%", name, p.Rate/10, p.Rate%10)
}

// String is the id, or "ALL".
func (q QueueID) String() string {
	if q == AllQueues {
		return "ALL"
	}
	return fmt.Sprint(uint32(q))
}
