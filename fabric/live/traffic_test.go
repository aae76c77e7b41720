package live

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/oftest"
	"headgate.dev/headgate/unit"
)

// stream sends 30 Mbit/s over the cables from one host to another, of frames that have 1,496 bytes at the hosts and 1,500 with the label
// between switches.
func (w *world) stream(from, to int) *oftest.Stream {
	const size = 1496
	a, b := w.hosts[from], w.hosts[to]
	frame := oftest.UDPFrame(a.MAC(), b.MAC(), netip.AddrPortFrom(a.Addr(false), 1), netip.AddrPortFrom(b.Addr(false), 2), size)
	return w.net.AddStream(a, frame, hostRate)
}

const (
	linkRate = 30 * unit.Mbit
	hostRate = linkRate * 1496 / 1500
	// discoveryRate is more than the discovery frames of a port.
	discoveryRate = 4 * unit.Kbit
)

// links are the rates of links, by the switches at their ends.
func (w *world) links() map[string]float64 {
	all := map[string]float64{}
	for _, l := range w.live.Status().Links {
		all[fmt.Sprintf("%d-%d", l.From.Switch, l.To.Switch)] = l.Rate
	}
	return all
}

func (w *world) wantRate(what string, got float64, want unit.Rate) {
	w.Helper()
	if !(got >= float64(want) && got <= float64(want+discoveryRate)) {
		w.Errorf("%s has %.0f bit/s, want %v", what, got, want)
	}
}

// A link shows the rate that it carries and not the one before, and a port of a host what the host sends and receives. The history
// has both.
func TestTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, [][2]int{{0, 1}, {1, 2}})
		w.settle(time.Second)
		for what, rate := range w.links() {
			if !math.IsNaN(rate) {
				t.Errorf("link %s has %v bit/s before the second reading", what, rate)
			}
		}
		w.ping(time.Second)
		w.settle(time.Second)
		time.Sleep(5 * time.Millisecond) // no reading is at the moment of an advance
		defer w.net.AdvanceEvery(10 * time.Millisecond)()
		began := time.Now()
		s := w.stream(0, 2)
		w.settle(3 * time.Second)
		for what, rate := range w.links() {
			w.wantRate("link "+what, rate, map[string]unit.Rate{"1-2": linkRate, "2-3": linkRate}[what])
		}
		status := w.live.Status()
		w.wantRate("what switch 1 receives of its host", status.Switches[0].Ports[0].Rx.Rate, hostRate)
		w.wantRate("what switch 1 sends to its host", status.Switches[0].Ports[0].Tx.Rate, 0)
		w.wantRate("what switch 3 sends to its host", status.Switches[2].Ports[0].Tx.Rate, hostRate)
		w.wantRate("what switch 3 receives of switch 2", status.Switches[2].Ports[1].Rx.Rate, linkRate)
		for _, l := range status.Links {
			if !math.IsNaN(l.Drops) || !math.IsNaN(l.Errors) {
				t.Errorf("link %v has %v drops and %v errors, which the switches do not count", l.LinkID, l.Drops, l.Errors)
			}
			if l.From.Switch == 1 && l.Sends.Tx.Bytes < 7_500_000 {
				t.Errorf("the counters of link %v are %+v", l.LinkID, l.Sends)
			}
		}

		s.SetRate(hostRate / 2)
		w.settle(2 * time.Second)
		w.wantRate("link 1-2 with half of the traffic", w.links()["1-2"], linkRate/2)
		s.Stop()
		w.settle(2 * time.Second)
		w.wantRate("link 1-2 without traffic", w.links()["1-2"], 0)

		for _, c := range []struct {
			port, to fabric.PortID
			rate     unit.Rate
		}{
			{fabric.PortID{Switch: 1, Port: 2}, fabric.PortID{Switch: 2, Port: 2}, linkRate},
			{fabric.PortID{Switch: 3, Port: 1}, fabric.PortID{}, hostRate},
		} {
			h, err := w.live.History(c.port)
			if err != nil || h.To != c.to || h.Interval != pollInterval || len(h.Items) < 8 {
				t.Fatalf("the history of %v is %+v, %v", c.port, h, err)
			}
			bits, last := 0.0, h.Items[0].At
			for _, one := range h.Items[1:] {
				if !one.At.After(last) {
					t.Errorf("a reading of %v at %v is followed by one at %v", c.port, last, one.At)
				}
				bits, last = bits+one.Rate*one.At.Sub(last).Seconds(), one.At
			}
			// 3 s of the rate and 2 s of half of it have passed.
			if want := 4 * float64(c.rate); math.Abs(bits-want) > 0.01*want {
				t.Errorf("the history of %v has %.0f bit in %v, want %.0f", c.port, bits, last.Sub(began), want)
			}
		}
		if _, err := w.live.History(fabric.PortID{Switch: 3, Port: 7}); err != ErrNoPort {
			t.Errorf("the history of a port that does not exist: %v", err)
		}
		if h, err := w.live.History(fabric.PortID{Switch: 1, Port: 99}); err == nil {
			t.Errorf("the history of a port that is down is %+v", h)
		}
	})
}

