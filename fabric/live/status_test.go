package live

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/unit"
)

// A switch that is listed is missing while it has not connected, and after it has ended.
func TestMissingSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, [][2]int{{0, 1}})
		w.live.Configure(fabric.Config{
			Sites:        []fabric.Site{{Name: "north"}},
			Switches:     []fabric.SwitchConfig{{ID: 1, Name: "one", Site: "north"}, {ID: 2}, {ID: 7, Name: "seven"}},
			HostsPerPort: 64,
		})
		missing := func(want ...fabric.DPID) {
			t.Helper()
			status := w.live.Status()
			if len(status.Missing) != len(want) {
				t.Fatalf("missing are %+v, want %v", status.Missing, want)
			}
			for i, id := range want {
				if status.Missing[i].ID != id {
					t.Errorf("missing are %+v, want %v", status.Missing, want)
				}
			}
		}
		w.settle(time.Second)
		missing(7)
		if s := w.live.Status(); s.Switches[0].Name != "one" || s.Switches[0].Site != "north" || s.Switches[1].Name != "" || len(s.Sites) != 1 {
			t.Errorf("the switches are %+v, the sites %v", s.Switches, s.Sites)
		}
		w.sw[1].PowerOff()
		w.settle(time.Second)
		missing(2, 7)
	})
}

// Linux routers do not connect: nothing waits for them, none of their links is missing, and the port of a switch that leads to one
// is one of hosts.
func TestRouters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, [][2]int{{0, 1}})
		iface := func(router, name string) fabric.PortRef {
			return fabric.PortRef{Switch: fabric.RouterID(router), Port: fabric.PortName{Name: name}}
		}
		w.live.Configure(fabric.Config{
			Name: "mixed", Switches: []fabric.SwitchConfig{{ID: 1, Name: "one"}, {ID: 2}},
			Routers: []fabric.RouterConfig{{Name: "r1", Host: "r1"}, {Name: "r2", Host: "r2"}},
			Links: []fabric.LinkConfig{
				{Ends: [2]fabric.PortRef{{Switch: 1, Port: fabric.PortName{No: 1}}, iface("r1", "eth0")}, Capacity: unit.Gbit, Cost: 1},
				{Ends: [2]fabric.PortRef{iface("r1", "eth1"), iface("r2", "eth1")}, Capacity: unit.Gbit, Cost: 1},
			},
			Hosts:        []fabric.HostConfig{{HostID: fabric.HostID{MAC: fabric.MAC{2, 7}}, Name: "h7", At: iface("r2", "eth0"), Capacity: unit.Gbit}},
			Listen:       []fabric.Listener{{Address: netip.MustParseAddrPort("0.0.0.0:6653"), TLS: true}},
			HostsPerPort: 64,
		})
		w.settle(time.Second)
		if s := w.live.Status(); !s.Settled || len(s.Switches) != 2 || len(s.Missing)+len(s.MissingLinks)+len(s.Hosts) > 0 {
			t.Errorf("settled %v, missing %v and %v, hosts %v", s.Settled, s.Missing, s.MissingLinks, s.Hosts)
		}
		at := fabric.PortID{Switch: 1, Port: 1}
		if use := w.live.Status().Switches[0].Ports[0].Use; use != ToHosts || !w.live.isHostPort(at) {
			t.Errorf("the port to a router is for %s", use)
		}
		w.ping(time.Second)
		w.settle(time.Second)
		if s := w.live.Status(); len(s.Hosts) != 2 { // those of the switches, one of them at the port to the router
			t.Errorf("hosts %v", s.Hosts)
		}
		if w.has(fabric.SwitchChanged, "") {
			t.Error("the switches differ from the configuration")
		}
	})
}

// A switch is read when it connects, and once more when something in it was changed. What it refuses counts.
func TestCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, [][2]int{{0, 1}})
		w.settle(time.Second)
		w.ping(time.Second)
		w.settle(countInterval)
		if c := w.live.Counters(); c.Resyncs != 2 || c.Errors != 0 {
			t.Errorf("%d readings of two switches, %d errors", c.Resyncs, c.Errors)
		}
		w.deleteAll(w.sw[0])
		w.settle(countInterval + time.Second)
		if c := w.live.Counters(); c.Resyncs != 3 {
			t.Errorf("%d readings after the flows of one of two switches were deleted, want 3", c.Resyncs)
		}
		w.live.mu.Lock()
		conn := w.live.switches[1].conn
		w.live.mu.Unlock()
		w.live.Handle(conn, &openflow.Error{Kind: openflow.ErrBadRequest})
		if c := w.live.Counters(); c.Errors != 1 {
			t.Errorf("%d errors after one", c.Errors)
		}
	})
}
