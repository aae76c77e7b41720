package live

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/fabric/openflow/session"
	"headgate.dev/headgate/fabric/program"
)

// mixed are switches that differ in what they can do: one table and no groups, everything, six tables and few groups, one table
// with groups, seven tables without groups.
var mixed = []oftest.Options{
	{Tables: 1, Limits: oftest.Limits{Groups: -1, Meters: -1}, NoLocalPort: true},
	{},
	{Tables: 6, Limits: oftest.Limits{Groups: 4, Meters: 4, Flows: 500}},
	{Tables: 1},
	{Tables: 7, Limits: oftest.Limits{Groups: -1, Meters: -1}},
}

// A switch is asked what it can do, and what is lost by it is named.
func TestCapabilities(t *testing.T) {
	const many, meters = int(openflow.GroupMax), 262_144
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}}, mixed...)
		w.settle(3 * time.Second)
		got := w.live.Status().Switches
		for n, want := range []fabric.Capabilities{
			{Tables: 1, Entries: 1_000_000},
			{Tables: 254, FastFailover: many, All: many, Select: many, Meters: meters, Bands: 8, PacketMeters: true, Senders: true, TCPFlags: true, Local: true},
			{Tables: 6, Entries: 500, FastFailover: 4, All: 4, Select: 4, Meters: 4, Bands: 8, PacketMeters: true, Local: true},
			{Tables: 1, Entries: 1_000_000, FastFailover: many, All: many, Select: many, Meters: meters, Bands: 8, PacketMeters: true, Local: true},
			{Tables: 7, Entries: 1_000_000, Senders: true, TCPFlags: true, Local: true},
		} {
			if got[n].Capabilities != want {
				t.Errorf("switch %d has %+v, want %+v", n+1, got[n].Capabilities, want)
			}
			lost := program.Lost(got[n].Capabilities)
			if (len(lost) > 0) != (n != 1) {
				t.Errorf("switch %d: lost: %q", n+1, lost)
			}
			for _, text := range lost {
				if !w.has(fabric.SwitchLimited, fmt.Sprintf("switch %v: %s", fabric.DPID(n+1), text)) {
					t.Errorf("switch %d: no event with %q", n+1, text)
				}
			}
		}
	})
}

// sendAll sends a broadcast of a host that no switch answers.
func sendAll(h *oftest.Host) {
	mac := h.MAC()
	h.Send(append(append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac[:]...), append([]byte{0x88, 0xb5}, make([]byte, 46)...)...))
}

// broadcasts sends a broadcast from each host, and returns the hosts of other switches that did not receive it once.
func (w *world) broadcasts() (wrong []string) {
	for i, from := range w.hosts {
		for _, h := range w.hosts {
			h.Forget()
		}
		sendAll(from)
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		for j, h := range w.hosts {
			n := 0
			for _, r := range h.Received() {
				if r.Frame[12] == 0x88 && r.Frame[13] == 0xb5 {
					n++
				}
			}
			if want := min(1, max(i-j, j-i)); n != want {
				wrong = append(wrong, fmt.Sprintf("%s received %d broadcasts of %s, want %d", h.Name(), n, from.Name(), want))
			}
		}
	}
	return wrong
}

// Switches of all kinds are in one network: all hosts reach each other over IPv4 and IPv6, each broadcast arrives once at a port,
// and nothing goes round, while cables are taken out and put in.
func TestMixedNetworks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		switches := rapid.IntRange(2, 6).Draw(r, "switches")
		cables := [][2]int{}
		for n := 1; n < switches; n++ {
			cables = append(cables, [2]int{rapid.IntRange(0, n-1).Draw(r, "cable to"), n})
		}
		tree := len(cables)
		for range rapid.IntRange(1, 4).Draw(r, "more cables") {
			a := rapid.IntRange(0, switches-2).Draw(r, "from")
			cables = append(cables, [2]int{a, rapid.IntRange(a+1, switches-1).Draw(r, "to")})
		}
		var kinds []oftest.Options
		for range switches {
			kinds = append(kinds, mixed[rapid.IntRange(0, len(mixed)-1).Draw(r, "kind")])
		}
		changes := rapid.SliceOfN(rapid.IntRange(tree, len(cables)-1), 0, 4).Draw(r, "changes")
		var wrong []string
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, switches, cables, kinds...)
			defer w.stop()
			check := func(when string) {
				missing, _ := w.ping(time.Second)
				w.settle(time.Second)
				for _, m := range append(missing, w.broadcasts()...) {
					wrong = append(wrong, when+": "+m)
				}
				if s := w.net.Storm(); s.Looped > 0 || s.Overflow > 0 {
					wrong = append(wrong, fmt.Sprintf("%s: frames go round: %+v", when, s))
				}
			}
			w.settle(3 * time.Second)
			check("at the start")
			out := map[int]bool{}
			for _, i := range changes { // those of the tree stay
				if out[i] = !out[i]; out[i] {
					w.cables[i].Unplug()
				} else if err := w.cables[i].Plug(); err != nil {
					t.Fatal(err)
				}
				for range 20 { // while rules change
					for n, h := range w.hosts {
						sendAll(h)
						h.SendUDP(7, netip.AddrPortFrom(w.hosts[(n+1)%switches].Addr(false), 7), nil)
					}
					time.Sleep(500 * time.Microsecond)
				}
				w.settle(3 * time.Second)
				check(fmt.Sprintf("after cable %v", cables[i]))
			}
		})
		if len(wrong) > 0 {
			r.Fatalf("%v", wrong)
		}
	})
}

