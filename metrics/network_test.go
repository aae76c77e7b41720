package metrics

import (
	"fmt"
	"math"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/openflow/session"
	"headgate.dev/headgate/unit"
)

// The leader exports switches, links and what it has counted; hosts only as a number. What is not counted has no metric.
func TestNetwork(t *testing.T) {
	link := fabric.LinkID{From: fabric.PortID{Switch: 1, Port: 2}, To: fabric.PortID{Switch: 2, Port: 3}}
	read := fabric.PortCounters{At: time.Now(), Tx: fabric.Counts{Bytes: 5000, Dropped: 7, Errors: fabric.Uncounted}, Rx: fabric.Counts{Bytes: 1, Dropped: fabric.Uncounted, Errors: 9}}
	now := &Network{Leads: true, Status: live.Status{
		Settled: true, Hosts: make([]fabric.Host, 3), Faults: []fabric.Fault{{Kind: fabric.OneWay}, {Kind: fabric.OneWay}, {Kind: fabric.Miswired}},
		Switches: []live.SwitchStatus{{ID: 1, Name: "s1", Address: "10.0.0.1:4000", Current: true, SurplusPorts: 5, UnknownStructures: 8}, {ID: 2, Address: "10.0.0.2:4000"}, {ID: 3, Name: "s3"}},
		Removed:  []fabric.SwitchConfig{{ID: 5, Name: "s5"}}, RemovedLinks: []live.LinkLabel{{From: "s5/1", To: "s1/9"}},
		Missing: []fabric.SwitchConfig{{ID: 4, Name: "s4"}},
		Links: []live.LinkStatus{
			{Link: fabric.Link{LinkID: link, Capacity: 100 * unit.Mbit}, Traffic: fabric.Traffic{Rate: 25e6, Drops: 1, Errors: math.NaN()}, Sends: read, Receives: read},
			{Link: fabric.Link{LinkID: link.Reverse(), Capacity: unit.Gbit}, Traffic: fabric.Unmeasured()},
		},
		MissingLinks: []fabric.LinkID{{From: fabric.PortID{Switch: 4, Port: 1}, To: fabric.PortID{Switch: 3, Port: 1}}},
		Counters:     live.Counters{PacketIns: 10, Dropped: 4, Forged: 1, Resyncs: 5, Errors: 6, Plans: 2, DroppedFloods: 3},
	}}
	c := NewNetwork(func() *Network { return now })
	want := `
headgate_network_dropped_floods_total 3
headgate_network_dropped_packet_ins_total 4
headgate_network_errors_total 6
headgate_network_faults{kind="looped"} 0
headgate_network_faults{kind="miswired"} 1
headgate_network_faults{kind="one-way"} 2
headgate_network_faults{kind="shared"} 0
headgate_network_forged_frames_total 1
headgate_network_hosts 3
headgate_network_leader 1
headgate_network_link_capacity_bits_per_second{from="0000000000000002/3",to="s1/2"} 1e+09
headgate_network_link_capacity_bits_per_second{from="s1/2",to="0000000000000002/3"} 1e+08
headgate_network_link_receive_errors_total{from="s1/2",to="0000000000000002/3"} 9
headgate_network_link_removed{from="s5/1",to="s1/9"} 1
headgate_network_link_transmit_bytes_total{from="s1/2",to="0000000000000002/3"} 5000
headgate_network_link_transmit_dropped_packets_total{from="s1/2",to="0000000000000002/3"} 7
headgate_network_link_up{from="0000000000000002/3",to="s1/2"} 1
headgate_network_link_up{from="s1/2",to="0000000000000002/3"} 1
headgate_network_link_up{from="s4/1",to="s3/1"} 0
headgate_network_link_utilisation_ratio{from="s1/2",to="0000000000000002/3"} 0.25
headgate_network_switch_current{name="",switch="0000000000000002"} 0
headgate_network_switch_current{name="s1",switch="0000000000000001"} 1
headgate_network_switch_removed{name="s5",switch="0000000000000005"} 1
headgate_network_switch_surplus_ports{name="",switch="0000000000000002"} 0
headgate_network_switch_surplus_ports{name="s1",switch="0000000000000001"} 5
headgate_network_switch_unknown_structures_total{name="s1",switch="0000000000000001"} 8
headgate_network_switch_up{name="",switch="0000000000000002"} 1
headgate_network_switch_up{name="s1",switch="0000000000000001"} 1
headgate_network_switch_up{name="s3",switch="0000000000000003"} 0
headgate_network_switch_up{name="s4",switch="0000000000000004"} 0
headgate_network_switches 2
`
	got := scrape(t, c)
	for line := range strings.Lines(strings.TrimSpace(want)) {
		if !strings.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
	for _, none := range []string{"transmit_errors", "receive_dropped"} {
		if strings.Contains(got, none) {
			t.Errorf("there are %s, which the ports do not count", none)
		}
	}
}

// There are no more links than the maximum, a controller that does not lead exports that alone, and one without switches nothing.
func TestNetworkBounds(t *testing.T) {
	var now *Network
	c := NewNetwork(func() *Network { return now })
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d metrics of a controller that accepts no switches", n)
	}
	now = &Network{}
	if got := scrape(t, c); got != "headgate_network_leader 0\n" {
		t.Errorf("a controller that does not lead exports %s", got)
	}
	now.Leads = true
	for n := range maxLinks + 5 {
		now.Status.Links = append(now.Status.Links, live.LinkStatus{Link: fabric.Link{LinkID: fabric.LinkID{From: fabric.PortID{Switch: 1, Port: fabric.PortNo(n + 1)}}}, Traffic: fabric.Unmeasured()})
	}
	if n := testutil.CollectAndCount(c, "headgate_network_link_up"); n != maxLinks {
		t.Errorf("%d links are exported, want %d", n, maxLinks)
	}
	if got := scrape(t, c); !strings.Contains(got, "headgate_network_links_not_exported 5\n") || !strings.Contains(linksOmitted.String(), fmt.Sprint(maxLinks)) || !strings.Contains(switchSurplus.String(), fmt.Sprint(session.MaxPorts)) {
		t.Errorf("the others are not counted: %s", got)
	}
}

// scrape returns what Prometheus reads of a collector, without comments.
func scrape(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatal(w.Body)
	}
	return regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(w.Body.String(), "")
}
