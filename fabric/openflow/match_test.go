package openflow

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
)

var (
	v4 = netip.MustParsePrefix("10.1.0.0/16")
	v6 = netip.MustParsePrefix("2001:db8::1/128")
	ma = MAC{0x0a, 0, 0, 0, 0, 1}
)

// Each constructor makes the field of its name, and the text is that of ovs-ofctl.
func TestConstructors(t *testing.T) {
	for _, c := range []struct {
		f    Field
		id   FieldID
		text string
	}{
		{InPort(PortLocal), FieldInPort, "in_port=LOCAL"},
		{InPhyPort(7), FieldInPhyPort, "in_phy_port=7"},
		{Metadata(1), FieldMetadata, "metadata=0x1"},
		{MetadataMasked(1, 3), FieldMetadata, "metadata=0x1/0x3"},
		{EthDst(ma), FieldEthDst, "dl_dst=0a:00:00:00:00:01"},
		{EthDstMasked(MAC{1}, MAC{1}), FieldEthDst, "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"},
		{EthSrc(ma), FieldEthSrc, "dl_src=0a:00:00:00:00:01"},
		{EthSrcMasked(MAC{}, MAC{1}), FieldEthSrc, "dl_src=00:00:00:00:00:00/01:00:00:00:00:00"},
		{EthType(0x88cc), FieldEthType, "dl_type=0x88cc"},
		{VLAN(5), FieldVLANVID, "dl_vlan=5"},
		{AnyVLAN(), FieldVLANVID, "vlan_tci=0x1000/0x1000"},
		{NoVLAN(), FieldVLANVID, "vlan_tci=0x0000/0x1fff"},
		{VLANMasked(0x1004, 0x1ffc), FieldVLANVID, "vlan_tci=0x1004/0x1ffc"},
		{VLANPCP(3), FieldVLANPCP, "dl_vlan_pcp=3"},
		{IPDSCP(46), FieldIPDSCP, "nw_tos=184"},
		{IPECN(1), FieldIPECN, "nw_ecn=1"},
		{IPProto(6), FieldIPProto, "nw_proto=6"},
		{IPv4Src(v4), FieldIPv4Src, "nw_src=10.1.0.0/16"},
		{IPv4Dst(netip.MustParsePrefix("10.1.2.3/32")), FieldIPv4Dst, "nw_dst=10.1.2.3"},
		{TCPSrc(1), FieldTCPSrc, "tp_src=1"},
		{TCPDst(2), FieldTCPDst, "tp_dst=2"},
		{UDPSrc(3), FieldUDPSrc, "tp_src=3"},
		{UDPDst(4), FieldUDPDst, "tp_dst=4"},
		{SCTPSrc(5), FieldSCTPSrc, "tp_src=5"},
		{SCTPDst(6), FieldSCTPDst, "tp_dst=6"},
		{ICMPv4Type(8), FieldICMPv4Type, "icmp_type=8"},
		{ICMPv4Code(1), FieldICMPv4Code, "icmp_code=1"},
		{ARPOp(1), FieldARPOp, "arp_op=1"},
		{ARPSPA(v4), FieldARPSPA, "arp_spa=10.1.0.0/16"},
		{ARPTPA(v4), FieldARPTPA, "arp_tpa=10.1.0.0/16"},
		{ARPSHA(ma), FieldARPSHA, "arp_sha=0a:00:00:00:00:01"},
		{ARPTHA(ma), FieldARPTHA, "arp_tha=0a:00:00:00:00:01"},
		{IPv6Src(v6), FieldIPv6Src, "ipv6_src=2001:db8::1"},
		{IPv6Dst(netip.MustParsePrefix("2001:db8::/32")), FieldIPv6Dst, "ipv6_dst=2001:db8::/32"},
		{IPv6FLabel(1), FieldIPv6FLabel, "ipv6_label=0x00001"},
		{IPv6FLabelMasked(1, 0xff), FieldIPv6FLabel, "ipv6_label=0x00001/0x000ff"},
		{ICMPv6Type(135), FieldICMPv6Type, "icmp_type=135"},
		{ICMPv6Code(0), FieldICMPv6Code, "icmp_code=0"},
		{IPv6NDTarget(v6.Addr()), FieldIPv6NDTarget, "nd_target=2001:db8::1"},
		{IPv6NDSLL(ma), FieldIPv6NDSLL, "nd_sll=0a:00:00:00:00:01"},
		{IPv6NDTLL(ma), FieldIPv6NDTLL, "nd_tll=0a:00:00:00:00:01"},
		{MPLSLabel(16), FieldMPLSLabel, "mpls_label=16"},
		{MPLSTC(1), FieldMPLSTC, "mpls_tc=1"},
		{MPLSBoS(1), FieldMPLSBoS, "mpls_bos=1"},
		{PBBISID(1), FieldPBBISID, "pbb_isid=0x1"},
		{PBBISIDMasked(1, 0xff), FieldPBBISID, "pbb_isid=0x1/0xff"},
		{TunnelID(9), FieldTunnelID, "tun_id=0x9"},
		{TunnelIDMasked(0, 0xff), FieldTunnelID, "tun_id=0/0xff"},
		{IPv6ExtHdr(1), FieldIPv6ExtHdr, "ipv6_exthdr=0x1"},
		{IPv6ExtHdrMasked(1, 3), FieldIPv6ExtHdr, "ipv6_exthdr=0x1/0x3"},
		{TCPFlags(0x02, 0x12), FieldTCPFlags, "tcp_flags=+syn-ack"},
		{TCPFlags(0x03, 0xfff), FieldTCPFlags, "tcp_flags=fin|syn"},
		{TCPFlags(0, 0xfff), FieldTCPFlags, "tcp_flags=0"},
	} {
		if c.f.ID() != c.id || c.f.String() != c.text {
			t.Errorf("%v is %q, want %v and %q", c.f.ID(), c.f, c.id, c.text)
		}
		if err := c.f.check(); err != nil {
			t.Error(err)
		}
	}
}

