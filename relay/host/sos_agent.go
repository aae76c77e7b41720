package host

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"headgate.dev/headgate/relay"
)

// sosMagic is what a stream of the thesis's scheme sends first.
const sosMagic = "HGSO"

// sosHello follows the magic, as JSON after its length in two bytes.
type sosHello struct {
	Session     sessionID   `json:"session"`
	Stream      int         `json:"stream"`
	SOS         relay.SOS   `json:"sos"`
	Destination destination `json:"destination"`
}

func (h sosHello) write(w io.Writer) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint16([]byte(sosMagic), uint16(len(text)))
	_, err = w.Write(append(b, text...))
	return err
}

// readSOSHello reads what follows the magic.
func readSOSHello(r io.Reader) (h sosHello, err error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return h, err
	}
	text := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(r, text); err != nil {
		return h, err
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("malformed connection: %w", err)
	}
	if s := h.SOS; s.Streams < 1 || s.Streams > maxStreams || h.Stream < 0 || h.Stream >= s.Streams || s.Queue < 1 || s.Block <= sosHeader || s.Block > sosMaxBlock {
		return h, fmt.Errorf("malformed connection: stream %d of %+v", h.Stream, s)
	}
	return h, nil
}

// sosDialer carries connections to an exit by the thesis's scheme.
type sosDialer struct {
	auth *Auth
	exit relay.Exit
	log  *slog.Logger
	ctx  context.Context // of all connections
	open sync.WaitGroup
}

// Run waits until ctx ends, and then for the connections to end.
func (d *sosDialer) Run(ctx context.Context) {
	<-ctx.Done()
	d.open.Wait()
}

func (d *sosDialer) drain() { d.open.Wait() }

// Streams returns 1: each connection opens its own.
func (d *sosDialer) Streams() int { return 1 }

// RTT returns 0: no stream is open before a connection is taken.
func (d *sosDialer) RTT() time.Duration { return 0 }

// Announced returns none: there is no stream to announce destinations on.
func (d *sosDialer) Announced() []netip.Prefix { return nil }

// Carry carries an application's connection to a destination.
func (d *sosDialer) Carry(app net.Conn, to netip.AddrPort) error {
	from, _ := netip.ParseAddrPort(app.RemoteAddr().String())
	sosOutlet{d, destination{To: to, From: from}}.carry(app)
	return nil
}

// Connect returns at once, because the thesis's scheme has no answer of the exit.
func (d *sosDialer) Connect(_ context.Context, from, to netip.AddrPort) (outlet, error) {
	return sosOutlet{d, destination{To: to, From: from}}, nil
}

type sosOutlet struct {
	d  *sosDialer
	to destination
}

func (o sosOutlet) carry(app net.Conn) {
	d := o.d
	d.open.Go(func() {
		defer app.Close()
		err := d.carry(app, o.to)
		if err != nil {
			reset(app)
		}
		if err != nil && d.ctx.Err() == nil {
			d.log.Warn("connection of a relay ended", "exit", d.exit.Address, "to", o.to.To, "error", err)
		}
	})
}

func (d *sosDialer) carry(app net.Conn, to destination) error {
	hello := sosHello{SOS: *d.exit.SOS, Destination: to}
	rand.Read(hello.Session[:])
	streams := make([]net.Conn, hello.SOS.Streams)
	defer func() { closeAll(streams) }()
	errs := make([]error, len(streams))
	var all sync.WaitGroup
	for n := range streams {
		all.Go(func() {
			h := hello
			h.Stream = n
			streams[n], errs[n] = d.dial(d.exit.Paths[n%len(d.exit.Paths)], h)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	defer context.AfterFunc(d.ctx, func() { closeAll(streams) })()
	return carrySOS(hello.SOS, app, streams)
}

// dial opens one stream.
func (d *sosDialer) dial(p relay.Path, hello sosHello) (net.Conn, error) {
	tcp, over, err := dialPath(d.ctx, d.auth, d.exit, p)
	if err != nil {
		return nil, err
	}
	if len(p.Congestion) > 0 {
		raw, rawErr := tcp.SyscallConn()
		if err = rawErr; err == nil {
			err = setCongestion(raw, p.Congestion[0])
		}
	}
	if err = errors.Join(err, hello.write(over)); err != nil {
		over.Close()
		return nil, err
	}
	return over, nil
}

// sosAccepted are the streams of a connection that have come.
type sosAccepted struct {
	streams []net.Conn
	come    int
	ended   chan struct{}
}

// serveSOS accepts a stream of the thesis's scheme. It returns when the connection has ended.
func (a *Acceptor) serveSOS(over net.Conn) error {
	h, err := readSOSHello(over)
	if err != nil {
		return err
	}
	if err := over.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	a.mu.Lock()
	c := a.sos[h.Session]
	if c == nil {
		c = &sosAccepted{streams: make([]net.Conn, h.SOS.Streams), ended: make(chan struct{})}
		if a.sos == nil {
			a.sos = map[sessionID]*sosAccepted{}
		}
		a.sos[h.Session] = c
	}
	if h.Stream >= len(c.streams) || c.streams[h.Stream] != nil {
		a.mu.Unlock()
		return errors.New("malformed connection: a stream has come before")
	}
	c.streams[h.Stream] = over
	c.come++
	last := c.come == len(c.streams)
	if last {
		delete(a.sos, h.Session)
	}
	a.mu.Unlock()
	if last {
		defer close(c.ended)
		defer closeAll(c.streams)
		app, err := a.dial(h.Destination)
		if err != nil {
			return err
		}
		defer app.Close()
		return carrySOS(h.SOS, app, c.streams)
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(handshakeTimeout):
	}
	a.mu.Lock()
	waiting := a.sos[h.Session] == c
	if waiting {
		delete(a.sos, h.Session)
	}
	a.mu.Unlock()
	if waiting {
		closeAll(c.streams)
		return errors.New("not all streams of a connection have come")
	}
	<-c.ended
	return nil
}
