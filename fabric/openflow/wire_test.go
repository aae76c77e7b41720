package openflow

import (
	"encoding/hex"
	"strings"
	"testing"
)

// The bytes of what ovs-ofctl does not print. os-ken gives the bytes back even if two fields of one size are
// exchanged. Headers are left out.
func TestWire(t *testing.T) {
	const none = "ffffffff"
	for _, c := range []struct {
		m    Message
		want string // hexadecimal, with blanks between fields
	}{
		{&FlowMod{Cookie: 1, CookieMask: 2, Table: 3, Command: FlowDelete, IdleTimeout: 5, HardTimeout: 6, Priority: 7, Buffer: 8, OutPort: 9, OutGroup: 10, Flags: 11},
			"0000000000000001 0000000000000002 03 03 0005 0006 0007 00000008 00000009 0000000a 000b 0000 0001 0004 00000000"},
		{&MultipartRequest{Body: &FlowStatsRequest{FlowFilter{Table: 1, OutPort: 2, OutGroup: 3, Cookie: 4, CookieMask: 5}}},
			"0001 0000 00000000 01 000000 00000002 00000003 00000000 0000000000000004 0000000000000005 0001 0004 00000000"},
		{&MultipartRequest{More: true, Body: &AggregateRequest{AllFlows()}},
			"0002 0001 00000000 ff 000000" + none + none + "00000000 0000000000000000 0000000000000000 0001 0004 00000000"},
		{&FeaturesReply{DatapathID: 1, Buffers: 2, Tables: 3, AuxiliaryID: 4, Capabilities: CapPortBlocked, Reserved: 5},
			"0000000000000001 00000002 03 04 0000 00000100 00000005"},
		{&TableMod{Table: AllTables, Config: 3}, "ff 000000 00000003"},
		{&PortMod{No: 1, HWAddr: MAC{2}, Config: PortDown, Mask: PortNoFwd, Advertise: Feature10GbFD},
			"00000001 00000000 020000000000 0000 00000001 00000020 00000040 00000000"},
		{&QueueGetConfigReply{Port: 1, Queues: []Queue{{ID: 2, Port: 3, Properties: []QueueProperty{
			{Kind: QueueExperimenter, Experimenter: 4, Body: []byte("12345678")}}}}},
			"00000001 00000000 00000002 00000003 0028 000000000000 ffff 0018 00000000 00000004 00000000 3132333435363738"},
		{&PacketOut{Buffer: NoBuffer, InPort: PortController, Actions: Actions{Output{3, 4}, CopyTTLOut{}, CopyTTLIn{}, PushPBB{ethPBB}, PopPBB{},
			ExperimenterAction{5, []byte("12345678")}}},
			none + "fffffffd 0040 000000000000 0000 0010 00000003 0004 000000000000 000b 0008 00000000 000c 0008 00000000" +
				"001a 0008 88e7 0000 001b 0008 00000000 ffff 0010 00000005 3132333435363738"},
		{&PacketIn{Buffer: 1, TotalLen: 2, Reason: 3, Table: 4, Cookie: 5, Match: Match{InPort(6), InPhyPort(7), PBBISID(8), IPv6ExtHdrMasked(1, 3)}, Data: []byte{9}},
			"00000001 0002 03 04 0000000000000005 0001 0023 80000004 00000006 80000204 00000007 80004a03 000008 80004f04 0001 0003 0000000000 0000 09"},
		{&MeterMod{Command: MeterModify, Flags: MeterPktps, Meter: 1, Bands: []Band{DropBand{BandLimit{2, 3}}, DSCPRemarkBand{BandLimit{4, 5}, 6}, ExperimenterBand{BandLimit{7, 8}, 9, nil}}},
			"0001 0002 00000001 0001 0010 00000002 00000003 00000000 0002 0010 00000004 00000005 06 000000 ffff 0010 00000007 00000008 00000009"},
		{&MultipartReply{Body: &TableFeaturesList{[]TableFeatures{{Table: 1, Name: "t", MetadataMatch: 2, MetadataWrite: 3, Config: 4, MaxEntries: 5, Properties: []TableProperty{
			{Kind: TableInstructions, Instructions: []InstructionID{{Type: InstructionMeter}}},
			{Kind: TableWildcards, Fields: []FieldType{FieldEthDst.TypeOf(true), {ID: ClassExperimenter << 7, Length: 6, Experimenter: ONF}}}}}}}},
			"000c 0000 00000000 0058 01 0000000000" + "74" + strings.Repeat("00", 31) + "0000000000000002 0000000000000003 00000004 00000005" +
				"0000 0008 0006 0004 000a 0010 8000070c ffff0006 4f4e4600"},
		{&Error{Kind: ErrExperimenter, Code: 1, Experimenter: 2, Data: []byte{3}}, "ffff 0001 00000002 03"},
		{&Experimenter{1, 2, []byte{3}}, "00000001 00000002 03"},
		{&MultipartReply{Body: &ExperimenterMultipart{1, 2, []byte{3}}}, "ffff 0000 00000000 00000001 00000002 03"},
		{&BundleControl{ID: 1, Control: BundleCommitRequest, Flags: BundleOrdered, Properties: []BundleProperty{{0xffff, []byte{2}}}},
			"4f4e4600 000008fc 00000001 0004 0002 ffff 0005 02 000000"},
		{&BundleAdd{ID: 1, Flags: BundleAtomic, Message: &EchoRequest{[]byte{2}}, Properties: []BundleProperty{{3, nil}}},
			"4f4e4600 000008fd 00000001 0000 0001 04 02 0009 00000007 02 00000000000000 0003 0004 00000000"},
		{&FlowMod{Instructions: Instructions{GotoTable{1}, WriteMetadata{2, 3}, WriteActions{}, ClearActions{}, Meter{4}, ExperimenterInstruction{5, nil}}},
			strings.Repeat("00", 40) + "0001 0004 00000000 0001 0008 01 000000 0002 0018 00000000 0000000000000002 0000000000000003" +
				"0003 0008 00000000 0005 0008 00000000 0006 0008 00000004 ffff 0008 00000005"},
	} {
		b, err := Append(nil, 7, c.m)
		if err != nil {
			t.Errorf("%v: %v", c.m, err)
			continue
		}
		if got, want := hex.EncodeToString(b[HeaderLen:]), strings.ReplaceAll(c.want, " ", ""); got != want {
			t.Errorf("%v:\n%s\nwant\n%s", c.m, got, want)
		}
	}
}

