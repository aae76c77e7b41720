package oftest

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	of "headgate.dev/headgate/fabric/openflow"
)

// connect returns a controller of a switch.
func connect(s *Switch) *peer {
	ours, theirs := net.Pipe()
	s.Connect(ours)
	p := newPeer(theirs)
	synctest.Wait()
	return p
}

// ask sends a message, and returns what comes before the answer to a barrier after it.
func (p *peer) ask(t *testing.T, m of.Message) []of.Message {
	t.Helper()
	b, err := of.Append(nil, 7, m)
	if err == nil {
		_, err = p.conn.Write(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.drain()
	if err != nil {
		t.Fatal(err)
	}
	var all []of.Message
	for _, b := range got {
		_, m, err := of.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// inBubble is a test for rapid in a bubble, where a test has no deadline.
type inBubble struct{ *testing.T }

// failer is a test of the testing package or of rapid.
type failer interface {
	Helper()
	Fatal(args ...any)
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// withPorts returns a switch with ports 1 to n.
func withPorts(t failer, o Options, n int) *Switch {
	t.Helper()
	s := New(o)
	for i := range n {
		if err := s.AddPort(PortOptions{No: of.PortNo(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func do(t failer, s *Switch, all ...of.Message) {
	t.Helper()
	for _, m := range all {
		if err := s.Do(m); err != nil {
			t.Fatal(err)
		}
	}
}

// A long reply comes in parts, each of which is short.
func TestParts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := New(Options{ReplyBytes: 500})
		for n := range uint16(100) {
			do(t, s, flowMod(0, n, nil, apply(output(1))))
		}
		p := connect(s)
		defer p.conn.Close()
		var r of.Reassembler
		var whole *of.MultipartReply
		parts := 0
		for _, m := range p.ask(t, &of.MultipartRequest{Body: &of.FlowStatsRequest{FlowFilter: of.AllFlows()}}) {
			b, _ := of.Append(nil, 7, m)
			if len(b) > 500 {
				t.Errorf("a part has %d bytes", len(b))
			}
			var err error
			if whole, err = r.Add(7, m.(*of.MultipartReply), len(b)); err != nil {
				t.Fatal(err)
			}
			parts++
		}
		if parts < 10 || whole == nil || len(whole.Body.(*of.FlowStatsReply).Flows) != 100 {
			t.Errorf("%d parts: %v", parts, whole)
		}
	})
}

// A controller that sends nothing is asked, and disconnected if it does not answer; one that answers stays.
func TestEcho(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := New(Options{EchoInterval: 3 * time.Second})
		p := connect(s)
		defer p.conn.Close()
		time.Sleep(time.Minute)
		if len(s.Controllers()) != 1 {
			t.Error("a controller that answers was disconnected")
		}
		ours, theirs := net.Pipe()
		began := time.Now()
		s.Connect(ours)
		hello, _ := of.Append(nil, 0, of.NewHello(of.Version))
		go func() { _, _ = theirs.Write(hello) }()
		_, _ = io.Copy(io.Discard, theirs)
		if d := time.Since(began); d != 6*time.Second {
			t.Errorf("a silent controller was disconnected after %v, want 6s", d)
		}
	})
}

// A controller of another version, or that is none, is refused.
func TestRefusedController(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := New(Options{})
		for name, c := range map[string]struct {
			sent []byte
			want of.ErrorType
		}{
			"OpenFlow 1.0": {header(1, 0, 8), of.ErrHelloFailed},
			"no hello":     {header(4, byte(of.TypeEchoRequest), 8), 0xfffe},
			"HTTP":         {[]byte("GET / HTTP/1.1\r\n\r\n"), 0xfffe},
		} {
			ours, theirs := net.Pipe()
			done := make(chan error, 1)
			go func() { done <- s.Serve(ours) }()
			go func() { _, _ = theirs.Write(c.sent) }()
			all, _ := io.ReadAll(theirs)
			got := of.ErrorType(0xfffe)
			for len(all) >= of.HeaderLen {
				n, _ := of.Length(all)
				if _, m, _ := of.Decode(all[:n]); m != nil && m.Type() == of.TypeError {
					got = m.(*of.Error).Kind
				}
				all = all[n:]
			}
			if err := <-done; err == nil || got != c.want {
				t.Errorf("%s: error %v, sent an error of type %#x, want %#x", name, err, got, c.want)
			}
		}
		if len(s.Controllers()) != 0 {
			t.Error("a refused controller is listed")
		}
	})
}

// Errors have as much of the message as is configured.
func TestErrorBytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bad := flowMod(0, 1, of.Match{of.InPort(1)}, apply(output(of.PortAny)))
		for limit, want := range map[int]int{0: 88, 10: 64, 70: 70} {
			p := connect(New(Options{ErrorBytes: limit}))
			e, ok := p.ask(t, bad)[0].(*of.Error)
			if !ok || len(e.Data) != want {
				t.Errorf("limit %d: %v, want %d bytes", limit, e, want)
			}
			if _, xid, ok := e.Refused(); !ok || xid != 7 {
				t.Errorf("limit %d: the error is of message %d", limit, xid)
			}
			p.conn.Close()
		}
	})
}

