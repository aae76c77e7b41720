package points

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
)

func request() reserve.Request {
	return reserve.Request{
		ID:          reserve.ID{Tenant: "acme", Name: "backup"},
		Source:      reserve.Endpoint{Kind: reserve.Host, Name: "h1", Prefix: netip.MustParsePrefix("10.0.0.1/32"), VLAN: 7},
		Destination: reserve.Endpoint{Kind: reserve.Prefix, Name: "2", Prefix: netip.MustParsePrefix("10.0.2.0/24")},
		Flows:       []reserve.Flow{{Protocol: 6, Destination: reserve.Ports{First: 873, Last: 873}}, {Protocol: 50}},
		Class:       2,
	}
}

func TestMessages(t *testing.T) {
	began := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	operators := reserve.Request{ID: reserve.ID{Name: "site"}, Class: 1, Source: reserve.Endpoint{Kind: reserve.VLAN, VLAN: 9}, Destination: reserve.Endpoint{Kind: reserve.VLAN, VLAN: 9}}
	all := []Direction{
		{Request: request(), At: Interface{Host: "h1", Dev: "eth0"}, Line: unit.Gbit, Rate: 20 * unit.Mbit, Limit: 30 * unit.Mbit, Granted: began.Add(time.Hour)},
		{Request: request(), Reverse: true, At: Interface{Host: "r2", Dev: "eth1"}, Rate: 2 * unit.Mbit, Limit: unit.Mbit, Granted: began},
		{Request: operators, At: Interface{Host: "h1", Dev: "eth0"}, Line: unit.Gbit, Rate: 5 * unit.Mbit, Limit: 5 * unit.Mbit, Granted: began},
	}
	fence := &agents.Fence{Epoch: 3, Revision: 4}
	got := Messages(all, fence, 100*time.Millisecond)
	want := map[string]*agents.Reservations{
		"h1": {Fence: fence, ReportIntervalNs: 1e8, LineBps: map[string]uint64{"eth0": 1e9}, Reservations: []*agents.Reservation{
			// The one that was granted first.
			{Key: "-/site/forward", Dev: "eth0", Direction: "egress", RateBps: 5e6, LimitBps: 5e6, Class: 1, Traffic: []*agents.Traffic{{Vlan: 9}}},
			{Key: "acme/backup/forward", Dev: "eth0", Direction: "egress", RateBps: 20e6, LimitBps: 30e6, Class: 2, Traffic: []*agents.Traffic{
				{Source: "10.0.0.1/32", Destination: "10.0.2.0/24", Protocol: 6, Vlan: 7, DestinationPorts: &agents.PortRange{First: 873, Last: 873}},
				{Source: "10.0.0.1/32", Destination: "10.0.2.0/24", Protocol: 50, Vlan: 7},
			}},
		}},
		// No capacity is known there.
		"r2": {Fence: fence, ReportIntervalNs: 1e8, Reservations: []*agents.Reservation{
			{Key: "acme/backup/reverse", Dev: "eth1", Direction: "egress", RateBps: 2e6, LimitBps: 1e6, Class: 2, Traffic: []*agents.Traffic{
				{Source: "10.0.2.0/24", Destination: "10.0.0.1/32", Protocol: 6, SourcePorts: &agents.PortRange{First: 873, Last: 873}},
				{Source: "10.0.2.0/24", Destination: "10.0.0.1/32", Protocol: 50},
			}},
		}},
	}
	if len(got) != len(want) {
		t.Errorf("%d hosts get messages, want %d", len(got), len(want))
	}
	for host, m := range want {
		if !proto.Equal(got[host], m) {
			t.Errorf("%s gets %v, want %v", host, got[host], m)
		}
	}

	now := append([]Direction{}, all...)
	now[0].Limit = 90 * unit.Mbit
	limits := Limits(all, now, fence)
	if len(limits) != 1 || !proto.Equal(limits["h1"], &agents.ReservationLimits{Fence: fence, LimitBps: map[string]uint64{"acme/backup/forward": 90e6}}) {
		t.Errorf("the limits are %v", limits)
	}
	if !proto.Equal(With(got["h1"], limits["h1"]), Messages(now, fence, 100*time.Millisecond)["h1"]) {
		t.Error("the list with the limits is not the list of what is now")
	}
}

func TestByMAC(t *testing.T) {
	device := func(name, mac, kind, master string) *agents.Device {
		return &agents.Device{Name: name, Mac: mac, Kind: kind, Master: master, SpeedBps: 1e9}
	}
	facts := map[string]*agents.Facts{
		"h1": {Devices: []*agents.Device{
			device("lo", "00:00:00:00:00:00", "device", ""), device("tun0", "", "tun", ""),
			device("br0", "02:00:00:00:00:01", "bridge", ""), device("eth0", "02:00:00:00:00:01", "device", "br0"), device("eth0.7", "02:00:00:00:00:01", "vlan", ""),
			device("eth1", "02:00:00:00:00:02", "device", "bond0"), device("eth2", "02:00:00:00:00:02", "device", "bond0"), device("bond0", "02:00:00:00:00:02", "bond", ""),
			device("eth3", "02:00:00:00:00:03", "device", ""),
		}},
		"h2": {Devices: []*agents.Device{device("eth0", "02:00:00:00:00:03", "device", ""), device("eth1", "02:00:00:00:00:04", "veth", "")}},
		"h3": nil, // has connected and has sent no facts yet
	}
	mac := func(last byte) fabric.MAC { return fabric.MAC{2, 0, 0, 0, 0, last} }
	want := map[fabric.MAC]Interface{
		mac(1): {"h1", "eth0", unit.Gbit}, mac(2): {"h1", "bond0", unit.Gbit}, mac(4): {"h2", "eth1", unit.Gbit},
	}
	got := ByMAC(facts)
	for mac, i := range want {
		if got[mac] != i {
			t.Errorf("%v is at %+v, want %+v", mac, got[mac], i)
		}
	}
	if len(got) != len(want) { // the third address is that of two hosts
		t.Errorf("the interfaces are %v", got)
	}
}

func TestCollector(t *testing.T) {
	var c Collector
	report := func(key string, period time.Duration, offered, delivered uint64, queued time.Duration, limit uint64) *agents.ReservationReport {
		return &agents.ReservationReport{Reservations: []*agents.ReservationCounters{
			{Key: key, PeriodNs: int64(period), OfferedBytes: offered, DeliveredBytes: delivered, QueuedNs: int64(queued), LimitBps: limit, Drops: 3},
		}}
	}
	c.Add(report("a", 2*time.Second, 3000, 2000, time.Second, 5))
	c.Add(report("a", time.Second, 3000, 1000, 0, 5))
	c.Add(report("a", time.Second, 1000, 1000, time.Second, 6))
	c.Add(report("b", 0, 1, 1, 0, 1)) // no time
	got := c.Take(time.Second + 1)
	want := Measured{Parts: []Part{{12000, 8000, 2 * time.Second}, {16000, 8000, 2 * time.Second}}, Queued: 0.5, Drops: 9, Limit: 6}
	if len(got) != 1 || !reflect.DeepEqual(got["a"], want) {
		t.Errorf("measured is %+v, want %+v", got, want)
	}
	c.Add(report("a", time.Second, 3000, 2000, time.Second, 5))
	if one := c.Take(2 * time.Second)["a"]; !slices.Equal(one.Parts, []Part{{24000, 16000, time.Second}}) {
		t.Errorf("of one report measured is %+v", one)
	}
	if got := c.Take(time.Second); len(got) > 0 {
		t.Errorf("without a report measured is %+v", got)
	}
}
