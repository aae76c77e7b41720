package host

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"headgate.dev/headgate/relay"
)

// The thesis's scheme carries the bytes of a connection in both directions, with any number of streams and any queue,
// and resets a connection whose destination the exit refuses.
func TestSOS(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := &Acceptor{Auth: newKey(t, "k", true), Options: options, Accept: relay.Accept{Destinations: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Log: quiet}
	go a.Serve(l)
	text := make([]byte, 5_000_003)
	random := rand.New(rand.NewPCG(1, 1))
	for n := range text {
		text[n] = byte(random.Uint32())
	}
	to := netip.MustParseAddrPort(echo(t))
	for _, s := range []relay.SOS{{Streams: 1, Queue: 1, Block: 512}, {Streams: 2, Queue: 1, Block: 8192}, {Streams: 5, Queue: 1, Block: 8192}, {Streams: 20, Queue: 1000, Block: 65536}} {
		exit := relay.Exit{Address: netip.MustParseAddrPort(l.Addr().String()), Paths: []relay.Path{{Name: "a"}, {Name: "b", Congestion: []string{"cubic"}}}, SOS: &s}
		d := &sosDialer{ctx: t.Context(), auth: newKey(t, "k", true), exit: exit, log: quiet}
		if got, err := through(t, d, to, text); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%+v: %d of %d bytes, %v", s, len(got), len(text), err)
		}
		if _, err := through(t, d, netip.MustParseAddrPort("192.0.2.1:80"), text); err == nil {
			t.Errorf("%+v: a refused destination has no error", s)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sos) > 0 {
		t.Errorf("%d connections are left", len(a.sos))
	}
}

// through sends text through a carrier, and returns what comes back.
func through(t *testing.T, d carrier, to netip.AddrPort, text []byte) ([]byte, error) {
	t.Helper()
	app, c := connected(t)
	defer app.Close()
	if err := d.Carry(c, to); err != nil {
		t.Fatal(err)
	}
	return exchanged(app, text)
}

// exchanged sends text on a connection, and returns what comes back.
func exchanged(app net.Conn, text []byte) ([]byte, error) {
	app.SetDeadline(time.Now().Add(20 * time.Second))
	sent := make(chan error, 1)
	go func() {
		_, err := app.Write(text)
		sent <- errors.Join(err, app.(*net.TCPConn).CloseWrite())
	}()
	got, err := io.ReadAll(app)
	return got, errors.Join(err, <-sent) // the kernel reports a reset to one of the two
}

// A stream that claims what its connection does not have ends, and so does a connection whose streams do not all come.
func TestSOSHello(t *testing.T) {
	for _, h := range []sosHello{
		{SOS: relay.SOS{Streams: 0, Queue: 1, Block: 512}}, {SOS: relay.SOS{Streams: 2, Queue: 1, Block: 512}, Stream: 2},
		{SOS: relay.SOS{Streams: 2, Queue: 0, Block: 512}}, {SOS: relay.SOS{Streams: 2, Queue: 1, Block: 8}},
		{SOS: relay.SOS{Streams: 2, Queue: 1, Block: 2 << 20}}, {SOS: relay.SOS{Streams: 2, Queue: 1, Block: 512}, Stream: -1},
	} {
		var b bytes.Buffer
		if err := h.write(&b); err != nil {
			t.Fatal(err)
		}
		b.Next(len(sosMagic))
		if _, err := readSOSHello(&b); err == nil {
			t.Errorf("%+v is accepted", h)
		}
	}
	if _, err := readSOSHello(bytes.NewReader([]byte{0, 9, '{'})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut hello: %v", err)
	}
}
