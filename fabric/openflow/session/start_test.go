package session

import (
	"bufio"
	"errors"
	"net"
	"testing"

	"headgate.dev/headgate/fabric/openflow"
)

// openTCP is open over a socket, to which the session can write without its writer.
func openTCP(t *testing.T) (*Conn, *peer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = ours.(*net.TCPConn).SetWriteBuffer(64 << 10) // else it may grow to megabytes
	p := &peer{t, theirs, bufio.NewReader(theirs)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.handshake()
	}()
	c, err := Open(t.Context(), ours, Options{})
	if err != nil {
		t.Fatal(err)
	}
	<-done
	t.Cleanup(func() { theirs.Close(); c.Close() })
	return c, p
}

func TestStart(t *testing.T) {
	for name, open := range map[string]func(*testing.T) (*Conn, *peer){
		"socket": openTCP,
		"pipe":   func(t *testing.T) (*Conn, *peer) { return open(t, Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			c, p := open(t)
			type outcome struct {
				reply *openflow.TableStatsReply
				err   error
			}
			got := make(chan outcome, 10)
			start := func() (xid uint32, forget func() bool) {
				forget, err := Start(c, &openflow.TableStatsRequest{}, nil, func(reply *openflow.TableStatsReply, err error) { got <- outcome{reply, err} })
				if err != nil {
					t.Fatal(err)
				}
				for {
					xid, m, err := p.next()
					if err != nil {
						t.Fatal(err)
					}
					if m.Type() == openflow.TypeMultipartRequest {
						return xid, forget
					}
				}
			}
			tables := func(n int, more bool) *openflow.MultipartReply {
				return &openflow.MultipartReply{More: more, Body: &openflow.TableStatsReply{Tables: make([]openflow.TableStats, n)}}
			}
			xid, forget := start()
			p.send(xid, tables(2, true))
			p.send(xid, tables(1, false))
			if o := <-got; o.err != nil || len(o.reply.Tables) != 3 || forget() {
				t.Errorf("a reply in two parts: %+v", o)
			}
			p.send(xid, tables(1, false)) // nobody waits for it
			xid, _ = start()
			p.send(xid, &openflow.Error{Kind: openflow.ErrBadRequest, Code: 2})
			var refused *Refused
			if o := <-got; !errors.As(o.err, &refused) {
				t.Errorf("an error: %+v", o)
			}
			xid, _ = start()
			p.send(xid, &openflow.MultipartReply{Body: &openflow.PortDescReply{}})
			if o := <-got; o.err == nil || errors.As(o.err, &refused) {
				t.Errorf("another reply: %+v", o)
			}
			xid, forget = start()
			if !forget() || forget() {
				t.Error("a request that was not answered is not forgotten once")
			}
			p.send(xid, tables(1, false))
			_, _ = start()
			p.conn.Close()
			if o := <-got; o.err == nil || o.reply != nil {
				t.Errorf("an end, after a reply to a request that was forgotten: %+v", o)
			}
			<-c.Done()
			if _, err := Start(c, &openflow.TableStatsRequest{}, nil, func(*openflow.TableStatsReply, error) { t.Error("it is answered after the end") }); err == nil {
				t.Error("Start after the end succeeds")
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.pending) > 0 {
				t.Errorf("%d requests are kept", len(c.pending))
			}
		})
	}
}

// A switch that does not read for a while gets all requests in their order.
func TestStartWhileNobodyReads(t *testing.T) {
	c, p := openTCP(t)
	const count = 50_000 // 0.8 MB, more than the sockets take
	for range count {
		if _, err := Start(c, &openflow.MeterFeaturesRequest{}, nil, func(*openflow.MeterFeatures, error) {}); err != nil {
			t.Fatal(err)
		}
	}
	last := uint32(0)
	for n := 0; n < count; {
		xid, m, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		if m.Type() != openflow.TypeMultipartRequest {
			continue
		}
		if n++; xid <= last { // an echo request can be between two
			t.Fatalf("%d follows %d", xid, last)
		}
		last = xid
	}
}