// Without controllers a switch keeps its tables; the first controller that comes back flushes them if that is configured.
func TestFailSecure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, flush := range []bool{false, true} {
			s := New(Options{FlushOnFirst: flush})
			a := connect(s)
			a.ask(t, flowMod(0, 1, nil))
			a.ask(t, groupMod(of.GroupAdd, of.GroupTypeAll, 1))
			a.ask(t, meterMod(of.MeterAdd, of.MeterKbps, 1, drop(1, 0)))
			b := connect(s) // not the first
			if len(s.Flows()) != 1 {
				t.Error("a second controller flushes")
			}
			a.conn.Close()
			b.conn.Close()
			synctest.Wait()
			if len(s.Controllers()) != 0 || len(s.Flows()) != 1 {
				t.Errorf("without controllers: %d flows", len(s.Flows()))
			}
			c := connect(s)
			want := 1
			if flush {
				want = 0
			}
			if len(s.Flows()) != want || len(s.Groups()) != want || len(s.Meters()) != want {
				t.Errorf("flush %v: %d flows, %d groups, %d meters", flush, len(s.Flows()), len(s.Groups()), len(s.Meters()))
			}
			c.conn.Close()
		}
	})
}

// A controller that reads nothing delays no other, gets no more than the limit of packet-ins, and a switch stops reading
// its requests.
func TestSlowController(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := withPorts(t, Options{EchoInterval: -1}, 2)
		do(t, s, flowMod(0, 0, nil, apply(output(of.PortController))))
		ours, slow := net.Pipe()
		s.Connect(ours)
		hello, _ := of.Append(nil, 0, of.NewHello(of.Version))
		if _, err := slow.Write(hello); err != nil {
			t.Fatal(err)
		}
		fast := connect(s)
		for range 10 * maxPacketIns {
			s.Receive(1, udpFrame("10.0.0.1", "10.0.0.2", 1, 2, 10))
			synctest.Wait()
		}
		if n := len(fast.ask(t, &of.BarrierRequest{})); n != 10*maxPacketIns+1 {
			t.Errorf("the other controller received %d packets", n)
		}
		s.lock()
		c := s.channels[0]
		s.unlock()
		if c.out.packetIns != maxPacketIns {
			t.Errorf("%d packet-ins wait", c.out.packetIns)
		}
		echo, _ := of.Append(nil, 1, &of.EchoRequest{Data: make([]byte, 60_000)})
		sent := 0
		for ; sent < 100; sent++ {
			_ = slow.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := slow.Write(echo); errors.Is(err, context.DeadlineExceeded) || err != nil {
				break
			}
		}
		if sent < maxWaiting/len(echo) || sent > 2*maxWaiting/len(echo)+2 {
			t.Errorf("the switch has read %d requests", sent)
		}
		slow.Close()
		fast.conn.Close()
		synctest.Wait()
		if len(s.Controllers()) != 0 {
			t.Error("a closed channel is listed")
		}
	})
}

// A switch calls again after its controller is gone, at growing intervals.
func TestDial(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := New(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var calls []time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Dial(ctx, 4*time.Second, func(context.Context) (net.Conn, error) {
				calls = append(calls, time.Since(began))
				if len(calls) < 5 {
					return nil, io.ErrUnexpectedEOF
				}
				ours, theirs := net.Pipe()
				go newPeer(theirs)
				return ours, nil
			})
		}()
		time.Sleep(time.Minute)
		if got := s.Controllers(); len(got) != 1 || got[0] != of.RoleEqual {
			t.Errorf("controllers %v", got)
		}
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 11 * time.Second}
		for i := range want {
			if i >= len(calls) || calls[i] != want[i] {
				t.Fatalf("calls at %v, want %v", calls, want)
			}
		}
		s.PowerOff()
		synctest.Wait()
		if len(s.Controllers()) != 0 {
			t.Error("a switch without power has a channel")
		}
		s.PowerOn()
		time.Sleep(10 * time.Second)
		if len(s.Controllers()) != 1 {
			t.Error("no channel after the power came back")
		}
		cancel()
		<-done
	})
}

// A thousand switches with a channel and a hundred flows each run in one process.
func TestThousandSwitches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := NewNetwork()
		var peers []*peer
		for i := range 1000 {
			s := n.AddSwitch("br0", Options{DatapathID: uint64(i)})
			peers = append(peers, connect(s))
		}
		for _, p := range peers {
			var b []byte
			for i := range uint16(100) {
				b, _ = of.Append(b, 1, flowMod(of.TableID(i%4), i, of.Match{of.InPort(of.PortNo(i))}, apply(output(2))))
			}
			if _, err := p.conn.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute) // with echoes
		for i, s := range n.Switches() {
			if got, err := peers[i].drain(); err != nil || len(got) != 0 || len(s.Flows()) != 100 {
				t.Fatalf("switch %d: %d flows, %d messages, %v", i, len(s.Flows()), len(got), err)
			}
			peers[i].conn.Close()
		}
	})
}
