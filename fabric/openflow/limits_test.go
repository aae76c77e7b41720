package openflow

import (
	"bytes"
	"errors"
	"math"
	"net/netip"
	"runtime"
	"testing"
)

// filled is a message of 65,528 bytes or less: its first bytes, and then as many equal structures as there is space for.
func filled(start Message, structure ...byte) []byte {
	b, err := Append(nil, 1, start)
	if err != nil {
		panic(err)
	}
	b = append(b, bytes.Repeat(structure, (math.MaxUint16-len(b))/len(structure))...)
	b[2], b[3] = byte(len(b)>>8), byte(len(b))
	return b
}

// Messages of many small structures take little memory, whatever they are.
func TestMemory(t *testing.T) {
	reply := func(b ReplyBody) Message { return &MultipartReply{Body: b} }
	tables := filled(reply(&TableFeaturesList{[]TableFeatures{{}}}), 0, 2, 0, 4, 0, 0, 0, 0) // properties without content
	tables[16], tables[17] = byte((len(tables)-16)>>8), byte(len(tables)-16)
	match := filled(&PacketIn{}, 0x12, 0x34, 0, 0) // fields without a value
	match = append(match, make([]byte, 8-(len(match)-24)%8+2)...)
	match[2], match[3] = byte(len(match)>>8), byte(len(match))
	for name, b := range map[string][]byte{
		"hello elements":     filled(&Hello{Version: 4}, 0, 1, 0, 4, 0, 0, 0, 0),
		"buckets":            filled(&GroupMod{}, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"instructions":       filled(&FlowMod{}, 0, 5, 0, 8, 0, 0, 0, 0),
		"experimenters":      filled(&FlowMod{}, 255, 255, 0, 8, 0, 0, 0, 0),
		"bands":              filled(&MeterMod{}, 0, 9, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"meters":             filled(reply(&MeterConfigReply{}), 0, 8, 0, 0, 0, 0, 0, 0),
		"groups":             filled(reply(&GroupDescReply{}), 0, 8, 0, 0, 0, 0, 0, 0),
		"properties":         filled(&QueueGetConfigReply{}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0),
		"properties (table)": tables,
		"bundle properties":  filled(&BundleControl{}, 0, 0, 0, 4, 0, 0, 0, 0),
		"flows":              filled(reply(&FlowStatsReply{}), append(append([]byte{0, 56}, make([]byte, 46)...), 0, 1, 0, 4, 0, 0, 0, 0)...),
		"bytes":              filled(&EchoRequest{}, 1),
	} {
		if _, _, err := Decode(b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, m, _ := Decode(b)
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(m)
		times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(b))
		t.Logf("%s: %.1f times %d bytes", name, times, len(b))
		if times > 20 {
			t.Errorf("%s: allocated %.1f times the %d bytes of the message, want up to 20", name, times, len(b))
		}
	}
}

// What the format cannot express is refused when it is encoded, with the field and a remedy.
func TestEncodeErrors(t *testing.T) {
	const nothing = "cannot encode message: message: it is nil"
	for _, m := range []Message{nil, &BundleAdd{}} {
		if _, err := Append(nil, 1, m); err == nil || err.Error() != nothing {
			t.Errorf("%v: error %v, want %s", m, err, nothing)
		}
	}
	masked := SetField{EthDstMasked(MAC{1}, MAC{1})}
	for want, m := range map[string]Message{
		"cannot encode echo-request: ofp_header.length: 65536 bytes do not fit into a length of 16 bits (65535): divide the message": &EchoRequest{make([]byte, 65528)},
		"cannot encode packet-out: ofp_action_header.type: an action is nil":                                                         &PacketOut{Actions: Actions{nil}},
		"cannot encode packet-out: ofp_action_set_field.field: eth_dst has a mask: remove it":                                        &PacketOut{Actions: Actions{masked}},
		"cannot encode packet-out: ofp_action_header.len: 9 bytes are no multiple of 8":                                              &PacketOut{Actions: Actions{ExperimenterAction{Data: []byte{1}}}},
		"cannot encode packet-out: ofp_action_header.type: an action of type 22 is no UnknownAction: use that of group":              &PacketOut{Actions: Actions{UnknownAction{ActionGroup, make([]byte, 4)}}},
		"cannot encode flow-mod: ofp_match.oxm_fields: it has no value: make it with a constructor such as InPort":                   &FlowMod{Match: Match{{header: 4}}},
		"cannot encode flow-mod: ofp_match.oxm_fields: ipv4_dst has 0 bytes, want 4":                                                 &FlowMod{Match: Match{IPv4Dst(netip.MustParsePrefix("::/0"))}},
		"cannot encode flow-mod: ofp_instruction_header.type: an instruction is nil":                                                 &FlowMod{Instructions: Instructions{nil}},
		"cannot encode flow-mod: ofp_instruction_header.len: 65568 bytes do not fit into a length of 16 bits (65535): divide the message": &FlowMod{
			Instructions: Instructions{ApplyActions{make65536()}}},
		"cannot encode port-status: ofp_port.name: \"0123456789abcdef\" has 16 bytes: write up to 15 that are not zero":               &PortStatus{Port: Port{Name: "0123456789abcdef"}},
		"cannot encode port-status: ofp_port.name: \"a\\x00b\" has 3 bytes: write up to 15 that are not zero":                         &PortStatus{Port: Port{Name: "a\x00b"}},
		"cannot encode multipart-reply: ofp_multipart.body: it is nil":                                                                &MultipartReply{},
		"cannot encode error: ofp_error_msg.type: 0x1 has no experimenter":                                                            &Error{Kind: ErrBadRequest, Experimenter: 1},
		"cannot encode meter-mod: ofp_meter_band_header.type: a band is nil":                                                          &MeterMod{Bands: []Band{nil}},
		"cannot encode experimenter: onf_bundle_add_msg.message: a bundle contains no messages of bundles":                            &BundleAdd{Message: &BundleControl{}},
		"cannot encode experimenter: ofp_experimenter_header.exp_type: 2300 is a message of a bundle: use BundleControl or BundleAdd": &Experimenter{ONF, 2300, nil},
		"cannot encode table-features reply: ofp_table_feature_prop_header.type: a property of type 8 does not have these lists": &MultipartReply{
			Body: &TableFeaturesList{[]TableFeatures{{Properties: []TableProperty{{Kind: TableMatch, Tables: []TableID{1}}}}}}},
		"cannot encode flow-mod: ofp_header.type: a message of type 14 is no Unknown: use the structure of flow-mod": &Unknown{Kind: TypeFlowMod},
	} {
		b, err := Append([]byte("before"), 1, m)
		var encode *EncodeError
		if !errors.As(err, &encode) || err.Error() != want {
			t.Errorf("%#v: error %v, want %s", m, err, want)
		}
		if string(b) != "before" {
			t.Errorf("%s: %d bytes were appended", want, len(b)-6)
		}
	}
}

// make65536 is actions of 65,536 bytes and more.
func make65536() Actions {
	var all Actions
	for range 65560 / 8 {
		all = append(all, PopVLAN{})
	}
	return all
}

// Wrong lengths are refused with the message, the field and its offset.
func TestDecodeErrors(t *testing.T) {
	edit := func(m Message, change func(b []byte)) []byte {
		b, err := Append(nil, 1, m)
		if err != nil {
			t.Fatal(err)
		}
		change(b)
		return b
	}
	flow := &FlowMod{Match: Match{InPort(1)}, Instructions: Instructions{ApplyActions{Actions{Output{Port: 2}}}}}
	for want, b := range map[string][]byte{
		"cannot decode message: ofp_header at byte 0: 3 bytes, but a header has 8":                            {4, 0, 0},
		"cannot decode hello: ofp_header.length at byte 2: 7 bytes, but a header has 8":                       {4, 0, 0, 7, 0, 0, 0, 0},
		"cannot decode barrier-request: ofp_header.version at byte 0: version 1, want 4 (OpenFlow 1.3)":       {1, 20, 0, 8, 0, 0, 0, 0},
		"cannot decode barrier-request: ofp_header.length at byte 2: 9 bytes, but the message has 8":          {4, 20, 0, 9, 0, 0, 0, 0},
		"cannot decode barrier-request: ofp_header.length at byte 2: 9 bytes, 1 more than the message has":    {4, 20, 0, 9, 0, 0, 0, 0, 0},
		"cannot decode role-request: ofp_role_request.role at byte 8: the structure ends after 2 of 4 bytes":  {4, 24, 0, 10, 0, 0, 0, 0, 0, 0},
		"cannot decode flow-mod: ofp_match.type at byte 48: type 0, want 1 (OXM)":                             edit(flow, func(b []byte) { b[49] = 0 }),
		"cannot decode flow-mod: ofp_match.length at byte 50: 3 bytes, less than the 4 before and with it":    edit(flow, func(b []byte) { b[51] = 3 }),
		"cannot decode flow-mod: ofp_match.length at byte 50: 200 bytes, but only 40 remain":                  edit(flow, func(b []byte) { b[51] = 200 }),
		"cannot decode flow-mod: ofp_match.oxm_fields at byte 52: in_port has 2 bytes, want 4":                edit(flow, func(b []byte) { b[55], b[51] = 2, 10 }),
		"cannot decode flow-mod: ofp_instruction_header.len at byte 58: 20 bytes are no multiple of 8":        edit(&FlowMod{Instructions: Instructions{UnknownInstruction{9, make([]byte, 20)}}}, func(b []byte) { b[59] = 20 }),
		"cannot decode flow-mod: ofp_action_header.len at byte 74: 24 bytes, but only 16 remain":              edit(flow, func(b []byte) { b[75] = 24 }),
		"cannot decode flow-mod: ofp_action_output.max_len at byte 80: the structure ends after 0 of 2 bytes": edit(flow, func(b []byte) { b[75] = 8 }),
		"cannot decode packet-out: ofp_packet_out.actions_len at byte 16: 9 bytes, but only 8 remain":         edit(&PacketOut{Actions: Actions{PopVLAN{}}}, func(b []byte) { b[17] = 9 }),
	} {
		_, _, err := Decode(b)
		var decode *DecodeError
		if !errors.As(err, &decode) || err.Error() != want {
			t.Errorf("%x:\nerror %v\nwant  %s", b, err, want)
		}
	}
}