// A port that sends 20,000 frames per second for the controller does not slow the others of its switch: a meter bounds it, or a
// rule that drops all of it. The port is named.
func TestFlood(t *testing.T) {
	for _, c := range []struct {
		name    string
		options oftest.Options
		within  time.Duration // of the flood, until the others are not slowed
		most    uint64        // packet-ins of the flood
	}{
		{"meters", oftest.Options{}, 0, 400 + 5*250 + 200},
		{"one table with meters", oftest.Options{Tables: 1}, 0, 400 + 5*250 + 200},
		{"no meters", oftest.Options{Limits: oftest.Limits{Meters: -1}}, 100 * time.Millisecond, 4_000},
		{"one table without meters", oftest.Options{Tables: 1, Limits: oftest.Limits{Meters: -1}}, 100 * time.Millisecond, 4_000},
	} {
		for _, frame := range []string{"ARP", "neighbour solicitation", "LLDP", "unknown source", "unknown destination"} {
			if testing.Short() && (c.options.Tables > 0 || frame != "ARP") {
				continue // under the race detector all of them take a minute
			}
			t.Run(c.name+", "+frame, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testFlood(t, c.options, frame, c.within, c.most) })
			})
		}
	}
}

func testFlood(t *testing.T, options oftest.Options, kind string, within time.Duration, most uint64) {
	w := newWorld(t, 2, [][2]int{{0, 1}}, options)
	bad, err := w.net.AddHost(hostOptions(9), oftest.End{Switch: w.sw[0], Port: 99}, oftest.CableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.settle(3 * time.Second)
	bad.Announce()
	w.ping(time.Second)
	w.settle(time.Second)
	mac := bad.MAC()
	frame := func(n int) []byte {
		b := append(append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac[:]...), 0x08, 0x06)
		switch kind {
		case "neighbour solicitation":
			b = append(b[:12], 0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255)
			b = append(b, make([]byte, 32)...)
			return append(append(b, 135, 0, 0, 0), make([]byte, 20)...)
		case "LLDP":
			b = append(b[:12], 0x88, 0xcc)
		case "unknown source":
			b[7], b[10], b[11], b[12], b[13] = 9, byte(n>>8), byte(n), 0x88, 0xb5
		case "unknown destination":
			copy(b, []byte{2, 9, 9, 9, 9, 9})
			b[12], b[13] = 0x88, 0xb5
		}
		return append(b, make([]byte, 46)...)
	}
	before := w.live.Counters()
	began := time.Now()
	for n := 0; time.Since(began) < 5*time.Second; time.Sleep(time.Millisecond) {
		for range 20 {
			bad.Send(frame(n))
			n++
		}
		since := time.Since(began)
		if since%(500*time.Millisecond) != 0 || since < within {
			continue
		}
		from := []*oftest.Host{w.hosts[0]}
		if kind == "unknown destination" || kind == "unknown source" {
			from = append(from, bad) // it can still ask for addresses
		}
		for _, h := range from {
			h.Forget() // the address is asked for again
			p := h.Ping(w.hosts[1].Addr(since%time.Second == 0))
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			if _, ok := p.RTT(); !ok {
				t.Errorf("%v after the flood began: no answer to %s within 20 ms", since, h.Name())
			}
		}
	}
	if got := w.live.Counters().PacketIns - before.PacketIns; got > most {
		t.Errorf("%d packet-ins, want at most %d", got, most)
	}
	if !w.has(fabric.PortLimited, "0000000000000001/99") {
		t.Errorf("no event names the port: %v", w.events)
	}
	if links := w.live.Plan().Topology.Links(); len(links) != 2 {
		t.Errorf("links %v, want 2", links)
	}
	// Afterwards the port is served again.
	time.Sleep(quietTime + 2*time.Second)
	bad.Forget()
	p := bad.Ping(w.hosts[1].Addr(false))
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	if _, ok := p.RTT(); !ok {
		t.Error("no answer after the flood")
	}
}

