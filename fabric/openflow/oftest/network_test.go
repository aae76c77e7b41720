package oftest

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	of "headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

const ms = time.Millisecond

// addrs is the addresses of host n.
func addrs(n int) []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/24", n)), netip.MustParsePrefix(fmt.Sprintf("fd00::%d/64", n))}
}

// line is a network of switches in a row, of which each has a host at port 1, port 2 to the next and port 3 to the one
// before. All cables have a delay of 1 ms.
type line struct {
	*Network
	t     failer
	sw    []*Switch
	hosts []*Host
	wires []*Cable // from switch i to i+1
}

func newLine(t failer, n int, o Options, c CableOptions) *line {
	t.Helper()
	l := &line{Network: NewNetwork(), t: t}
	if c.Delay == 0 {
		c.Delay = ms
	}
	for i := range n {
		o.DatapathID = uint64(i + 1)
		s := l.AddSwitch(fmt.Sprint("s", i+1), o)
		l.sw = append(l.sw, s)
		for p := range of.PortNo(3) {
			if err := s.AddPort(PortOptions{No: p + 1, Down: true}); err != nil {
				t.Fatal(err)
			}
		}
		h, err := l.AddHost(HostOptions{Name: fmt.Sprint("h", i+1), MAC: mac(byte(i + 1)), Addrs: addrs(i + 1)}, End{s, 1}, CableOptions{Delay: ms})
		if err != nil {
			t.Fatal(err)
		}
		l.hosts = append(l.hosts, h)
		if i > 0 {
			l.join(i-1, i, c)
		}
	}
	return l
}

func (l *line) join(a, b int, o CableOptions) {
	l.t.Helper()
	c, err := l.AddCable(End{l.sw[a], 2}, End{l.sw[b], 3}, o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.wires = append(l.wires, c)
}

// connectAll programs the way to each host by its address, and floods the rest.
func (l *line) connectAll() {
	for i, s := range l.sw {
		do(l.t, s, flowMod(0, 1, nil, apply(output(of.PortFlood))))
		for j := range l.hosts {
			out := of.PortNo(1)
			if j > i {
				out = 2
			} else if j < i {
				out = 3
			}
			do(l.t, s, flowMod(0, 10, of.Match{of.EthDst(mac(byte(j + 1)))}, apply(output(out))))
		}
	}
}

// A ping takes the delays of its way: the first with the resolution of the address.
func TestPing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 3, Options{}, CableOptions{})
		l.connectAll()
		for _, six := range []bool{false, true} {
			for _, want := range []time.Duration{16 * ms, 8 * ms} {
				p := l.hosts[0].Ping(l.hosts[2].Addr(six))
				time.Sleep(time.Second)
				if d, ok := p.RTT(); !ok || d != want || p.Answers() != 1 {
					t.Errorf("IPv6 %v: %v, %d answers, want %v", six, d, p.Answers(), want)
				}
			}
		}
		lost := l.hosts[0].Ping(netip.MustParseAddr("10.0.0.99"))
		time.Sleep(10 * time.Second)
		if _, ok := lost.RTT(); ok {
			t.Error("a host that does not exist answers")
		}
		asked := 0
		for _, r := range l.hosts[1].Received() {
			if p := pipeline.NewPacket(r.Frame, 0); p.EthType() == pipeline.EtherARP && p.Addr(of.FieldARPTPA) == netip.MustParseAddr("10.0.0.99") {
				asked++
			}
		}
		if asked != maxTries {
			t.Errorf("the address was asked for %d times", asked)
		}
		if s := l.Storm(); s.Looped != 0 || s.MostCopies > 7 {
			t.Errorf("a network without loops: %+v", s)
		}
	})
}

// Datagrams go through the gateway if their destination is not on the link.
func TestGateway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 2, Options{}, CableOptions{})
		l.connectAll()
		l.hosts[0].options.Gateways = []netip.Addr{netip.MustParseAddr("10.0.0.2")}
		l.hosts[0].SendUDP(5, netip.MustParseAddrPort("192.168.7.7:9"), []byte("data"))
		time.Sleep(time.Second)
		all := l.hosts[1].Received()
		last := pipeline.NewPacket(all[len(all)-1].Frame, 0)
		if last.Addr(of.FieldIPv4Dst) != netip.MustParseAddr("192.168.7.7") || last.Key.Uint(of.FieldUDPDst) != 9 || all[len(all)-1].Hops != 2 {
			t.Errorf("the gateway received %x", last.Data)
		}
	})
}