func TestAccessors(t *testing.T) {
	f := IPv4Dst(v4)
	if p, ok := f.Prefix(); !ok || p != v4 || f.Addr() != v4.Addr() || f.Uint() != 0x0a010000 || f.UintMask() != 0xffff0000 {
		t.Errorf("%v: %v %v %v %#x/%#x", f, p, ok, f.Addr(), f.Uint(), f.UintMask())
	}
	if p, ok := IPv6Src(v6).Prefix(); !ok || p != v6 {
		t.Errorf("%v %v, want %v", p, ok, v6)
	}
	if f, err := NewField(FieldIPv4Src, []byte{10, 0, 0, 1}, []byte{255, 0, 0, 255}); err != nil {
		t.Error(err)
	} else if _, ok := f.Prefix(); ok || f.String() != "nw_src=10.0.0.1/255.0.0.255" {
		t.Errorf("%v has a prefix", f)
	}
	if EthDst(ma).MAC() != ma || InPort(3).MAC() != (MAC{}) || EthDst(ma).UintMask() != 1<<48-1 {
		t.Errorf("%v %v %#x", EthDst(ma).MAC(), InPort(3).MAC(), EthDst(ma).UintMask())
	}
	if f := IPv6Dst(v6); f.Uint() != 0 || f.UintMask() != 0 || f.Mask() != nil || len(f.Value()) != 16 {
		t.Errorf("%v is %d bits", f, f.Uint())
	}
	m := Match{InPort(3), EthType(0x0800)}
	if f, ok := m.Get(FieldEthType); !ok || f != EthType(0x0800) {
		t.Errorf("eth_type is %v", f)
	}
	if _, ok := m.Get(FieldEthDst); ok {
		t.Error("there is an eth_dst")
	}
}