// Old flows of Headgate that fill a table are deleted, although the switch refuses what is added before.
func TestFullTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 40
		w := newWorld(t, 2, [][2]int{{0, 1}}, oftest.Options{Limits: oftest.Limits{Flows: limit}})
		for n := range limit {
			old := program.Discovery(0)
			old.Priority, old.Match = 9000, openflow.Match{openflow.InPort(openflow.PortNo(1000 + n))}
			_ = w.sw[0].Do(old.Mod()) // the last may be too many
		}
		w.settle(2*retry + 5*time.Second) // what the first try deletes makes room for the next
		if missing, _ := w.ping(time.Second); len(missing) > 0 {
			t.Errorf("no answer: %v", missing)
		}
	})
}

// A switch that has bundles is found by opening one, and one that does not answer lacks what it was asked about.
func TestCapabilitiesOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		bundles bool
		want    fabric.Capabilities
		within  time.Duration
	}{
		"bundles": {true, fabric.Capabilities{Tables: 1, Entries: 9, Bundles: true}, 0},
		"silent":  {false, fabric.Capabilities{Tables: 1, Entries: 9}, askTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, err := openScripted(t.Context(), c.bundles, session.Options{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer conn.Close()
			began := time.Now()
			if got := capabilitiesOf(t.Context(), conn); got != c.want {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
			if d := time.Since(began); d != c.within {
				t.Errorf("%s: after %v, want %v", name, d, c.within)
			}
		})
	}
}

// openScripted returns the session of a switch with one table and one port. It has no groups and no meters, and bundles; or it
// does not answer when it is asked for these.
func openScripted(ctx context.Context, answers bool, o session.Options) (*session.Conn, error) {
	ours, theirs := net.Pipe()
	go serve(theirs, func(m openflow.Message) openflow.Message {
		switch m := m.(type) {
		case *openflow.Hello:
			return openflow.NewHello(openflow.Version)
		case *openflow.EchoRequest:
			return &openflow.EchoReply{}
		case *openflow.FeaturesRequest:
			return &openflow.FeaturesReply{DatapathID: 7, Tables: 1}
		case *openflow.BundleControl:
			if answers {
				return &openflow.BundleControl{ID: m.ID, Control: m.Control + 1, Flags: m.Flags}
			}
		case *openflow.MultipartRequest:
			switch m.Body.(type) {
			case *openflow.DescRequest:
				return &openflow.MultipartReply{Body: &openflow.Desc{}}
			case *openflow.PortDescRequest:
				return &openflow.MultipartReply{Body: &openflow.PortDescReply{Ports: []openflow.Port{{No: 1}}}}
			case *openflow.TableFeaturesList:
				return &openflow.MultipartReply{Body: &openflow.TableFeaturesList{Tables: []openflow.TableFeatures{{MaxEntries: 9}}}}
			}
			if answers {
				return &openflow.Error{Kind: openflow.ErrBadRequest, Code: openflow.RequestBadMultipart}
			}
		}
		return nil
	})
	return session.Open(ctx, ours, o)
}

// BenchmarkFlood takes frames of a port that floods the controller.
func BenchmarkFlood(b *testing.B) {
	n := New(b.Context(), Options{Key: []byte("key")})
	conn, err := openScripted(b.Context(), true, SessionOptions())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	n.attach(&attached{id: fabric.DPID(conn.DatapathID()), conn: conn, capabilities: fabric.Capabilities{Tables: 1}}, &program.State{})
	wire, err := openflow.Append(nil, 0, &openflow.PacketIn{
		Buffer: openflow.NoBuffer, TotalLen: 64, Cookie: program.Discovery(0).Cookie, Match: openflow.Match{openflow.InPort(1)}, Data: make([]byte, 64),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, m, err := openflow.Decode(wire)
		if err != nil {
			b.Fatal(err)
		}
		n.Handle(conn, m)
	}
	b.ReportMetric(float64(n.Counters().Dropped)/float64(b.N), "dropped/op")
}

// serve answers the messages of a controller, until the connection ends.
func serve(conn net.Conn, answer func(openflow.Message) openflow.Message) {
	defer conn.Close()
	for {
		head := make([]byte, openflow.HeaderLen)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		n, err := openflow.Length(head)
		if err != nil {
			return
		}
		b := append(head, make([]byte, n-len(head))...)
		if _, err := io.ReadFull(conn, b[len(head):]); err != nil {
			return
		}
		xid, m, err := openflow.Decode(b)
		if err != nil {
			return
		}
		if reply := answer(m); reply != nil {
			if b, err = openflow.Append(nil, xid, reply); err == nil {
				_, err = conn.Write(b)
			}
			if err != nil {
				return
			}
		}
	}
}
