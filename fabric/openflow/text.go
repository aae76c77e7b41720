package openflow

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// The text of messages follows that of ovs-ofctl, without the names of types and the transaction id.

func (m *Unknown) String() string {
	return fmt.Sprintf("%s %s", m.Kind, hex.EncodeToString(m.Body))
}

func (m *Hello) String() string { return "hello " + m.versions() }

// versions lists the wire versions of a bitmap, or says that there is none.
func (m *Hello) versions() string {
	if m.bitmap() == nil {
		return fmt.Sprintf("versions up to 0x%02x", m.Version)
	}
	var all []string
	for v := range 256 {
		if m.supports(uint8(v)) {
			all = append(all, fmt.Sprintf("0x%02x", v))
		}
	}
	return "version bitmap: " + strings.Join(all, ", ")
}

func (m *Error) String() string {
	if m.Kind == ErrHelloFailed {
		return fmt.Sprintf("error %s %q", m.Name(), m.Data)
	}
	if _, refused, err := Decode(m.Data); err == nil {
		return "error " + m.Name() + " " + refused.String()
	}
	return "error " + m.Name() + " " + hex.EncodeToString(m.Data)
}

func (m *EchoRequest) String() string {
	return fmt.Sprintf("echo-request %d bytes of payload", len(m.Data))
}

func (m *EchoReply) String() string {
	return fmt.Sprintf("echo-reply %d bytes of payload", len(m.Data))
}

func (m *Experimenter) String() string {
	return fmt.Sprintf("experimenter %#x type %d %s", m.Experimenter, m.ExpType, hex.EncodeToString(m.Data))
}

var bundleControls = []string{"OPEN_REQUEST", "OPEN_REPLY", "CLOSE_REQUEST", "CLOSE_REPLY", "COMMIT_REQUEST", "COMMIT_REPLY", "DISCARD_REQUEST", "DISCARD_REPLY"}

func (m *BundleControl) String() string {
	return fmt.Sprintf("bundle-control bundle_id=%s type=%s flags=%s", hexadecimal(m.ID), word(m.Control, bundleControls...), m.Flags)
}

func (m *BundleAdd) String() string {
	return fmt.Sprintf("bundle-add bundle_id=%s flags=%s %v", hexadecimal(m.ID), m.Flags, m.Message)
}

// String is such as "atomic ordered".
func (f BundleFlags) String() string { return bitNames(f, "atomic", "ordered") }

func (m *BarrierRequest) String() string   { return "barrier-request" }
func (m *BarrierReply) String() string     { return "barrier-reply" }
func (m *FeaturesRequest) String() string  { return "features-request" }
func (m *GetConfigRequest) String() string { return "get-config-request" }
func (m *GetAsyncRequest) String() string  { return "get-async-request" }

func (m *FeaturesReply) String() string {
	s := fmt.Sprintf("features-reply dpid:%016x n_tables:%d, n_buffers:%d", m.DatapathID, m.Tables, m.Buffers)
	if m.AuxiliaryID != 0 {
		s += fmt.Sprintf(", auxiliary_id:%d", m.AuxiliaryID)
	}
	return s + " capabilities: " + m.Capabilities.String()
}

// String is such as "FLOW_STATS GROUP_STATS".
func (c Capabilities) String() string {
	return bitNames(c, "FLOW_STATS", "TABLE_STATS", "PORT_STATS", "GROUP_STATS", "", "IP_REASM", "QUEUE_STATS", "", "PORT_BLOCKED")
}

func (m *GetConfigReply) String() string { return "get-config-reply " + m.Config.String() }
func (m *SetConfig) String() string      { return "set-config " + m.Config.String() }

func (m *Config) String() string {
	return fmt.Sprintf("frags=%s miss_send_len=%d", word(m.Flags, "normal", "drop", "reassemble"), m.MissSendLen)
}

func (m *RoleRequest) String() string {
	if m.Role.Role == RoleNoChange {
		return "role-request role=nochange"
	}
	return "role-request " + m.Role.String()
}

func (m *RoleReply) String() string { return "role-reply " + m.Role.String() }

func (m *Role) String() string {
	s := "role=" + m.Role.String()
	if m.GenerationID != ^uint64(0) { // which means that there is none
		s += fmt.Sprintf(" generation_id=%d", m.GenerationID)
	}
	return s
}

// String is such as "master".
func (r ControllerRole) String() string {
	return word(r, "nochange", "equal", "master", "slave")
}

func (m *GetAsyncReply) String() string { return "get-async-reply " + m.Async.String() }
func (m *SetAsync) String() string      { return "set-async " + m.Async.String() }

func (m *Async) String() string {
	var b strings.Builder
	for i, role := range []string{"master", "slave"} {
		fmt.Fprintf(&b, "%s: PACKET_IN: %s PORT_STATUS: %s FLOW_REMOVED: %s ", role,
			reasons(m.PacketIn[i], "no_match", "action", "invalid_ttl"), reasons(m.PortStatus[i], "add", "delete", "modify"),
			reasons(m.FlowRemoved[i], "idle", "hard", "delete", "group_delete"))
	}
	return strings.TrimSpace(b.String())
}

// reasons lists the bits of a mask of reasons, or is "(off)".
func reasons(mask uint32, words ...string) string {
	if mask == 0 {
		return "(off)"
	}
	return bitNames(mask, words...)
}

// word is one of the words for 0, 1 and so on, or the number.
func word[T ~uint8 | ~uint16 | ~uint32](v T, words ...string) string {
	if int64(v) < int64(len(words)) {
		return words[v]
	}
	return fmt.Sprint(uint32(v))
}

// hexadecimal is "0" or such as "0x1f".
func hexadecimal[T ~uint32 | ~uint64](v T) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%#x", uint64(v))
}

// bitNames lists the bits of a mask by name, and the others as a number, or is "0".
func bitNames[T ~uint16 | ~uint32](mask T, words ...string) string {
	var all []string
	for i, word := range words {
		if bit := T(1) << i; mask&bit != 0 && word != "" {
			all = append(all, word)
			mask &^= bit
		}
	}
	if mask != 0 {
		all = append(all, fmt.Sprintf("%#x", uint32(mask)))
	}
	if all == nil {
		return "0"
	}
	return strings.Join(all, " ")
}