func TestNewFieldErrors(t *testing.T) {
	for _, c := range []struct {
		id          FieldID
		value, mask []byte
		want        string
	}{
		{FieldIPv4Dst, []byte{1}, nil, "ipv4_dst has a value of 1 bytes, want 4"},
		{FieldIPv4Dst, []byte{1, 2, 3, 4}, []byte{1}, "ipv4_dst has a value of 4 bytes and a mask of 1"},
		{7, make([]byte, 200), make([]byte, 200), "field 7 of class 0x0000 has 400 bytes: up to 255 are possible"},
		{1 << 23, nil, nil, "field id 0x800000 has more than 23 bits"},
	} {
		if _, err := NewField(c.id, c.value, c.mask); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// Check names what is wrong, and what to write.
func TestCheck(t *testing.T) {
	ip, ip6 := EthType(ethIPv4), EthType(ethIPv6)
	bad, _ := NewField(FieldTCPSrc, []byte{0, 1}, []byte{0, 1})
	for want, m := range map[string]Match{
		"match: in_port is there twice: remove one":                                          {InPort(1), InPort(2)},
		"match: ipv4_dst needs eth_type 0x0800: add it":                                      {IPv4Dst(v4)},
		"match: ipv4_dst needs eth_type 0x0800: add it ":                                     {ip6, IPv4Dst(v4)},
		"match: ipv6_src needs eth_type 0x86dd: add it":                                      {IPv6Src(v6)},
		"match: ip_proto needs eth_type 0x0800 or 0x86dd: add it":                            {IPProto(6)},
		"match: tcp_dst needs ip_proto 6: add it":                                            {ip, TCPDst(80)},
		"match: tcp_dst needs ip_proto 6: add it ":                                           {ip, IPProto(17), TCPDst(80)},
		"match: tcp_flags needs ip_proto 6: add it":                                          {ip, IPProto(17), TCPFlags(2, 2)},
		"match: tcp_flags 0x1002 has more than 12 bits":                                      {ip, IPProto(6), TCPFlags(0x1002, 0xffff)},
		"match: udp_dst needs ip_proto 17: add it":                                           {ip, UDPDst(80)},
		"match: icmpv4_type needs ip_proto 1: add it":                                        {ip, ICMPv4Type(8)},
		"match: arp_op needs eth_type 0x0806: add it":                                        {ip, ARPOp(1)},
		"match: ipv6_nd_target needs icmpv6_type 135 or 136: add it":                         {ip6, IPProto(58), IPv6NDTarget(v6.Addr())},
		"match: ipv6_nd_sll needs icmpv6_type 135: add it":                                   {ip6, IPProto(58), ICMPv6Type(136), IPv6NDSLL(ma)},
		"match: mpls_label needs eth_type 0x8847 or 0x8848: add it":                          {MPLSLabel(1)},
		"match: pbb_isid needs eth_type 0x88e7: add it":                                      {PBBISID(1)},
		"match: vlan_pcp needs vlan_vid of a tag (VLAN or AnyVLAN): add it":                  {VLANPCP(1)},
		"match: vlan_pcp needs vlan_vid of a tag (VLAN or AnyVLAN): add it ":                 {NoVLAN(), VLANPCP(1)},
		"match: in_phy_port needs in_port: add it":                                           {InPhyPort(1)},
		"match: tcp_src cannot have a mask: remove it":                                       {bad},
		"match: ip_dscp 0x40 has more than 6 bits":                                           {ip, IPDSCP(64)},
		"match: mpls_label 0x100000 has more than 20 bits":                                   {EthType(ethMPLS), MPLSLabel(1 << 20)},
		"match: vlan_vid 0x5 lacks the bit 0x1000 that a tag is present: add it":             {number(FieldVLANVID, 5)},
		"match: metadata=0x5/0x4 has bits of the value that its mask leaves out: clear them": {MetadataMasked(5, 4)},
		"match: ipv4_src has a value of 0 bytes, want 4":                                     {IPv4Src(netip.Prefix{})},
		"match: ipv6_nd_target has a value of 0 bytes, want 16":                              {IPv6NDTarget(v4.Addr())},
	} {
		if err := m.Check(); err == nil || err.Error() != trimmed(want) {
			t.Errorf("%v: error %v, want %s", m, err, want)
		}
	}
}

// trimmed is without the blanks that make keys of a map differ.
func trimmed(s string) string {
	for s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// Canonical matches of the same fields are equal, whatever their order, and need no later fields.
func TestCanonical(t *testing.T) {
	full := EthDstMasked(ma, MAC{255, 255, 255, 255, 255, 255})
	m := Match{TCPDst(80), full, IPProto(6), MetadataMasked(0, 0), EthType(ethIPv4), VLANMasked(0x1005, 0x1fff)}
	want := Match{EthDst(ma), EthType(ethIPv4), VLAN(5), IPProto(6), TCPDst(80)}
	if got := m.Canonical(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMatchText(t *testing.T) {
	for want, m := range map[string]Match{
		"":                                 nil,
		"tcp,in_port=1,nw_dst=10.1.0.0/16": {InPort(1), EthType(ethIPv4), IPProto(6), IPv4Dst(v4)},
		"udp6,tp_dst=53":                   {EthType(ethIPv6), IPProto(17), UDPDst(53)},
		"ip,nw_proto=47":                   {EthType(ethIPv4), IPProto(47)},
		"arp,arp_op=1":                     {EthType(ethARP), ARPOp(1)},
		"dl_type=0x88cc":                   {EthType(0x88cc)},
		"dl_vlan_pcp=1":                    {AnyVLAN(), VLANPCP(1)},
	} {
		if got := m.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The flags of TCP are a field of the ONF, whose number is on the wire. The same number of another experimenter is a field that is not known.
func TestTCPFlagsOnTheWire(t *testing.T) {
	m := &FlowMod{Match: Match{EthType(ethIPv4), IPProto(6), TCPFlags(0x02, 0x12)}}
	b, err := Append(nil, 1, m)
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{0xff, 0xff, 42<<1 | 1, 8, 'O', 'N', 'F', 0, 0, 0x02, 0, 0x12}
	at := bytes.Index(b, want)
	if at < 0 {
		t.Fatalf("%x has not %x", b, want)
	}
	_, got, err := Decode(b)
	if err != nil || !slices.Equal(got.(*FlowMod).Match, m.Match) {
		t.Errorf("decoded %v, %v", got, err)
	}
	b[at+4] = 'X'
	_, other, err := Decode(b)
	if err != nil {
		t.Fatalf("the field of another experimenter is refused: %v", err)
	}
	again, err := Append(nil, 1, other)
	if err != nil || !bytes.Equal(again, b) {
		t.Errorf("the field of another experimenter became %x, %v, want %x", again, err, b)
	}
}
