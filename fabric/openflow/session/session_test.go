package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// peer is a switch of which a test decides each message. Its methods run in the test's bubble, over a connection in memory.
type peer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func (p *peer) send(xid uint32, m openflow.Message) {
	p.t.Helper()
	b, err := openflow.Append(nil, xid, m)
	if err == nil {
		_, err = p.conn.Write(b)
	}
	if err != nil {
		p.t.Errorf("sending %v: %v", m.Type(), err)
	}
}

// next returns the next message of the controller.
func (p *peer) next() (xid uint32, m openflow.Message, err error) {
	b, err := readMessage(p.r)
	if err != nil {
		return 0, nil, err
	}
	return openflow.Decode(b)
}

const datapath = 0x1122

var twoPorts = []openflow.Port{{No: 1, Name: "one"}, {No: 2, Name: "two"}}

// handshake answers the controller's handshake.
func (p *peer) handshake() {
	p.t.Helper()
	p.send(7, openflow.NewHello(1, openflow.Version))
	for {
		xid, m, err := p.next()
		if err != nil {
			p.t.Errorf("handshake: %v", err)
			return
		}
		switch m := m.(type) {
		case *openflow.FeaturesRequest:
			p.send(xid, &openflow.FeaturesReply{DatapathID: datapath, Tables: 254})
		case *openflow.MultipartRequest:
			switch m.Body.(type) {
			case *openflow.DescRequest:
				p.send(xid, &openflow.MultipartReply{Body: &openflow.Desc{Manufacturer: "test"}})
			case *openflow.PortDescRequest: // in two parts, with a change before and one after
				p.send(0, &openflow.PortStatus{Reason: openflow.PortDelete, Port: twoPorts[0]})
				p.send(xid, &openflow.MultipartReply{More: true, Body: &openflow.PortDescReply{Ports: twoPorts[:1]}})
				p.send(xid, &openflow.MultipartReply{Body: &openflow.PortDescReply{Ports: twoPorts[1:]}})
				p.send(0, &openflow.PortStatus{Reason: openflow.PortAdd, Port: openflow.Port{No: 3, Name: "three"}})
				return
			}
		}
	}
}

// open returns a session with a peer that has performed the handshake.
func open(t *testing.T, o Options) (*Conn, *peer) {
	t.Helper()
	ours, theirs := net.Pipe()
	p := &peer{t, theirs, bufio.NewReader(theirs)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.handshake()
	}()
	c, err := Open(t.Context(), ours, o)
	if err != nil {
		t.Fatal(err)
	}
	<-done
	t.Cleanup(func() { theirs.Close(); c.Close() })
	return c, p
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func flow(priority uint16) *openflow.FlowMod {
	return &openflow.FlowMod{Priority: priority, Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny}
}

func TestHandshake(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen []openflow.Type
		c, _ := open(t, Options{Handle: func(_ *Conn, m openflow.Message) { seen = append(seen, m.Type()) }})
		synctest.Wait()
		if c.DatapathID() != datapath || c.Features().Tables != 254 || c.Desc().Manufacturer != "test" {
			t.Errorf("switch %x: %+v, %+v", c.DatapathID(), c.Features(), c.Desc())
		}
		var names []string
		for _, p := range c.Ports() {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != "one two three" {
			t.Errorf("ports %q", got)
		}
		if len(seen) != 2 || seen[0] != openflow.TypePortStatus {
			t.Errorf("handled: %v, want two port-status", seen)
		}
	})
}

// Of a switch that describes more ports than MaxPorts those with the lowest numbers are kept, and LOCAL. A further one is kept when one
// of them is deleted.
func TestMaxPorts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, p := open(t, Options{})
		local := openflow.Port{No: openflow.PortLocal}
		c.mu.Lock()
		all := []openflow.Port{local}
		for no := range openflow.PortNo(MaxPorts + 10) {
			all = append(all, openflow.Port{No: MaxPorts + 10 - no})
		}
		c.setPorts(all)
		c.mu.Unlock()
		check := func(what string, kept, surplus int, last openflow.PortNo) {
			t.Helper()
			synctest.Wait()
			ports := c.Ports()
			if len(ports) != kept || c.SurplusPorts() != surplus || ports[len(ports)-2].No != last || !c.HasPort(last) || !c.HasPort(openflow.PortLocal) {
				t.Errorf("%s: %d ports, the last is %v, and %d are surplus; want %d, %v and %d", what, len(ports), ports[len(ports)-2].No, c.SurplusPorts(), kept, last, surplus)
			}
		}
		status := func(reason openflow.PortReason, no openflow.PortNo) {
			p.send(0, &openflow.PortStatus{Reason: reason, Port: openflow.Port{No: no}})
		}
		check("at first", MaxPorts+1, 10, MaxPorts)
		status(openflow.PortAdd, 9000)
		check("one was added", MaxPorts+1, 11, MaxPorts)
		status(openflow.PortDelete, 9000)
		check("and deleted", MaxPorts+1, 10, MaxPorts)
		status(openflow.PortModify, MaxPorts+1)
		check("a surplus one has changed", MaxPorts+1, 10, MaxPorts)
		status(openflow.PortDelete, 1)
		status(openflow.PortDelete, 2)
		status(openflow.PortModify, MaxPorts+1)
		check("there is room for one", MaxPorts, 9, MaxPorts+1)
	})
}

