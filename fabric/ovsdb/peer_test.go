package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// peer is the server's end of a session in virtual time.
type peer struct {
	net.Conn
	t       *testing.T
	decoder *json.Decoder
}

// newPeer returns a session of which a message may have limit bytes, and its other end.
func newPeer(t *testing.T, limit int64) (*Session, *peer) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { theirs.Close() })
	return newSession(ours, "fake", limit), peerOn(t, theirs)
}

func peerOn(t *testing.T, conn net.Conn) *peer { return &peer{conn, t, json.NewDecoder(conn)} }

// ended returns why a session has ended, nil if it has not.
func ended(s *Session) error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// next returns the next message of the session.
func (p *peer) next() message {
	var m message
	if err := p.decoder.Decode(&m); err != nil {
		p.t.Errorf("the session sent no message: %v", err)
	}
	return m
}

// send sends text; the session may have closed the connection before its end.
func (p *peer) send(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// TestPeerThatLies: whatever a server sends, the call ends with an error that says what.
func TestPeerThatLies(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(p *peer, id string)
		want   string
	}{
		"closes":             {func(p *peer, id string) { p.Close() }, "the server closed the connection"},
		"half a message":     {func(p *peer, id string) { p.send(`{"id":%s,"result":[`, id); p.Close() }, "closed the connection within a message"},
		"no JSON":            {func(p *peer, id string) { p.send("HTTP/1.1 400 Bad Request\r\n") }, "invalid JSON"},
		"zero bytes":         {func(p *peer, id string) { p.send("\x00\x00") }, "invalid JSON"},
		"deep":               {func(p *peer, id string) { p.send("%s", strings.Repeat("[", 20000)) }, "depth"},
		"a number":           {func(p *peer, id string) { p.send("42 ") }, "not a message of JSON-RPC"},
		"an array":           {func(p *peer, id string) { p.send("[]") }, "not a message of JSON-RPC"},
		"a method's type":    {func(p *peer, id string) { p.send(`{"method":7,"id":1}`) }, "not a message of JSON-RPC"},
		"nothing":            {func(p *peer, id string) { p.send("{}") }, "neither a request nor a response"},
		"null id":            {func(p *peer, id string) { p.send(`{"id":null,"result":1}`) }, "neither a request nor a response"},
		"wrong id":           {func(p *peer, id string) { p.send(`{"id":77,"result":[]}`) }, "request 77, which was not sent"},
		"id of another type": {func(p *peer, id string) { p.send(`{"id":"x","result":[]}`) }, `the id "x", which was not sent`},
		"huge":               {func(p *peer, id string) { p.send(`{"id":%s,"result":"%s"}`, id, strings.Repeat("x", 70000)) }, "more than 65536 bytes"},
		"huge number":        {func(p *peer, id string) { p.send("%s", strings.Repeat("1", 70000)) }, "more than 65536 bytes"},
		"other result":       {func(p *peer, id string) { p.send(`{"id":%s,"result":{"a":1}}`, id) }, "a result of another form"},
		"no result":          {func(p *peer, id string) { p.send(`{"id":%s}`, id) }, "the server sent no result"},
		"error":              {func(p *peer, id string) { p.send(`{"id":%s,"error":"unknown method"}`, id) }, "list_dbs of the OVSDB server fake: unknown method"},
		"error object":       {func(p *peer, id string) { p.send(`{"id":%s,"error":{"error":"e","details":"d"}}`, id) }, "e: d"},
		"error of any form":  {func(p *peer, id string) { p.send(`{"id":%s,"error":[1]}`, id) }, "unknown error: [1]"},
		"silent":             {func(p *peer, id string) { io.Copy(io.Discard, p) }, "did not answer an echo within 5s"},
		"answers only echo": {func(p *peer, id string) {
			for {
				var m message
				if p.decoder.Decode(&m) != nil {
					return
				}
				p.send(`{"id":%s,"result":[],"error":null}`, m.ID)
			}
		}, context.DeadlineExceeded.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := newPeer(t, 1<<16)
				go func() {
					m := p.next()
					c.answer(p, string(m.ID))
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var result []string
				wantError(t, s.call(ctx, "list_dbs", &result), "cannot call list_dbs of the OVSDB server fake: ", c.want)
				s.Close()
				p.Close()
			})
		})
	}
}

