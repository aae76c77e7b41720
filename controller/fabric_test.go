package controller_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/controller/controllertest"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/store/storetest"
)

// switches are two switches in memory with two cables between them and a host each.
type switches struct {
	t     *testing.T
	sw    []*oftest.Switch
	hosts []*oftest.Host
}

func newSwitches(t *testing.T) *switches {
	s := &switches{t: t}
	n := oftest.NewNetwork()
	for i := range byte(2) {
		sw := n.AddSwitch(fmt.Sprint("s", i+1), oftest.Options{DatapathID: uint64(i + 1)})
		for no := range openflow.PortNo(3) {
			if err := sw.AddPort(oftest.PortOptions{No: no + 1, Down: true}); err != nil {
				t.Fatal(err)
			}
		}
		h, err := n.AddHost(oftest.HostOptions{Name: fmt.Sprint("h", i+1), MAC: openflow.MAC{2, 0, 0, 0, 0, i + 1}, Addrs: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, i + 1}), 24),
		}}, oftest.End{Switch: sw, Port: 1}, oftest.CableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.sw, s.hosts = append(s.sw, sw), append(s.hosts, h)
	}
	for no := range openflow.PortNo(2) {
		if _, err := n.AddCable(oftest.End{Switch: s.sw[0], Port: no + 2}, oftest.End{Switch: s.sw[1], Port: no + 2}, oftest.CableOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// connect keeps the switches connected to a controller until the test ends.
func (s *switches) connect(address string) {
	s.dial(func(ctx context.Context, _ int) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	})
}

// dial keeps the switches connected by a function, which gets their index, until stop or the end of the test.
func (s *switches) dial(dial func(ctx context.Context, n int) (net.Conn, error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for n, sw := range s.sw {
		running.Go(func() {
			sw.Dial(ctx, time.Second, func(ctx context.Context) (net.Conn, error) { return dial(ctx, n) })
		})
	}
	stop = func() {
		cancel()
		running.Wait()
	}
	s.t.Cleanup(stop)
	return stop
}

// ping pings from the first host to the second until there is an answer.
func (s *switches) ping() {
	s.t.Helper()
	for range 100 {
		p := s.hosts[0].Ping(s.hosts[1].Addr(false))
		for range 10 {
			if time.Sleep(20 * time.Millisecond); p.Answers() > 0 {
				return
			}
		}
	}
	s.t.Fatal("no answer to pings for 20 s")
}

// rules are the flows that connect hosts and switches, by what identifies them, with their ages. That of discovery frames is
// left out: each leader sends it first.
func (s *switches) rules() map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, sw := range s.sw {
		for _, f := range sw.Flows() {
			if kind, _ := program.KindOf(f.Cookie); kind != program.KindDiscovery {
				all[fmt.Sprint(sw.DatapathID(), f.Table, f.Priority, f.Match, f.Instructions)] = f.Duration.Duration()
			}
		}
	}
	return all
}

// settled waits until a controller shows a network that has settled with this many switches, cables and hosts.
func (s *service) settled(switches, cables, hosts int) (n api.Network) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if r := s.do(s.operator, "GET", "/v1/network", ""); r.status == 200 {
			n = api.Network{}
			r.into(s.t, &n)
			if n.Settled && len(n.Switches) == switches && len(n.Links) == 2*cables && len(n.Hosts) == hosts {
				return n
			}
		}
	}
	s.t.Fatalf("after 20 s the network is %+v", n)
	return n
}

