package live

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/openflow/session"
)

// asks lets a host ask for so many addresses that no host has.
func (w *world) asks(host, questions int) {
	w.Helper()
	h := w.hosts[host]
	for n := range questions {
		target := netip.AddrFrom4([4]byte{10, 200, byte(n >> 8), byte(n)})
		h.Send(arp(1, fabric.MAC(oftest.Broadcast), 0, fabric.MAC(h.MAC()), target, fabric.MAC{}, h.Addr(false)))
	}
}

// A host that scans a network has a bound of its own, which is named, and another finds a host that has never sent anything.
func TestScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, ring)
		w.settle(time.Second)
		before := w.live.Counters()
		for range 50 {
			w.asks(0, 30)
			w.settle(200 * time.Millisecond)
		}
		c := w.live.Counters()
		if flooded := c.Flooded - before.Flooded; flooded < floodBurst+9*floodRate || flooded > floodBurst+11*floodRate || c.DroppedFloods == 0 {
			t.Errorf("%d questions were sent on in 10 s, and %d dropped, want %d and others", flooded, c.DroppedFloods, floodBurst+10*floodRate)
		}
		if !w.has(fabric.PortLimited, "0000000000000001/1 sends more than 20 frames per second to addresses that no known host has") {
			t.Error("no event names the port")
		}
		p := w.hosts[1].Ping(w.hosts[2].Addr(false))
		w.settle(200 * time.Millisecond)
		if _, ok := p.RTT(); !ok {
			t.Error("another host does not find one that is silent")
		}
	})
}

// What hosts tell of their own addresses goes to no other host, unless the address was another's: others may still send to that one.
func TestAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4, ring)
		w.settle(time.Second)
		for _, h := range w.hosts {
			h.Announce()
		}
		w.settle(time.Second)
		if n := w.live.Counters().Flooded; n > 0 {
			t.Errorf("%d announcements of new hosts were sent to all others", n)
		}
		heir := hostOptions(50)
		heir.Name, heir.Addrs = "heir", hostOptions(0).Addrs
		h, err := w.net.AddHost(heir, oftest.End{Switch: w.sw[3], Port: 99}, oftest.CableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if missing, _ := w.ping(time.Second); len(missing) > 0 {
			t.Errorf("no answer: %v", missing)
		}
		if err := w.hosts[0].Move(oftest.End{Switch: w.sw[1], Port: 99}, oftest.CableOptions{}); err != nil { // its port is down
			t.Fatal(err)
		}
		w.settle(time.Second)
		before := w.live.Counters().Flooded
		h.Announce()
		w.settle(time.Second)
		if n := w.live.Counters().Flooded - before; n != uint64(len(heir.Addrs)) {
			t.Errorf("%d of %d announcements of addresses that had another host were sent to all others", n, len(heir.Addrs))
		}
	})
}

// All ports together have a bound of copies, and ports that scan leave half of it to others.
func TestCopies(t *testing.T) {
	n := New(t.Context(), Options{Key: []byte("key")})
	n.mu.Lock()
	defer n.mu.Unlock()
	const copies = 10_000
	now := time.Now()
	flood := func(p fabric.PortNo) bool {
		ok := n.mayFlood(fabric.PortID{Switch: 1, Port: p}, now)
		if ok {
			n.flooded(copies)
		}
		return ok
	}
	scan := func(ports int) (passed int) {
		for range 100 {
			for p := range ports {
				if flood(fabric.PortNo(p + 1)) {
					passed++
				}
			}
		}
		return passed
	}
	const all = copyBurst / copies
	if got := scan(2); got != all {
		t.Errorf("%d frames of two ports pass at first, want %d: each has used no more than half of its own", got, all)
	}
	now = now.Add(time.Minute) // the buckets are full again
	if got := scan(20); got != all {
		t.Errorf("%d frames of 20 ports pass, want %d", got, all)
	}
	// They go on for a minute: what they take is what comes in above the half, and a port that has asked for nothing gets through at once.
	passed, others := 0, 0
	for second := range 60 {
		now = now.Add(time.Second)
		passed += scan(20)
		if flood(fabric.PortNo(1000 + second)) {
			others++
		}
	}
	if others != 60 {
		t.Errorf("%d of 60 other ports get through", others)
	}
	if got := passed + others; got > 60*copyRate/copies || got < 60*copyRate/copies-all/2-1 { // the half is filled again first
		t.Errorf("%d frames pass in a minute, want %d", got, 60*copyRate/copies)
	}
	if n.counters.DroppedFloods == 0 || n.counters.Flooded == 0 {
		t.Errorf("nothing was counted: %+v", n.counters)
	}
}

// A switch that adds and deletes ports leaves nothing behind, and one with more ports than are kept is named.
func TestManyPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, [][2]int{{0, 1}})
		w.settle(time.Second)
		for no := range openflow.PortNo(5000) {
			if err := w.sw[0].AddPort(oftest.PortOptions{No: 1000 + no}); err != nil {
				t.Fatal(err)
			}
		}
		w.settle(time.Second)
		s := w.live.Status().Switches[0]
		w.live.mu.Lock()
		ports := len(w.live.ports)
		w.live.mu.Unlock()
		if len(s.Ports) != session.MaxPorts-1 || s.SurplusPorts != 5003+1-session.MaxPorts || ports > 2*session.MaxPorts { // LOCAL is one of them, and not in Ports
			t.Errorf("%d ports are shown, %d are surplus, and %d are up in the loop", len(s.Ports), s.SurplusPorts, ports)
		}
		if !w.has(fabric.SwitchLimited, "ports more than the 1024 that are used") {
			t.Error("no event names it")
		}
		w.live.mu.Lock()
		for id := range w.live.ports {
			w.live.unknown.of(id, time.Now())
		}
		w.live.mu.Unlock()
		for no := range openflow.PortNo(5000) {
			w.sw[0].RemovePort(1000 + no)
		}
		w.settle(time.Second)
		w.live.mu.Lock()
		defer w.live.mu.Unlock()
		if len(w.live.ports) > 10 || len(w.live.unknown) > 10 {
			t.Errorf("%d ports and %d buckets remain", len(w.live.ports), len(w.live.unknown))
		}
	})
}
