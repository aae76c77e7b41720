package clients

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
)

// connectSwitches connects two switches in memory, with a cable between them, a cable from the first to itself, and a host at
// the second.
func (s *service) connectSwitches(t *testing.T) {
	t.Helper()
	n := oftest.NewNetwork()
	var all []*oftest.Switch
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for id := range uint64(2) {
		sw := n.AddSwitch("", oftest.Options{DatapathID: id + 1})
		for no := range openflow.PortNo(3) {
			must(sw.AddPort(oftest.PortOptions{No: no + 1, Down: true}))
		}
		all = append(all, sw)
	}
	for _, ends := range [][2]oftest.End{{{Switch: all[0], Port: 1}, {Switch: all[1], Port: 1}}, {{Switch: all[0], Port: 2}, {Switch: all[0], Port: 3}}} {
		_, err := n.AddCable(ends[0], ends[1], oftest.CableOptions{})
		must(err)
	}
	h, err := n.AddHost(oftest.HostOptions{MAC: openflow.MAC{2, 0, 0, 0, 0, 1}, Addrs: []netip.Prefix{netip.MustParsePrefix("10.9.0.1/24")}}, oftest.End{Switch: all[1], Port: 2}, oftest.CableOptions{})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, sw := range all {
		running.Go(func() {
			sw.Dial(ctx, time.Second, func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", s.OpenFlow)
			})
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		h.Announce()
		is, err := client.Decode[client.Network](s.client.GetNetwork(t.Context()))
		linked := slices.ContainsFunc(is.Links, func(l client.NetworkLink) bool { return l.To.Switch != l.From.Switch })
		if err == nil && is.Settled && linked && len(is.Switches) == 2 && len(is.Hosts) == 1 && len(is.Faults) > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after 20 s the network is %+v, %v", is, err)
		}
	}
}
