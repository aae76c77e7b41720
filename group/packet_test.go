package group

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParsePacket(t *testing.T) {
	v4 := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	for text, want := range map[string]Packet{
		"tcp 10.0.0.1:443 10.0.0.2:55000": {Proto: TCP, Src: v4("10.0.0.1"), Dst: v4("10.0.0.2"), SPort: 443, DPort: 55000},
		"TCP 10.0.0.1:443 10.0.0.2:55000 dscp CS1 mark 0x7 vlan 5 cgroup /x": {Proto: TCP, Src: v4("10.0.0.1"), Dst: v4("10.0.0.2"), SPort: 443, DPort: 55000,
			DSCP: 8, Mark: 7, VLAN: 5, Cgroup: "/x"},
		"udp [fd00::1]:53 [fd00::2]:999":        {Proto: UDP, Src: v4("fd00::1"), Dst: v4("fd00::2"), SPort: 53, DPort: 999},
		"icmp 10.0.0.1 10.0.0.2":                {Proto: ICMP, Src: v4("10.0.0.1"), Dst: v4("10.0.0.2")},
		"icmp fd00::1 fd00::2 type 135":         {Proto: ICMPv6, Src: v4("fd00::1"), Dst: v4("fd00::2"), ICMPType: 135},
		"47 10.0.0.1 10.0.0.2":                  {Proto: 47, Src: v4("10.0.0.1"), Dst: v4("10.0.0.2")},
		"tcp 10.0.0.1:1 10.0.0.2:2 ack":         {Proto: TCP, Src: v4("10.0.0.1"), Dst: v4("10.0.0.2"), SPort: 1, DPort: 2, PureAck: true},
		"udp 10.0.0.1 10.0.0.2 fragment":        {Proto: UDP, Src: v4("10.0.0.1"), Dst: v4("10.0.0.2"), Fragment: true},
		"udp ::ffff:10.0.0.1 10.0.0.2 fragment": {Proto: UDP, Src: v4("10.0.0.1"), Dst: v4("10.0.0.2"), Fragment: true},
		"arp":                                   {Link: "arp"},
		"arp vlan 5 pcp 3":                      {Link: "arp", VLAN: 5, PCP: 3},
		"arp pcp 3 vlan 5":                      {Link: "arp", VLAN: 5, PCP: 3},
		"arp pcp 0":                             {Link: "arp", PriorityTag: true},
		"stp smac AA:bb:cc:00:00:01":            {Link: "stp", SMAC: [6]byte{0xaa, 0xbb, 0xcc, 0, 0, 1}},
		"  LLDP   vlan 7  ":                     {Link: "lldp", VLAN: 7},
	} {
		if got, err := ParsePacket(text); err != nil || got != want {
			t.Errorf("ParsePacket(%q) = %+v, %v\nwant %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                     "the packet is empty",
		"tcp":                                  "is not a packet: write protocol, source and destination",
		"tpc 10.0.0.1:1 10.0.0.2:2":            `"tpc" is not a protocol`,
		"tcp 10.0.0.1 10.0.0.2:2":              "tcp packets have ports: write 10.0.0.1:PORT with the port for PORT",
		"tcp fd00::1 [fd00::2]:2":              "write [fd00::1]:PORT with",
		"tcp x 10.0.0.2:2":                     `"x" is not an address and port`,
		"icmp 10.0.0.1:1 10.0.0.2":             "icmp packets have no ports here: write 10.0.0.1",
		"icmp x 10.0.0.2":                      `"x" is not an address`,
		"icmp fe80::1%eth0 fe80::2":            "has a zone, which is not part of a packet: write fe80::1",
		"icmp 10.0.0.1 fd00::1":                "10.0.0.1 and fd00::1 are of different IP versions",
		"arp dscp ef":                          "arp packets have no dscp",
		"arp ack":                              `arp packets have no "ack"`,
		"arp type 1":                           "arp packets have no type",
		"icmp 10.0.0.1 10.0.0.2 ack":           "only unfragmented tcp packets can be acknowledgements",
		"tcp 10.0.0.1 10.0.0.2 fragment ack":   "only unfragmented tcp packets can be acknowledgements",
		"tcp 10.0.0.1:1 10.0.0.2:2 type 8":     "tcp has no message types",
		"tcp 10.0.0.1:1 10.0.0.2:2 dscp":       "dscp has no value",
		"tcp 10.0.0.1:1 10.0.0.2:2 dscp cs9":   `"cs9" is not a DSCP`,
		"tcp 10.0.0.1:1 10.0.0.2:2 vlan 4095":  `"4095" is not a vlan: write 1 to 4094`,
		"tcp 10.0.0.1:1 10.0.0.2:2 vlan x":     `"x" is not a vlan: write 1 to 4094`,
		"arp pcp 8":                            `"8" is not a pcp: write 0 to 7`,
		"arp smac x":                           `"x" is not an smac`,
		"tcp 10.0.0.1:1 10.0.0.2:2 mark -1":    `"-1" is not a mark`,
		"icmp 10.0.0.1 10.0.0.2 type 256":      `"256" is not a type: write 0 to 255`,
		"tcp 10.0.0.1:1 10.0.0.2:2 cgroup x":   `"x" is not a cgroup`,
		"tcp 10.0.0.1:1 10.0.0.2:2 tll 64":     `"tll" is not a packet field`,
		"tcp 10.0.0.1:1 10.0.0.2:2 ttl 256":    `"256" is not a ttl: write 1 to 255`,
		"tcp 10.0.0.1:1 10.0.0.2:2 length x":   `"x" is not a length: write bytes of the IP packet`,
		"arp ttl 1":                            "arp packets have no ttl",
		"tcp 10.0.0.1:1 10.0.0.2:2 10.0.0.3:3": `"10.0.0.3:3" is not a packet field`,
		"tcp 10.0.0.1:70000 10.0.0.2:2":        `"10.0.0.1:70000" is not an address and port`,
	} {
		if got, err := ParsePacket(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParsePacket(%q) = %+v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestParseConn(t *testing.T) {
	proto, a, b, err := ParseConn("tcp 10.0.0.1:443 10.0.0.2:55000")
	if err != nil || proto != TCP || a != netip.MustParseAddrPort("10.0.0.1:443") || b != netip.MustParseAddrPort("10.0.0.2:55000") {
		t.Errorf("%d %v %v, %v", proto, a, b, err)
	}
	for text, want := range map[string]string{
		"tcp 10.0.0.1:1": "is not a connection", "tcp 10.0.0.1:1 10.0.0.2:2 dscp ef": "is not a connection", "icmp 10.0.0.1 10.0.0.2": "icmp has no connections",
		"tcp 10.0.0.1 10.0.0.2:1": "tcp packets have ports", "": "is not a connection",
	} {
		if _, _, _, err := ParseConn(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseConn(%q): %v; want an error with %q", text, err, want)
		}
	}
}

func TestControl(t *testing.T) {
	for text, want := range map[string]bool{
		"arp": true, "lldp": true, "stp vlan 5": true, "lacp": true, "eapol": true,
		"tcp 10.0.0.1:1 10.0.0.2:2": false, "tcp 10.0.0.1:1 10.0.0.2:2 ack": true,
		"udp 0.0.0.0:68 255.255.255.255:67": true, "udp [fe80::1]:546 [ff02::1]:547": true, "udp 10.0.0.1:67 10.0.0.2:53": false, "udp 10.0.0.1:68 10.0.0.2:546": false,
		"udp 10.0.0.1 10.0.0.2 fragment":          false,
		"udp 10.0.0.1:68 10.0.0.2:67 length 1428": false, "udp 10.0.0.1:68 10.0.0.2:67 length 328": true, "udp 10.0.0.1:68 10.0.0.2:67 length 60": false,
		"udp 10.0.0.1:68 10.0.0.2:68": false, "udp 10.0.0.1:67 10.0.0.2:67": true, "udp 0.0.0.0:68 10.0.0.2:67": false,
		"udp [fe80::1]:68 [ff02::1]:67": false, "udp 10.0.0.1:546 10.0.0.2:547": false, "udp [fe80::1]:546 [ff02::1]:547 length 1428": false,
		"icmp fe80::1 ff02::1 type 135 ttl 64": false, "icmp fe80::1 ff02::1 type 135 ttl 255 length 72": true, "icmp fe80::1 ff02::1 type 135 length 1280": false,
		"icmp fe80::1 ff02::16 type 143": true, "icmp fe80::1 ff02::16 type 143 ttl 64": false, "icmp fd00::1 ff02::16 type 143": false, "icmp fe80::1 fe80::2 type 131": false,
		"2 10.0.0.1 224.0.0.22": true, "2 10.0.0.1 224.0.0.22 ttl 2": false, "2 10.0.0.1 10.0.0.2": false, "2 10.0.0.1 224.0.0.22 length 1400": false,
		"icmp fe80::1 ff02::1 type 133": true, "icmp fe80::1 ff02::1 type 137": true, "icmp fe80::1 fe80::2 type 128": false, "icmp 10.0.0.1 10.0.0.2 type 135": false,
	} {
		p, err := ParsePacket(text)
		if err != nil || p.Control() != want {
			t.Errorf("%q is control traffic: %v, %v", text, p.Control(), err)
		}
	}
}

func TestPacketRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPacket(t)
		p.PureAck = p.Link == "" && p.Proto == TCP && !p.Fragment && rapid.Bool().Draw(t, "ack")
		got, err := ParsePacket(p.String())
		if err != nil || got != p {
			t.Fatalf("%q parses as %+v, %v; want %+v", p, got, err, p)
		}
	})
}

func FuzzParsePacket(f *testing.F) {
	for _, s := range []string{"tcp 10.0.0.1:443 10.0.0.2:55000 dscp cs1 mark 7", "udp [fd00::1]:53 [fd00::2]:999 fragment", "icmp fd00::1 fd00::2 type 135", "arp vlan 5 pcp 7 smac 02:00:00:00:00:01", "arp pcp 0", "1 ::1 ::1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePacket(s)
		if err != nil {
			return
		}
		back, err := ParsePacket(p.String())
		if err != nil || back != p {
			t.Fatalf("%q parsed as %+v, formatted as %q, parsed again as %+v, %v", s, p, p, back, err)
		}
	})
}

func FuzzParseConn(f *testing.F) {
	for _, s := range []string{"tcp 10.0.0.1:443 10.0.0.2:55000", "udp [fd00::1]:53 [::ffff:10.0.0.2]:999", "132 [::1]:1 [::2]:2", "icmp 10.0.0.1 10.0.0.2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		proto, a, b, err := ParseConn(s)
		if err != nil {
			return
		}
		printed := fmt.Sprintf("%s %v %v", ProtoName(proto), a, b)
		proto2, a2, b2, err := ParseConn(printed)
		if err != nil || proto2 != proto || a2 != a || b2 != b {
			t.Fatalf("%q parsed as %q, parsed again as %v %v %v, %v", s, printed, proto2, a2, b2, err)
		}
	})
}

