package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
)

// free returns an address of loopback at which nothing listens.
func free(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String())
}

// safeBuffer is a buffer for concurrent writers.
type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// runAgent runs an agent until stop is called.
func runAgent(t *testing.T, p relay.Policy, log io.Writer) (a *Agent, stop func()) {
	t.Helper()
	a = NewAgent(p, slog.New(slog.NewJSONHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- a.Run(ctx, newKey(t, "k", true), func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	return a, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// An entry and an exit report their streams by path, and a connection while it is open and after its end, at their
// sockets and in the log.
func TestStatus(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	}
	to := netip.MustParseAddrPort(echo(t))
	exitAt, deadAt, listen, refusedListen := free(t), free(t), free(t), free(t)
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	name := func(what string) string { return fmt.Sprintf("test-%d-%s", os.Getpid(), what) }
	var exitLog, entryLog safeBuffer
	exit, stopExit := runAgent(t, relay.Policy{Name: name("exit"), Accept: relay.Accept{Listen: exitAt.String(), Destinations: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}, &exitLog)
	defer stopExit()
	entry, stopEntry := runAgent(t, relay.Policy{
		Name: name("entry"),
		Exits: []relay.Exit{{Address: exitAt, Destinations: loopback, Paths: []relay.Path{
			{Name: "a", Streams: 2}, {Name: "b", Source: netip.MustParseAddr("127.0.0.2"), Streams: 1}, {Name: "dead", Address: deadAt, Streams: 1},
		}}},
		Forwards: []relay.Forward{{Listen: listen.String(), To: to}, {Listen: refusedListen.String(), To: netip.MustParseAddrPort("127.0.0.9:1")}},
	}, &entryLog)
	defer stopEntry()
	until(t, "three streams are open, and one was refused", func() bool {
		s := entry.Status()
		return s.Total.Streams == 3 && s.Exits[0].Paths[2].Failure != "" && exit.Status().Total.Streams == 3
	})

	app, err := net.Dial("tcp", listen.String())
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	app.SetDeadline(time.Now().Add(10 * time.Second))
	const size = 3 << 20
	go app.Write(make([]byte, size))
	if _, err := io.ReadFull(app, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	client := netip.MustParseAddrPort(app.LocalAddr().String())
	settled := func(c ConnectionStatus) bool { return c.Unacknowledged == 0 && c.Waiting == 0 && c.Unread == 0 }
	until(t, "all is acknowledged", func() bool {
		a, b := entry.Status().Connections, exit.Status().Connections
		return len(a) == 1 && len(b) == 1 && settled(a[0]) && settled(b[0])
	})
	for _, of := range []string{name("entry"), name("exit")} {
		s, err := QueryStatus(of)
		if err != nil {
			t.Fatal(err)
		}
		c := s.Connections[0]
		if s.Agent != of || c.Client != client || c.Destination != to || c.Sent != size || c.Received != size || c.State != stripe.Established || c.Age <= 0 || c.Reordering != 0 {
			t.Errorf("%s: %+v", of, c)
		}
		isEntry := of == name("entry")
		if isEntry != (c.Exit == exitAt.String()) || isEntry == (c.Entry != "") {
			t.Errorf("%s: exit %q, entry %q", of, c.Exit, c.Entry)
		}
		if s.Total.Connections != 1 || s.Total.Sent != size || s.Total.Received != size || s.Total.Streams != 3 || s.Total.Ended != 0 {
			t.Errorf("%s: %+v", of, s.Total)
		}
		var sent, received uint64
		for _, p := range c.Paths {
			sent, received = sent+p.Sent, received+p.Received
		}
		if sent < size || received < size {
			t.Errorf("%s: paths %+v", of, c.Paths)
		}
	}
	s := entry.Status()
	if len(s.Exits) != 1 || len(s.Entries) != 0 || s.Exits[0].Address != exitAt.String() {
		t.Errorf("%+v", s)
	}
	paths := s.Exits[0].Paths
	for n, want := range []struct {
		name  string
		open  int
		state StreamState
	}{{"a", 2, StreamOpen}, {"b", 1, StreamOpen}, {"dead", 0, StreamClosed}} {
		p := paths[n]
		if p.Name != want.name || p.Open != want.open || p.State != want.state || p.Suspect != 0 || (p.RTT > 0) != (want.open > 0) {
			t.Errorf("path %+v, want %+v", p, want)
		}
	}
	if paths[0].Sent+paths[1].Sent < size || paths[0].Received+paths[1].Received < size {
		t.Errorf("%+v", paths)
	}
	if text := paths[2].Failure; !strings.Contains(text, "refused") {
		t.Errorf("the dead path's error is %q", text)
	}
	peers := exit.Status().Entries
	if len(peers) != 1 || len(peers[0].Paths) != 2 || peers[0].Paths[0].Name != "127.0.0.1" || peers[0].Paths[1].Name != "127.0.0.2" {
		t.Errorf("entries of the exit: %+v", peers)
	}

	// The status is the same after encoding and decoding.
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again Status
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if second, _ := json.Marshal(again); !bytes.Equal(text, second) {
		t.Errorf("%s\n%s", text, second)
	}

	// One connection ends, and one is refused by its exit.
	app.(*net.TCPConn).CloseWrite()
	if _, err := io.ReadAll(app); err != nil {
		t.Fatal(err)
	}
	if refused, err := net.Dial("tcp", refusedListen.String()); err == nil { // else it was reset at once
		defer refused.Close()
	}
	until(t, "both have records", func() bool { return exit.Status().Total.Ended == 2 && entry.Status().Total.Ended == 2 })
	for _, of := range []string{name("entry"), name("exit")} {
		records, err := QueryEnded(of)
		if err != nil || len(records) != 2 {
			t.Fatalf("%s: %+v, %v", of, records, err)
		}
		n := slices.IndexFunc(records, func(c ConnectionStatus) bool { return c.State == stripe.Ended })
		if n < 0 {
			t.Fatalf("%s: %+v", of, records)
		}
		c, failed := records[n], records[1-n]
		if c.Client != client || c.Sent != size || c.Received != size || c.Error != "" || len(c.Paths) == 0 {
			t.Errorf("%s: %+v", of, c)
		}
		if failed.State != Failed || !strings.Contains(failed.Error, "the exit does not connect to 127.0.0.9") || failed.Destination.String() != "127.0.0.9:1" {
			t.Errorf("%s: %+v", of, failed)
		}
	}
	if total := entry.Status().Total; total.Connections != 0 || total.Ended != 2 || total.Failed != 1 || total.Sent != size {
		t.Errorf("%+v", total)
	}
	if !slices.Contains(Running(), name("entry")) {
		t.Errorf("%v are running", Running())
	}
	stopEntry()
	stopExit()
	if _, err := QueryStatus(name("entry")); err == nil {
		t.Error("the socket is left")
	}
	for of, text := range map[string]string{"entry": entryLog.String(), "exit": exitLog.String()} {
		for _, want := range []string{`"msg":"connection ended"`, fmt.Sprintf(`"client":"%s","destination":"%s"`, client, to), fmt.Sprintf(`"sent_bytes":%d,"received_bytes":%[1]d`, size), `"error":"the exit does not connect to`} {
			if !strings.Contains(text, want) {
				t.Errorf("the log of the %s lacks %s:\n%s", of, want, text)
			}
		}
	}
	if text := entryLog.String(); !strings.Contains(text, `"paths":{"a":{"sent_bytes":`) && !strings.Contains(text, `"paths":{"b":{"sent_bytes":`) {
		t.Errorf("the log has no paths:\n%s", text)
	}
}

// A second agent with a name runs without a socket, and logs what to do; the path of the socket is in the line once.
func TestSocketInUse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	}
	p := relay.Policy{Name: fmt.Sprintf("test-%d-twice", os.Getpid())}
	var log safeBuffer
	defer NewAgent(p, slog.New(slog.DiscardHandler)).serve()()
	defer NewAgent(p, slog.New(slog.NewTextHandler(&log, nil))).serve()()
	if text := log.String(); strings.Count(text, socketPath(p.Name)) != 1 || !strings.Contains(text, "another program is listening on it: set another name for one of the two agents") {
		t.Error(text)
	}
}

// Bytes of streams that have ended stay with their path, and their bytes in a second are the rate.
func TestPathsAndRates(t *testing.T) {
	p, to := newPair(t, 0), echo(t)
	p.entry.on(1, "a")
	p.entry.on(2, "a")
	p.add(1)
	app := p.open(to)
	defer app.Close()
	p.entry.measure()
	time.Sleep(10 * time.Millisecond)
	app.Write(make([]byte, 1000))
	if _, err := io.ReadFull(app, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	p.entry.measure()
	c := p.entry.connections(time.Now())[0]
	if c.SendRate == 0 || c.ReceiveRate == 0 || c.SendRate > 8*1000*100 {
		t.Errorf("rates: %+v", c)
	}
	acknowledged := func() bool {
		p.entry.mu.Lock()
		defer p.entry.mu.Unlock()
		sent, _ := p.entry.session.Bytes(1)
		return sent == 1000
	}
	until(t, "all is acknowledged", acknowledged)
	p.add(2)
	p.mu.Lock()
	p.streams[1].Close()
	p.mu.Unlock()
	until(t, "the stream has ended", func() bool {
		path := PathStatus{Name: "a"}
		p.entry.past(&path)
		return path.Sent == 1000 && path.Received == 1000
	})
}

// Only the last records are kept, but all are counted.
func TestRecords(t *testing.T) {
	r := records{log: slog.New(slog.DiscardHandler)}
	for n := range 3*maxRecords + 1 {
		r.add(ConnectionStatus{Sent: uint64(n), State: []stripe.ConnState{stripe.Ended, Failed}[n%2]})
	}
	r.flush()
	all := r.all()
	if len(all) != maxRecords || all[0].Sent != 2*maxRecords+1 || all[maxRecords-1].Sent != 3*maxRecords {
		t.Errorf("%d records, from %d to %d", len(all), all[0].Sent, all[len(all)-1].Sent)
	}
	if sum := r.total(); sum.Ended != 3*maxRecords+1 || sum.Failed != 3*maxRecords/2 {
		t.Errorf("%+v", sum)
	}
}