// A cable that loses one direction leaves the ports up; one that is unplugged takes both down.
func TestCableFaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 2, Options{}, CableOptions{})
		l.connectAll()
		c := connect(l.sw[1])
		defer c.conn.Close()
		answers := func() bool {
			p := l.hosts[0].Ping(l.hosts[1].Addr(false))
			time.Sleep(100 * ms)
			_, ok := p.RTT()
			return ok
		}
		reaches := func() bool {
			before := len(l.hosts[1].Received())
			_ = answers()
			return len(l.hosts[1].Received()) > before
		}
		if !answers() {
			t.Fatal("no answer over a good cable")
		}
		l.wires[0].Lose(false, true)
		if answers() || !reaches() {
			t.Error("the way back is lost, but not the way there")
		}
		l.wires[0].Lose(true, false)
		if reaches() {
			t.Error("the way there is lost")
		}
		l.wires[0].Lose(false, false)
		if !answers() {
			t.Error("no answer after the loss")
		}
		if got := c.ask(t, &of.EchoReply{}); len(got) != 0 {
			t.Errorf("a silent loss is reported: %v", got)
		}
		l.wires[0].Unplug()
		if answers() || reaches() {
			t.Error("an unplugged cable passes frames")
		}
		if err := l.wires[0].Plug(); err != nil || !answers() {
			t.Errorf("no answer after the cable was plugged in: %v", err)
		}
		got := c.ask(t, &of.EchoReply{})
		if len(got) != 2 || got[0].(*of.PortStatus).Port.State != of.PortLinkDown || got[1].(*of.PortStatus).Port.State != of.PortLive {
			t.Errorf("reported %v", got)
		}
		if _, err := l.AddCable(End{l.sw[0], 2}, End{l.sw[1], 2}, CableOptions{}); err == nil {
			t.Error("a port takes two cables")
		}
	})
}

// What was on a cable when it was unplugged does not arrive.
func TestUnplugInFlight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 2, Options{}, CableOptions{Delay: 10 * ms})
		l.connectAll()
		l.hosts[0].Send(udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 10))
		time.Sleep(5 * ms)
		l.wires[0].Unplug()
		time.Sleep(time.Second)
		if n := len(l.hosts[1].Received()); n != 0 {
			t.Errorf("%d frames arrived", n)
		}
	})
}

// A controller that sets a port down takes the link of the other end away, and a switch without power all of them.
func TestLinkOfOtherEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 2, Options{}, CableOptions{})
		l.connectAll()
		c := connect(l.sw[1])
		defer c.conn.Close()
		down := func(mask of.PortConfig) *of.PortMod {
			return &of.PortMod{No: 2, HWAddr: l.sw[0].mac(2), Config: mask, Mask: of.PortDown}
		}
		do(t, l.sw[0], down(of.PortDown), down(0))
		l.sw[0].PowerOff()
		if len(l.sw[0].Flows()) != 0 {
			t.Error("flows without power")
		}
		l.sw[0].PowerOn()
		got := c.ask(t, &of.EchoReply{})
		if len(got) != 4 {
			t.Fatalf("reported %v", got)
		}
		for i, m := range got {
			want := []of.PortState{of.PortLinkDown, of.PortLive}[i%2]
			if p := m.(*of.PortStatus).Port; p.No != 3 || p.State != want {
				t.Errorf("status %d: %+v, want state %v", i, p, want)
			}
		}
	})
}

// A loop that floods ends by the limit of hops, and is seen; cables added and taken leave no memory behind.
func TestStorm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 3, Options{}, CableOptions{})
		l.join(2, 0, CableOptions{Delay: ms})
		for _, s := range l.sw {
			do(t, s, flowMod(0, 1, nil, apply(output(of.PortFlood))))
		}
		frame := arpFrame(1, "10.0.0.1", "10.0.0.9")
		l.hosts[0].Send(frame)
		time.Sleep(time.Second)
		s := l.Storm()
		if s.Looped != 4 || // of each direction round the loop: to the next switch, and to a host
			s.MostCopies < 2*MaxHops || !bytes.Equal(s.Frame, frame) {
			t.Errorf("storm %+v", s)
		}
		seen := map[uint64]int{}
		for _, r := range l.hosts[1].Received() {
			seen[r.ID]++
		}
		if len(seen) != 1 {
			t.Errorf("copies by id: %v", seen)
		}
		for _, n := range seen {
			if n < MaxHops/3 {
				t.Errorf("a host received %d copies", n)
			}
		}
		if l.total != 0 || len(l.flying) != 0 {
			t.Errorf("%d frames are on cables for ever, %d are known", l.total, len(l.flying))
		}
		l.wires[2].Unplug()
		l.ResetStorm()
		l.hosts[0].Send(frame)
		time.Sleep(time.Second)
		if s := l.Storm(); s.Looped != 0 || s.MostCopies != 5 { // to s1, s2, s3 and their hosts
			t.Errorf("without the loop: %+v", s)
		}
	})
}