// FuzzSelector: every selector that parses survives a JSON round trip.
func FuzzSelector(f *testing.F) {
	for _, s := range []string{
		`{"proto":["tcp","icmp","47"],"dport":["443","5000-6000"],"dscp":["cs1","46"]}`,
		`{"src":["10.0.0.0/8","fd00::/8"],"vlan":[5],"mark":[7],"cgroup":"/a"}`, `{"sport":["0-65535"]}`,
		`{"dscp":["8-15","af11-af13"],"vlan":["100-199"],"pcp":["5-7"],"mark":["0x4000/0xff00"],"smac":["aa:bb:cc:00:00:00/ff:ff:ff:00:00:00"],"not":{"dst":["10.0.0.0/8"],"mark":[0]}}`, `{"not":[{"pcp":[1]},{"cgroup":"/a"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s, back Selector
		if json.Unmarshal(text, &s) != nil {
			return
		}
		printed, err := json.Marshal(s)
		if err == nil {
			err = json.Unmarshal(printed, &back)
		}
		if err != nil {
			t.Fatalf("%s parsed as %+v, formatted as %s: %v", text, s, printed, err)
		}
		if again, err := json.Marshal(back); err != nil || !bytes.Equal(again, printed) {
			t.Fatalf("%s formatted as %s, after a round trip as %s, %v", text, printed, again, err)
		}
	})
}