// A switch that restarts, one that connects again, and a port that was down have no rate over the time between. What was known
// before is in the history.
func TestTrafficBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, [][2]int{{0, 1}, {1, 2}, {2, 0}})
		w.settle(time.Second)
		w.ping(time.Second)
		time.Sleep(5 * time.Millisecond)
		defer w.net.AdvanceEvery(10 * time.Millisecond)()
		w.stream(0, 1)
		w.settle(3 * time.Second)
		link := fabric.PortID{Switch: 1, Port: 2}
		check := func(what string) {
			t.Helper()
			before, _ := w.live.History(link)
			for range 30 {
				w.pass(500 * time.Millisecond)
				if rate := w.links()["1-2"]; !math.IsNaN(rate) && rate > float64(linkRate+discoveryRate) {
					t.Errorf("%s: link 1-2 has %v bit/s", what, rate)
				}
			}
			w.wantRate("after "+what+" link 1-2", w.links()["1-2"], linkRate)
			h, _ := w.live.History(link)
			if len(h.Items) <= len(before.Items) || !h.Items[0].At.Equal(before.Items[0].At) {
				t.Errorf("after %s the history has %d items, and %d before", what, len(h.Items), len(before.Items))
			}
			for _, one := range h.Items {
				if one.Rate > float64(linkRate+discoveryRate) {
					t.Errorf("after %s the history has %+v", what, one)
				}
			}
		}
		w.sw[0].PowerOff()
		w.pass(3 * time.Second)
		w.sw[0].PowerOn()
		check("a restart")
		w.sw[0].Disconnect()
		check("a new connection")
		w.cables[0].Unplug()
		w.pass(3 * time.Second)
		if rate, known := w.links()["1-2"]; known {
			t.Errorf("the link is unplugged, and has %v bit/s", rate)
		}
		w.wantRate("the way around", w.links()["1-3"], linkRate)
		if err := w.cables[0].Plug(); err != nil {
			t.Fatal(err)
		}
		check("a cable was unplugged")
	})
}

// What a port has sent is known for an hour after its switch has ended, and then forgotten.
func TestTrafficForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, [][2]int{{0, 1}})
		w.settle(10 * time.Second)
		w.sw[1].PowerOff()
		port := fabric.PortID{Switch: 2, Port: 2}
		time.Sleep(time.Hour)
		h, err := w.live.History(port)
		if err != nil || len(h.Items) == 0 {
			t.Errorf("an hour after a switch has ended its history is %+v, %v", h, err)
		}
		time.Sleep(5 * time.Minute)
		if h, err := w.live.History(port); err != ErrNoPort {
			t.Errorf("after more than an hour it is %+v, %v", h, err)
		}
		h, err = w.live.History(fabric.PortID{Switch: 1, Port: 1})
		if err != nil || len(h.Items) < fabric.HistoryReadings+100 || len(h.Items) > fabric.HistoryReadings+fabric.HistoryMeans+1 {
			t.Errorf("the history of a port of hosts has %d items, %v", len(h.Items), err)
		}
		if took := time.Since(h.Items[0].At); took > historyKept {
			t.Errorf("the oldest item is %v old", took)
		}
	})
}

// pass waits, whether switches have what they should or not.
func (w *world) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
}

// Each switch is read once in every interval, and no moment of it has many more readings than others.
func TestNextPoll(t *testing.T) {
	for _, switches := range []int{1, 200, 201, 1000} {
		every := interval(switches)
		for _, step := range []uint64{1, 2, 256, 1 << 16, 0x10001} {
			ticks := map[int64]int{}
			for n := range switches {
				id := fabric.DPID(uint64(n)*step + 1)
				now := time.Unix(1_700_000_000, int64(n)*12_345_678)
				first := nextPoll(id, now, every)
				if took := first.Sub(now); took <= 0 || took > every {
					t.Fatalf("switch %v is read in %v", id, took)
				}
				if second := nextPoll(id, first, every); second.Sub(first) != every {
					t.Fatalf("switch %v is read at %v and %v", id, first, second)
				}
				if second := nextPoll(id, first.Add(tick), every); second.Sub(first) != every {
					t.Fatalf("switch %v is read at %v, a tick too late, and then at %v", id, first, second)
				}
				ticks[first.UnixNano()%int64(every)/int64(tick)]++
			}
			for at, n := range ticks {
				if n > 3*pollsPerSecond*int(tick)/int(time.Second) {
					t.Errorf("%d of %d switches with ids in steps of %d are read in tick %d", n, switches, step, at)
				}
			}
		}
	}
	for switches, want := range map[int]time.Duration{0: time.Second, 200: time.Second, 201: 2 * time.Second, 1000: 5 * time.Second} {
		if got := interval(switches); got != want {
			t.Errorf("%d switches are read every %v, want %v", switches, got, want)
		}
	}
}

// BenchmarkReadPorts reads the ports of a switch over TCP, and counts the processor time of both ends. It is the basis of
// pollsPerSecond.
func BenchmarkReadPorts(b *testing.B) {
	for _, ports := range []int{8, 48} {
		b.Run(fmt.Sprint(ports, "-ports"), func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			sw := oftest.New(oftest.Options{DatapathID: 1})
			for no := range ports {
				if err := sw.AddPort(oftest.PortOptions{No: openflow.PortNo(no + 1)}); err != nil {
					b.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			n := New(ctx, Options{Key: []byte("key"), Generation: 1})
			go sw.Dial(ctx, time.Second, func(ctx context.Context) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
			})
			conn, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			go func() { _ = n.Serve(conn) }()
			for len(n.Switches()) == 0 {
				time.Sleep(time.Millisecond)
			}
			n.mu.Lock()
			s := n.switches[1]
			n.mu.Unlock()
			for b.Loop() {
				n.readPorts(s)
			}
			if _, err := n.History(fabric.PortID{Switch: 1, Port: 1}); err != nil {
				b.Fatal(err)
			}
		})
	}
}