// What is kept as bytes is counted.
func TestDecodeCount(t *testing.T) {
	f, err := NewField(ClassNXM1<<7|3, []byte{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, m := range []Message{
		&FlowMod{Match: Match{InPort(1)}, Instructions: Instructions{ApplyActions{Actions{Output{Port: 1}}}}},
		&Unknown{Kind: 99},
		&FlowMod{Match: Match{f}, Instructions: Instructions{UnknownInstruction{Kind: 9, Body: make([]byte, 4)}}},
		&PacketOut{Actions: Actions{SetField{f}, UnknownAction{99, make([]byte, 4)}, ExperimenterAction{}}},
		&MeterMod{Bands: []Band{UnknownBand{Kind: 9, Body: make([]byte, 4)}, ExperimenterBand{}, DropBand{}, ExperimenterBand{}, ExperimenterBand{}}},
	} {
		b, err := Append(nil, 1, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, got, err := DecodeCount(b); got != want || err != nil {
			t.Errorf("%v: %d and %v, want %d", m, got, err, want)
		}
	}
}

// An error names the refused message.
func TestErrorText(t *testing.T) {
	refused, err := Append(nil, 0x1234, &BarrierRequest{})
	if err != nil {
		t.Fatal(err)
	}
	e := &Error{Kind: ErrBadRequest, Code: RequestBadLen, Data: refused}
	if typ, xid, ok := e.Refused(); typ != TypeBarrierRequest || xid != 0x1234 || !ok {
		t.Errorf("%v %#x %v", typ, xid, ok)
	}
	for want, e := range map[string]*Error{
		"the switch refuses barrier-request: OFPBRC_BAD_LEN":                   e,
		"the switch refuses a message: OFPMMFC_OUT_OF_METERS":                  {Kind: ErrMeterModFailed, Code: MeterModOutOfMeters},
		"the switch refuses a message: OFPBFC_TIMEOUT":                         {Kind: ErrExperimenter, Experimenter: ONF, Code: BundleTimeout},
		"the switch refuses a message: experimenter 0x1, type 2":               {Kind: ErrExperimenter, Experimenter: 1, Code: 2},
		"the switch refuses a message: type 77, code 3":                        {Kind: 77, Code: 3},
		`the other side refuses the connection: OFPHFC_INCOMPATIBLE: "no 1.3"`: {Kind: ErrHelloFailed, Data: []byte("no 1.3")},
	} {
		if got := error(e).Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