// The leader connects the switches that connect to it, and every controller shows them. When another controller becomes the
// leader, the flows stay.
func TestNetwork(t *testing.T) {
	t.Parallel()
	member := storetest.Start(t)
	config := controllertest.Config()
	config.OpenFlow = "127.0.0.1:0"
	prometheus, err := metrics.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config.Metrics = prometheus
	first := startOn(t, storetest.Open(t, member), config, nil)
	config.Metrics = nil
	config.Name, config.Peers = "c2", []string{strings.TrimPrefix(first.url, "https://")}
	first.settled(0, 0, 0) // it is the leader
	second := startOn(t, storetest.Open(t, member), config, nil)
	second.operator = first.operator

	w := newSwitches(t)
	w.connect(first.openflow)
	w.connect(second.openflow)
	first.settled(2, 2, 0)
	w.ping()
	n := second.settled(2, 2, 2) // it asks the first
	w.ping()                     // by the flows, as the first may have gone through the controller
	if len(n.Listen) != 1 || n.Listen[0] != (api.NetworkListener{Address: first.openflow}) || n.Hosts[0].Mac != "02:00:00:00:00:01" || !slices.Equal(n.Hosts[0].Addresses, []string{"10.0.0.1"}) || n.Hosts[0].Learned != api.LearnedARP {
		t.Errorf("the network is %+v", n)
	}
	if s := n.Switches[1]; s.Id != "0000000000000002" || !s.Current || s.Ports[0].Use != api.PortToHosts || s.Ports[1].Use != api.PortToSwitch || s.Ports[0].State != api.PortUp {
		t.Errorf("the second switch is %+v", s)
	}
	for _, controller := range []*service{first, second} {
		var p api.NetworkPath
		controller.must(200, "GET", "/v1/network/path?from=10.0.0.1&to=02:00:00:00:00:02", "").into(t, &p)
		if len(p.Hops) != 2 || *p.Hops[0].InPort != 1 || *p.Hops[1].OutPort != 1 || *p.Hops[0].OutPort != *p.Hops[1].InPort || p.CapacityBps == nil {
			t.Errorf("the path is %+v", p)
		}
		if r := controller.must(404, "GET", "/v1/network/path?from=10.0.0.1&to=10.0.0.9", ""); !strings.Contains(r.text, "no host and no switch is known as 10.0.0.9") {
			t.Error(r.text)
		}
		var way api.NetworkTrace
		controller.must(200, "GET", "/v1/network/trace?packet=tcp%2010.0.0.1:1000%2010.0.0.2:80&from=10.0.0.1", "").into(t, &way)
		if last := way.Hops[len(way.Hops)-1]; len(way.Hops) != 2 || last.Switch != "0000000000000002" || last.Label == nil || *last.Label < 3072 || *last.Steps[len(last.Steps)-1].End != api.EndDelivered || (*last.Steps[len(last.Steps)-1].Hosts)[0] != "02:00:00:00:00:02" {
			t.Errorf("the trace is %+v", way)
		}
		controller.must(400, "GET", "/v1/network/trace?packet=tcp%2010.0.0.1&from=10.0.0.1", "")
		controller.must(404, "GET", "/v1/network/trace?packet=broadcast&from=10.0.0.9", "")
		if r := controller.must(200, "GET", "/v1/network/events", ""); !strings.Contains(r.text, `"kind":"link-added"`) {
			t.Errorf("the events are %s", r.text)
		}
		var flows api.SwitchFlowList
		controller.must(200, "GET", "/v1/network/switches/0000000000000001/flows", "").into(t, &flows)
		if !slices.ContainsFunc(flows.Items, func(f api.SwitchFlow) bool {
			return f.TableName != nil && *f.TableName == "deliver" && f.Packets > 0 && strings.HasPrefix(*f.Rule, "MAC and VLAN of a host of this switch")
		}) {
			t.Errorf("no flow to a host in %+v", flows)
		}
		var h api.NetworkLinkHistory
		for end := time.Now().Add(20 * time.Second); len(h.Items) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			h = api.NetworkLinkHistory{}
			controller.must(200, "GET", "/v1/network/links/0000000000000001/2/history", "").into(t, &h)
		}
		if len(h.Items) == 0 || h.To == nil || *h.To != (api.NetworkPortID{Switch: "0000000000000002", Port: 2}) || *h.IntervalNs != time.Second.Nanoseconds() || h.Items[0].RateBps <= 0 {
			t.Errorf("the history of a link is %+v", h)
		}
		n = controller.settled(2, 2, 2)
		for _, l := range n.Links {
			if l.From == h.From && (l.RateBps == nil || *l.RateBps <= 0) || l.DropsPerS != nil || *l.Cost != 1 { // discovery frames; drops are not counted
				t.Errorf("link %+v", l)
			}
		}
		if p := n.Switches[0].Ports[1]; p.TxBps == nil || *p.TxBps <= 0 || p.RxBps == nil || *p.RxBps <= 0 {
			t.Errorf("the rates of port %+v", p)
		}
		var ofHost api.NetworkLinkHistory
		if controller.must(200, "GET", "/v1/network/links/0000000000000001/1/history", "").into(t, &ofHost); ofHost.To != nil {
			t.Errorf("the port of a host has a link to %+v", ofHost.To)
		}
		controller.must(404, "GET", "/v1/network/links/0000000000000001/9/history", "")
		controller.must(404, "GET", "/v1/network/links/0000000000000009/1/history", "")
		controller.must(400, "GET", "/v1/network/links/0000000000000001/0/history", "")
		controller.must(404, "GET", "/v1/network/switches/0000000000000009/flows", "")
		controller.must(400, "GET", "/v1/network/switches/s1/flows", "")
		controller.must(400, "GET", "/v1/network/path?from=10.0.0.1", "")
	}
	r, err := http.Get("http://" + prometheus.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	r.Body.Close()
	for _, want := range []string{"headgate_network_leader 1", "headgate_network_switches 2", `headgate_network_link_transmit_bytes_total{from="0000000000000001/2",to="0000000000000002/2"} `} {
		if err != nil || !strings.Contains(string(text), "\n"+want) {
			t.Errorf("no metric %s, %v", want, err)
		}
	}
	before := w.rules()

	first.stop()
	second.settled(2, 2, 2)
	w.ping()
	after := w.rules()
	for rule, age := range before {
		if now, ok := after[rule]; !ok || now < age {
			t.Errorf("%s was written again, or is gone: it was %v old, and is %v old", rule, age, now)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d rules after the change of the leader, %d before", len(after), len(before))
	}
	for _, sw := range w.sw {
		if roles := sw.Controllers(); !slices.Contains(roles, openflow.RoleMaster) || slices.Contains(roles, openflow.RoleEqual) {
			t.Errorf("the controllers of a switch are %v", roles)
		}
	}
}

// A service without a listener for switches shows an empty network.
func TestNoNetwork(t *testing.T) {
	t.Parallel()
	s := start(t)
	if n := s.settled(0, 0, 0); len(n.Listen) != 0 {
		t.Errorf("the network is %+v", n)
	}
	s.must(200, "GET", "/v1/network/events", "")
	s.must(404, "GET", "/v1/network/path?from=a&to=b", "")
	s.must(404, "GET", "/v1/network/trace?packet=broadcast&from=a", "")
	s.must(404, "GET", "/v1/network/switches/0000000000000001/flows", "")
	s.must(404, "GET", "/v1/network/links/0000000000000001/1/history", "")
}
