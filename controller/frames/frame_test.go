package frames_test

import (
	"net/netip"
	"strings"
	"testing"

	"headgate.dev/headgate/controller/frames"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
	"headgate.dev/headgate/fabric/trace"
)

// hosts are two in no VLAN, and one in VLAN 7 that has the address of the second.
func hosts(t testing.TB) *fabric.Topology {
	at := fabric.PortID{Switch: 1, Port: 1}
	host := func(last byte, vlan uint16, addrs ...string) (h fabric.Host) {
		h = fabric.Host{HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, last}, VLAN: vlan}, At: at}
		for _, a := range addrs {
			h.Addrs = append(h.Addrs, netip.MustParseAddr(a))
		}
		return h
	}
	topology, err := fabric.New(fabric.Parts{
		Switches: []fabric.Switch{{ID: 1, Ports: []fabric.Port{{No: 1}}}},
		Hosts:    []fabric.Host{host(1, 0, "10.0.0.1", "fd00::1"), host(2, 0, "10.0.0.2", "fd00::2"), host(3, 7, "10.0.0.2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// Each form of a packet, and what is wrong with others.
func TestFrame(t *testing.T) {
	topology := hosts(t)
	const to2, all = "02:00:00:00:00:01 > 02:00:00:00:00:02 ", "02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff "
	for _, c := range []struct{ packet, want string }{
		{"tcp 10.0.0.1:1000 10.0.0.2:80", to2 + "tcp 10.0.0.1:1000 > 10.0.0.2:80"},
		{"udp [fd00::1]:7 [fd00::2]:8", to2 + "udp [fd00::1]:7 > [fd00::2]:8"},
		{"sctp 10.0.0.1:7 10.0.0.2:8", to2 + "sctp 10.0.0.1:7 > 10.0.0.2:8"},
		{"icmp 10.0.0.1 10.0.0.2", to2 + "icmp 10.0.0.1 > 10.0.0.2"},
		{"icmp fd00::1 fd00::2", to2 + "icmp fd00::1 > fd00::2"},
		{"47 10.0.0.1 10.0.0.2", to2 + "ip protocol 47 10.0.0.1 > 10.0.0.2"},
		{"udp 10.0.0.1 10.0.0.2 fragment", to2 + "udp 10.0.0.1 > 10.0.0.2"},
		{"udp fd00::1 fd00::2 fragment", to2 + "udp fd00::1 > fd00::2"},
		{"tcp 10.0.0.1:1000 10.0.0.2:80 vlan 7", "02:00:00:00:00:01 > 02:00:00:00:00:03 vlan 7 tcp 10.0.0.1:1000 > 10.0.0.2:80"},
		{"udp 10.0.0.1:1 10.9.9.9:2 dmac 02:09:00:00:00:09", "02:00:00:00:00:01 > 02:09:00:00:00:09 udp 10.0.0.1:1 > 10.9.9.9:2"},
		{"udp 10.0.0.1:1 224.1.2.3:2", "02:00:00:00:00:01 > 01:00:5e:01:02:03 udp 10.0.0.1:1 > 224.1.2.3:2"},
		{"udp 10.0.0.1:68 255.255.255.255:67", all + "udp 10.0.0.1:68 > 255.255.255.255:67"},
		{"udp [fd00::1]:1 [ff02::1]:2", "02:00:00:00:00:01 > 33:33:00:00:00:01 udp [fd00::1]:1 > [ff02::1]:2"},
		{"arp 10.0.0.2", all + "arp who-has 10.0.0.2 tell 10.0.0.1"},
		{"arp", all + "arp who-has 10.0.0.1 tell 10.0.0.1"},
		{"arp 10.0.0.2 vlan 9", all + "vlan 9 arp who-has 10.0.0.2 tell 10.0.0.1"},
		{"nd fd00::2", "02:00:00:00:00:01 > 33:33:ff:00:00:02 nd who-has fd00::2 tell fd00::1"},
		{"broadcast", all + "type 0x88b5"},
		{"broadcast vlan 5 pcp 3", all + "vlan 5 type 0x88b5"},
		{"lldp", "02:00:00:00:00:01 > 01:80:c2:00:00:0e type 0x88cc"},
		{"stp", "02:00:00:00:00:01 > 01:80:c2:00:00:00 type 0x0026"},

		{"", "the packet is empty: "},
		{"tcp 10.0.0.1:1 10.0.0.9:2", "no host is known that has 10.0.0.9: add dmac and the MAC address"},
		{"tcp 10.0.0.1:1 10.0.0.1:2 vlan 7", "no host is known that has 10.0.0.1 in VLAN 7: add dmac"},
		{"tcp 10.0.0.1 10.0.0.2", "tcp packets have ports"},
		{"tcp 10.0.0.1:1 10.0.0.2:2 mark 7", "frames have no mark: leave it out"},
		{"tcp 10.0.0.1:1 10.0.0.2:2 cgroup /a", "frames have no cgroup: leave it out"},
		{"tcp 10.0.0.1:1 10.0.0.2:2 dmac", "dmac has no value: "},
		{"tcp 10.0.0.1:1 10.0.0.2:2 dmac h2", "h2"},
		{"arp fd00::2", "arp asks for IPv4 addresses: write nd fd00::2"},
		{"nd 10.0.0.2", "nd asks for IPv6 addresses: write arp 10.0.0.2"},
		{"nd", "nd has no target: "},
	} {
		text := ""
		p, err := frames.Parse(c.packet)
		if err == nil {
			var data []byte
			if data, err = p.Frame(topology, topology.Hosts()[0]); err == nil {
				text = trace.ReadFrame(data).String()
			}
		}
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: %v, want %q", c.packet, err, c.want)
		case err == nil && text != c.want:
			t.Errorf("%q is %q, want %q", c.packet, text, c.want)
		}
	}
}

// A frame has the fields that the packet has.
func TestFields(t *testing.T) {
	topology := hosts(t)
	for _, c := range []struct {
		packet string
		field  openflow.FieldID
		want   uint64
	}{
		{"udp 10.0.0.1:1 10.0.0.2:2 dscp ef", openflow.FieldIPDSCP, 46},
		{"udp [fd00::1]:1 [fd00::2]:2 dscp ef", openflow.FieldIPDSCP, 46},
		{"icmp 10.0.0.1 10.0.0.2", openflow.FieldICMPv4Type, 8},
		{"icmp 10.0.0.1 10.0.0.2 type 3", openflow.FieldICMPv4Type, 3},
		{"icmp fd00::1 fd00::2", openflow.FieldICMPv6Type, 128},
		{"udp 10.0.0.1:1 10.0.0.2:2 vlan 7 pcp 5", openflow.FieldVLANPCP, 5},
		{"arp pcp 5", openflow.FieldVLANVID, pipeline.VLANPresent},
		{"udp 10.0.0.1 10.0.0.2 fragment", openflow.FieldUDPDst, 0},
	} {
		p, err := frames.Parse(c.packet)
		if err != nil {
			t.Fatal(err)
		}
		data, err := p.Frame(topology, topology.Hosts()[0])
		if err != nil {
			t.Fatal(err)
		}
		read := pipeline.NewPacket(data, 1)
		if got := read.Key.Uint(c.field); got != c.want {
			t.Errorf("%s: the field %v is %d, want %d", c.packet, c.field, got, c.want)
		}
	}
	p, _ := frames.Parse("udp 10.0.0.1:1 10.0.0.2:2 ttl 3 length 1000")
	data, err := p.Frame(topology, topology.Hosts()[0])
	if ttl, _ := pipeline.NewPacket(data, 1).TTL(); err != nil || ttl != 3 || len(data) != 1014 {
		t.Errorf("TTL %d and %d bytes, %v", ttl, len(data), err)
	}
	host := topology.Hosts()[2] // in VLAN 7
	if data, err := p.Frame(topology, host); err != nil || trace.ReadFrame(data).VLAN != 7 {
		t.Errorf("a host in VLAN 7 sends %x, %v", data, err)
	}
}

// FuzzParse: any text is an error or a frame.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"tcp 10.0.0.1:1 10.0.0.2:2 dmac 02:00:00:00:00:02 vlan 7 pcp 1 ack", "arp 10.0.0.2 vlan 7", "nd fd00::2", "broadcast", "lldp", "udp fd00::1 fd00::2 fragment length 9000"} {
		f.Add(s)
	}
	topology := hosts(f)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := frames.Parse(text)
		if err != nil {
			return
		}
		if data, err := p.Frame(topology, topology.Hosts()[0]); err == nil && len(data) < 60 {
			t.Errorf("%q is a frame of %d bytes", text, len(data))
		}
	})
}