// The second of two answers to a request ends the session, and later calls say so.
func TestDuplicateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newPeer(t, maxMessage)
		defer s.Close()
		go func() {
			m := p.next()
			p.send(`{"id":%s,"result":["a"],"error":null}`, m.ID)
			p.send(`{"id":%s,"result":["b"],"error":null}`, m.ID)
		}()
		var result []string
		if err := s.call(t.Context(), "list_dbs", &result); err != nil || len(result) != 1 || result[0] != "a" {
			t.Errorf("the first answer is %v, %v", result, err)
		}
		<-s.done
		wantError(t, s.err, "the server answered request 1, which was not sent or has been answered")
		wantError(t, s.call(t.Context(), "echo", nil), "request 1, which was not sent or has been answered")
	})
}

// Answers may come in any order, and each goes to its caller.
func TestAnswersInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newPeer(t, maxMessage)
		defer s.Close()
		const calls = 20
		go func() {
			var asked []message
			for range calls {
				asked = append(asked, p.next())
			}
			for i := range asked {
				m := asked[calls-1-i]
				p.send(`{"id":%s,"result":%s,"error":null}`, m.ID, m.Params)
			}
		}()
		var all sync.WaitGroup
		for i := range calls {
			all.Go(func() {
				var got []int
				if err := s.call(t.Context(), "echo", &got, i); err != nil || len(got) != 1 || got[0] != i {
					t.Errorf("call %d returned %v, %v", i, got, err)
				}
			})
		}
		all.Wait()
	})
}

// The session answers echo requests with any id, refuses other requests, and ignores notifications.
func TestRequestsOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newPeer(t, maxMessage)
		defer s.Close()
		p.send(`{"method":"update","params":[],"id":null}`)
		p.send(`{"method":"echo","params":["a",1],"id":"echo"}`)
		if m := p.next(); string(m.ID) != `"echo"` || string(m.Result) != `["a",1]` || !isNull(m.Error) {
			t.Errorf("the answer to an echo is %s %s %s", m.ID, m.Result, m.Error)
		}
		p.send(`{"method":"steal","params":[],"id":[3]}`)
		if m := p.next(); string(m.ID) != `[3]` || !isNull(m.Result) || string(m.Error) != `"unknown method"` {
			t.Errorf("the answer to an unknown request is %s %s %s", m.ID, m.Result, m.Error)
		}
		if err := ended(s); err != nil {
			t.Error(err)
		}
	})
}

// A session without traffic lasts as long as the server answers its echo requests, which it sends only then.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newPeer(t, maxMessage)
		defer s.Close()
		start := time.Now()
		for range 10 {
			m := p.next()
			if m.Method != "echo" {
				t.Errorf("the session sent %q", m.Method)
			}
			p.send(`{"id":%s,"result":[],"error":null}`, m.ID)
		}
		if d := time.Since(start); d < 10*probeInterval {
			t.Errorf("10 echo requests were sent in %v", d)
		}
		for range 100 { // traffic of the server, slower than a message in an interval
			time.Sleep(probeInterval / 2)
			p.send(" ")
		}
		if err := ended(s); err != nil {
			t.Error(err)
		}
	})
}

// A server that reads nothing cannot hold a call for longer than an interval.
func TestServerThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newPeer(t, maxMessage)
		defer s.Close()
		start := time.Now()
		wantError(t, s.call(t.Context(), "list_dbs", nil), "list_dbs", "cannot write to the server")
		if d := time.Since(start); d > probeInterval {
			t.Errorf("the call took %v", d)
		}
	})
}

// A call ends with its context. The transaction is cancelled, and its answer, which may come still, is no error.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newPeer(t, maxMessage)
		defer s.Close()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			m := p.next()
			cancel()
			if c := p.next(); c.Method != "cancel" || string(c.Params) != "["+string(m.ID)+"]" || !isNull(c.ID) {
				t.Errorf("the session sent %s %s %s, want a cancel notification", c.Method, c.Params, c.ID)
			}
			p.send(`{"id":%s,"result":null,"error":"canceled"}`, m.ID)
			m = p.next()
			p.send(`{"id":%s,"result":[],"error":null}`, m.ID)
		}()
		if err := s.call(ctx, "transact", nil, database); !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		if err := s.call(ctx, "transact", nil, database); !errors.Is(err, context.Canceled) { // sends nothing
			t.Errorf("a call with an ended context returned %v", err)
		}
		if err := s.call(t.Context(), "list_dbs", nil); err != nil {
			t.Errorf("after a cancelled call: %v", err)
		}
	})
}

// Calls that wait when the session is closed end.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newPeer(t, maxMessage)
		go func() {
			p.next()
			s.Close()
		}()
		wantError(t, s.call(t.Context(), "list_dbs", nil), "the session is closed")
		s.Close()
	})
}