// Structures that are not known are counted.
func TestUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, p := open(t, Options{})
		p.send(0, &openflow.PacketIn{Match: openflow.Match{openflow.InPort(1)}})
		p.send(0, &openflow.Experimenter{Experimenter: 7})
		p.send(0, &openflow.Unknown{Kind: 99})
		synctest.Wait()
		if got := c.Counts(); got.Unknown != 2 || got.Malformed != 0 {
			t.Errorf("%+v: want 2 unknown structures", got)
		}
	})
}

// A session that is closed for a reason has ended for it.
func TestCloseFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := open(t, Options{})
		why := errors.New("it is no longer wanted")
		c.CloseFor(why)
		if c.Close(); c.Err() != why {
			t.Errorf("it has ended, because %v", c.Err())
		}
	})
}

// A peer that is no OpenFlow 1.3 switch is refused with the reason, and its connection is closed.
func TestRefusedHandshake(t *testing.T) {
	for name, c := range map[string]struct {
		peer func(p *peer)
		want string
	}{
		"silent":          {func(*peer) {}, "did not describe itself as an OpenFlow 1.3 switch within 10s"},
		"another program": {func(p *peer) { io.WriteString(p.conn, "GET / HTTP/1.1\r\n\r\n") }, "no hello"},
		"TLS":             {func(p *peer) { io.WriteString(p.conn, "\x16\x03\x01\x02\x00\x01\x00\x01") }, "the peer speaks TLS"},
		"closes":          {func(p *peer) { p.conn.Close() }, "no hello"},
		"OpenFlow 1.0": {func(p *peer) {
			p.send(1, openflow.NewHello(1))
			_, _, _ = p.next()
			if _, m, err := p.next(); err != nil || m.Type() != openflow.TypeError {
				p.t.Errorf("answer to OpenFlow 1.0: %v, %v", m, err)
			}
		}, "protocols=OpenFlow13"},
		"no hello first": {func(p *peer) { p.send(1, &openflow.EchoRequest{}) }, "is it an OpenFlow switch?"},
		"silent after hello": {func(p *peer) {
			p.send(1, openflow.NewHello(openflow.Version))
		}, "did not describe itself"},
		"auxiliary": {func(p *peer) {
			p.send(1, openflow.NewHello(openflow.Version))
			for {
				xid, m, err := p.next()
				if err != nil {
					return
				}
				if m.Type() == openflow.TypeFeaturesRequest {
					p.send(xid, &openflow.FeaturesReply{AuxiliaryID: 3})
					return
				}
			}
		}, "auxiliary connection 3"},
		"refuses features": {func(p *peer) {
			p.send(1, openflow.NewHello(openflow.Version))
			for {
				xid, m, err := p.next()
				if err != nil {
					return
				}
				if m.Type() == openflow.TypeFeaturesRequest {
					p.send(xid, &openflow.Error{Kind: openflow.ErrBadRequest, Code: 1})
					return
				}
			}
		}, "the switch refused"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				done := make(chan struct{})
				go func() {
					defer close(done)
					p := &peer{t, theirs, bufio.NewReader(theirs)}
					c.peer(p)
					_, _ = io.Copy(io.Discard, theirs) // until the other side closes
				}()
				_, err := Open(t.Context(), ours, Options{})
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "handshake with pipe") {
					t.Errorf("error %v, want %q", err, c.want)
				}
				<-done
				theirs.Close()
			})
		})
	}
}