// A cable with a capacity sends one frame after the other, and drops what would wait too long.
func TestCapacity(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 2, Options{}, CableOptions{Capacity: 1e6, Queue: 20 * ms})
		l.connectAll()
		began := time.Now()
		for range 10 {
			l.hosts[0].Send(udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 1000-42)) // 8 ms each
		}
		time.Sleep(time.Second)
		got := l.hosts[1].Received()
		if len(got) != 3 {
			t.Fatalf("%d frames arrived, want 3: one is sent while two wait", len(got))
		}
		for i, r := range got {
			if d, want := r.At.Sub(began), 3*ms+time.Duration(i+1)*8*ms; d != want {
				t.Errorf("frame %d arrived after %v, want %v", i, d, want)
			}
		}
	})
}

// A host that moves is found by its announcement, and its old port goes down.
func TestMove(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 2, Options{}, CableOptions{})
		l.connectAll()
		if err := l.sw[0].AddPort(PortOptions{No: 4, Down: true}); err != nil {
			t.Fatal(err)
		}
		if err := l.hosts[0].Move(End{l.sw[0], 2}, CableOptions{}); err == nil {
			t.Error("a host moves to a port that is taken")
		}
		if err := l.hosts[0].Move(End{l.sw[0], 4}, CableOptions{}); err != nil {
			t.Fatal(err)
		}
		if l.sw[0].ports[1].up || !l.sw[0].ports[4].up {
			t.Error("the links did not follow")
		}
		l.hosts[0].Announce()
		time.Sleep(time.Second)
		arps, advertisements := 0, 0
		for _, r := range l.hosts[1].Received() {
			switch p := pipeline.NewPacket(r.Frame, 0); {
			case p.EthType() == pipeline.EtherARP && p.Addr(of.FieldARPSPA) == l.hosts[0].Addr(false):
				arps++
			case p.Key.Uint(of.FieldICMPv6Type) == pipeline.NeighbourAdvertisement && p.Addr(of.FieldIPv6NDTarget) == l.hosts[0].Addr(true):
				advertisements++
			}
		}
		if arps != 1 || advertisements != 1 {
			t.Errorf("%d ARP, %d advertisements", arps, advertisements)
		}
	})
}

// The same causes have the same effects, in the same order.
func TestDeterministic(t *testing.T) {
	run := func() (log string) {
		synctest.Test(t, func(t *testing.T) {
			l := newLine(t, 4, Options{}, CableOptions{Capacity: 1e6})
			l.connectAll()
			for i, h := range l.hosts {
				for j := range l.hosts {
					h.Ping(l.hosts[(i+j)%4].Addr(j%2 == 0))
				}
			}
			began := time.Now()
			time.Sleep(time.Minute)
			for i, h := range l.hosts {
				for _, r := range h.Received() {
					log += fmt.Sprintf("%d %v %d %x\n", i, r.At.Sub(began), r.ID, r.Frame)
				}
			}
		})
		return log
	}
	first := run()
	if len(first) < 1000 {
		t.Fatalf("little happened: %s", first)
	}
	for range 3 {
		if run() != first {
			t.Fatal("two runs differ")
		}
	}
}

// A fast-failover group carries frames on the next port as soon as the first has no link.
func TestFailover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := newLine(t, 3, Options{}, CableOptions{})
		l.join(2, 0, CableOptions{Delay: ms}) // a triangle: port 3 of s1 leads to s3
		do(t, l.sw[0], groupMod(of.GroupAdd, of.GroupTypeFF, 1, watch(2, output(2)), watch(3, output(3))),
			flowMod(0, 1, nil, apply(of.Group{Group: 1})))
		do(t, l.sw[1], flowMod(0, 1, of.Match{of.InPort(3)}, apply(output(1))))
		do(t, l.sw[2], flowMod(0, 1, of.Match{of.InPort(2)}, apply(output(3))))
		do(t, l.sw[1], flowMod(0, 1, of.Match{of.InPort(2)}, apply(output(1))))
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(ms):
					l.hosts[0].Send(udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 10))
				}
			}
		}()
		time.Sleep(100*ms + 500*time.Microsecond)
		l.wires[0].Unplug()
		time.Sleep(100 * ms)
		close(stop)
		time.Sleep(100 * ms)
		if n := len(l.hosts[1].Received()); n < 198 || n > 199 {
			t.Errorf("%d of 200 frames arrived: those on the cable are lost, no others", n)
		}
	})
}