// Each error is that of the change that caused it, and Apply returns after the barrier.
func TestApply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, p := open(t, Options{Handle: func(_ *Conn, m openflow.Message) {
			if m.Type() == openflow.TypeError {
				t.Errorf("handled %v", m)
			}
		}})
		var barriers atomic.Int32
		go func() {
			for {
				xid, m, err := p.next()
				if err != nil {
					return
				}
				switch m := m.(type) {
				case *openflow.FlowMod:
					if m.Priority%2 == 1 {
						p.send(xid, &openflow.Error{Kind: openflow.ErrFlowModFailed, Code: 1})
						p.send(xid, &openflow.RoleReply{}) // a reply to a change answers nothing
					}
				case *openflow.BarrierRequest:
					time.Sleep(time.Second)
					barriers.Add(1)
					p.send(xid, &openflow.BarrierReply{})
				}
			}
		}()
		err := c.Apply(t.Context(), flow(2), flow(3), flow(4), flow(5))
		if barriers.Load() != 1 {
			t.Error("Apply returned before the barrier")
		}
		var refused *Refused
		if !errors.As(err, &refused) || refused.Message.(*openflow.FlowMod).Priority != 3 || strings.Count(err.Error(), "the switch refused") != 2 {
			t.Errorf("error %v", err)
		}
		if err := c.Apply(t.Context(), flow(2)); err != nil {
			t.Error(err)
		}
		if n := len(c.pending); n != 0 {
			t.Errorf("%d requests are pending after all have ended", n)
		}
	})
}

// Changes wait while a switch does not read, whatever their number, and another message goes between them. They end with the context.
func TestApplySlowly(t *testing.T) {
	const count = 10_000
	changes := make([]openflow.Message, count)
	for n := range changes {
		changes[n] = flow(uint16(n))
	}
	bubble(t, func(t *testing.T) {
		c, p := open(t, Options{EchoInterval: time.Hour})
		applied := make(chan error)
		go func() { applied <- c.Apply(t.Context(), changes...) }()
		synctest.Wait()
		c.mu.Lock()
		if n := len(c.out.waiting); n > 2*batch {
			t.Errorf("%d bytes wait for a switch that does not read", n)
		}
		c.mu.Unlock()
		if err := c.Send(&openflow.PacketOut{Buffer: openflow.NoBuffer, InPort: openflow.PortController}); err != nil {
			t.Fatal(err)
		}
		between := -1
		for n := 0; ; {
			xid, m, err := p.next()
			if err != nil {
				t.Fatal(err)
			}
			switch m := m.(type) {
			case *openflow.FlowMod:
				if m.Priority != uint16(n) {
					t.Fatalf("change %d came as change %d", m.Priority, n)
				}
				if n++; n == count/2 {
					p.send(xid, &openflow.Error{Kind: openflow.ErrFlowModFailed, Code: uint16(openflow.FlowModTableFull)})
				}
			case *openflow.PacketOut:
				between = n
			case *openflow.BarrierRequest:
				if n != count {
					t.Fatalf("the barrier came after %d changes", n)
				}
				p.send(xid, &openflow.BarrierReply{})
				var refused *Refused
				if err := <-applied; !errors.As(err, &refused) || refused.Message != changes[count/2-1] {
					t.Errorf("applied: %v", err)
				}
				const size = 56 // of such a flow-mod
				if between < 0 || between*size > 3*batch {
					t.Errorf("another message came after %d changes", between)
				}
				if len(c.applying) != 0 || len(c.pending) != 0 {
					t.Errorf("%d lists and %d requests are pending after all have ended", len(c.applying), len(c.pending))
				}
				return
			}
		}
	})
	bubble(t, func(t *testing.T) {
		c, _ := open(t, Options{EchoInterval: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Apply(ctx, changes...); !errors.Is(err, context.DeadlineExceeded) || len(c.applying) != 0 {
			t.Errorf("a switch that does not read: %v, with %d lists", err, len(c.applying))
		}
	})
}

// A request ends with its reply, an error of the switch, a reply that cannot be decoded, its context, and the session.
func TestRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		malformed := 0
		c, p := open(t, Options{Malformed: func(*Conn, error) { malformed++ }})
		do := func(answer func(xid uint32)) (openflow.ReplyBody, error) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					xid, m, err := p.next()
					if err != nil {
						return
					}
					if m.Type() == openflow.TypeMultipartRequest {
						answer(xid)
						return
					}
				}
			}()
			defer func() { <-done }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return c.multipart(ctx, &openflow.TableStatsRequest{})
		}
		body, err := do(func(xid uint32) {
			p.send(xid, &openflow.MultipartReply{More: true, Body: &openflow.TableStatsReply{Tables: make([]openflow.TableStats, 2)}})
			p.send(xid, &openflow.MultipartReply{Body: &openflow.TableStatsReply{Tables: make([]openflow.TableStats, 1)}})
		})
		if got, ok := body.(*openflow.TableStatsReply); err != nil || !ok || len(got.Tables) != 3 {
			t.Errorf("a reply in two parts: %v, %v", body, err)
		}
		var refused *Refused
		if _, err := do(func(xid uint32) { p.send(xid, &openflow.Error{Kind: openflow.ErrBadRequest, Code: 2}) }); !errors.As(err, &refused) {
			t.Errorf("an error: %v", err)
		}
		if _, err := do(func(xid uint32) { p.send(xid, &openflow.BarrierReply{}) }); err == nil || !strings.Contains(err.Error(), "answered barrier-reply") {
			t.Errorf("another reply: %v", err)
		}
		if _, err := do(func(xid uint32) {
			b, _ := openflow.Append(nil, xid, &openflow.MultipartReply{Body: &openflow.TableStatsReply{Tables: make([]openflow.TableStats, 1)}})
			b = b[:len(b)-1]
			b[3] = byte(len(b))
			p.conn.Write(b)
		}); err == nil || malformed != 1 {
			t.Errorf("a malformed reply: %v, %d counted", err, malformed)
		}
		if _, err := do(func(uint32) {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no reply: %v", err)
		}
		if _, err := do(func(uint32) { p.conn.Close() }); err == nil || !strings.Contains(err.Error(), "closed the connection") {
			t.Errorf("an end: %v", err)
		}
		<-c.Done()
		if err := c.Send(&openflow.BarrierRequest{}); err == nil {
			t.Error("Send after the end succeeds")
		}
	})
}

// A switch that sends nothing is asked, and one that does not answer is disconnected after the interval and the timeout.
func TestSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, p := open(t, Options{})
		answers := 3
		go func() {
			for {
				xid, m, err := p.next()
				if err != nil {
					return
				}
				if m.Type() == openflow.TypeEchoRequest && answers > 0 {
					answers--
					p.send(xid, &openflow.EchoReply{})
				}
			}
		}()
		began := time.Now()
		<-c.Done()
		if took, want := time.Since(began), 4*DefaultEchoInterval+DefaultEchoTimeout; took != want || !errors.Is(c.Err(), ErrSilent) { // three are answered
			t.Errorf("disconnected after %v: %v, want %v", took, c.Err(), want)
		}
	})
}

// A switch that does not read is disconnected, and nobody waits for it.
func TestSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := open(t, Options{EchoInterval: time.Hour})
		data := make([]byte, 60_000)
		for n := 0; ; n++ {
			err := c.Send(&openflow.PacketOut{Buffer: openflow.NoBuffer, InPort: openflow.PortController, Data: data})
			if err != nil {
				if !errors.Is(err, ErrSlow) || n < maxQueued/len(data) {
					t.Errorf("after %d messages: %v", n, err)
				}
				break
			}
			if n > 2*maxQueued/len(data) {
				t.Fatal("the queue has no bound")
			}
		}
		<-c.Done()
	})
}

// Echo requests are answered with their data, malformed messages are counted, and many of them end the session.
func TestMalformed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, p := open(t, Options{})
		go func() {
			p.send(9, &openflow.EchoRequest{Data: []byte("data")})
			for {
				xid, m, err := p.next()
				if err != nil {
					t.Error(err)
					return
				}
				if e, ok := m.(*openflow.EchoReply); ok {
					if xid != 9 || !bytes.Equal(e.Data, []byte("data")) {
						t.Errorf("echo reply %d %q", xid, e.Data)
					}
					break
				}
			}
			for range maxMalformed {
				if _, err := p.conn.Write([]byte{4, byte(openflow.TypePacketIn), 0, 9, 0, 0, 0, 1, 0}); err != nil {
					t.Error(err)
					return
				}
			}
			_, _ = io.Copy(io.Discard, p.conn)
		}()
		<-c.Done()
		if n := c.Counts().Malformed; n != maxMalformed || !strings.Contains(c.Err().Error(), "100 malformed messages") {
			t.Errorf("%d malformed messages: %v", n, c.Err())
		}
		if got := c.Counts(); got.Received[openflow.TypeEchoRequest] != 1 || got.Sent[openflow.TypeEchoReply] != 1 {
			t.Errorf("counts %+v", got)
		}
	})
}

// Roles pass both ways, and a stale generation is an error of the switch.
func TestSetRole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, p := open(t, Options{})
		go func() {
			newest := uint64(0)
			for {
				xid, m, err := p.next()
				if err != nil {
					return
				}
				if r, ok := m.(*openflow.RoleRequest); ok {
					if r.GenerationID < newest {
						p.send(xid, &openflow.Error{Kind: openflow.ErrRoleRequestFailed})
						continue
					}
					newest = r.GenerationID
					p.send(xid, &openflow.RoleReply{Role: r.Role})
				}
			}
		}()
		if got, err := c.SetRole(t.Context(), openflow.RoleMaster, 5); err != nil || got.Role != openflow.RoleMaster || got.GenerationID != 5 {
			t.Errorf("role %+v, %v", got, err)
		}
		var refused *Refused
		if _, err := c.SetRole(t.Context(), openflow.RoleMaster, 4); !errors.As(err, &refused) || refused.Reason.Kind != openflow.ErrRoleRequestFailed {
			t.Errorf("an older generation: %v", err)
		}
	})
}
