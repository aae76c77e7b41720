package host

import (
	"cmp"
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
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
)

// Constants of the streams between agents, chosen for Headgate.
const (
	// dialTimeout is the timeout of a stream's connection.
	dialTimeout = 5 * time.Second
	// minPause and maxPause bound the delay before a stream that could not be opened, or has ended, is tried again.
	minPause, maxPause = 200 * time.Millisecond, 10 * time.Second
	// orphanTimeout is how long a session's connections are kept without a stream.
	orphanTimeout = 30 * time.Second
	// connectTimeout is the timeout of a connection to a destination.
	connectTimeout = 10 * time.Second
)

// sessionID identifies a session; the agent that dials the streams chooses it.
type sessionID [16]byte

// hello is what the dialing agent sends first on a stream: magic, version, session and the number of the stream.
const (
	magic     = "HGRL"
	version   = 1
	helloSize = len(magic) + 1 + len(sessionID{}) + 4
)

// destination is the description of a connection.
type destination struct {
	To   netip.AddrPort `json:"to"`
	From netip.AddrPort `json:"from,omitzero"` // the client's address
}

// hasSource reports whether the connection to the destination can have the client's address: a client on the entry's
// own host may have none that means anything at the exit.
func (d destination) hasSource() bool {
	from := d.From.Addr().Unmap()
	return from.IsValid() && !from.IsLoopback() && from.Is4() == d.To.Addr().Unmap().Is4()
}

// Acceptor accepts the streams of other agents, and connects to the destinations of their connections.
type Acceptor struct {
	Auth    *Auth
	Options stripe.Options
	// Accept has the destinations; others are refused, so that the agent is no open proxy.
	Accept relay.Accept
	Log    *slog.Logger
	// Ended is called with the record of a connection that has ended. It may be nil, and must not block.
	Ended func(ConnectionStatus)

	mu    sync.Mutex
	links map[sessionID]*accepted
	sos   map[sessionID]*sosAccepted
}

type accepted struct {
	*Link
	streams int
	orphan  *time.Timer
}

// Listen returns a listener for streams.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{Control: prepare}).Listen(ctx, "tcp", address)
}

// Serve accepts streams until the listener is closed.
func (a *Acceptor) Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if err := a.serve(c.(*net.TCPConn)); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				a.Log.Warn("stream of a relay ended", "peer", c.RemoteAddr(), "error", err)
			}
		}()
	}
}

func (a *Acceptor) serve(tcp *net.TCPConn) error {
	over, err := a.Auth.Server(tcp)
	if err != nil {
		return err
	}
	begins, err := readMagic(over)
	if err != nil {
		return err
	}
	if begins == sosMagic {
		return a.serveSOS(over)
	}
	id, number, err := readHello(over)
	if err != nil {
		return err
	}
	link, reply := a.join(id)
	defer a.leave(id)
	link.from(number, tcp.RemoteAddr())
	if _, err := over.Write([]byte{reply}); err != nil {
		return err
	}
	return link.AddStream(number, tcp, over)
}

// readMagic reads which kind of stream comes. What follows must come before handshakeTimeout.
func readMagic(c net.Conn) (string, error) {
	var b [len(magic)]byte
	if err := c.SetReadDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return "", err
	}
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return "", err
	}
	if s := string(b[:]); s == magic || s == sosMagic {
		return s, nil
	}
	return "", errors.New("the peer is no relay agent")
}

// readHello reads what follows the magic.
func readHello(c net.Conn) (id sessionID, number uint32, err error) {
	var b [helloSize - len(magic)]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return id, 0, err
	}
	if b[0] != version {
		return id, 0, fmt.Errorf("the peer has version %d of the relay protocol, this agent %d: use the same version of Headgate", b[0], version)
	}
	n := copy(id[:], b[1:])
	return id, binary.BigEndian.Uint32(b[1+n:]), c.SetReadDeadline(time.Time{})
}

func appendHello(id sessionID, number uint32) []byte {
	b := append([]byte(magic), version)
	return binary.BigEndian.AppendUint32(append(b, id[:]...), number)
}

// What the accepting agent replies to a hello: whether it knows the session.
const (
	newSession   byte = 1
	knownSession byte = 2
)

// join returns the link of a session, to which a stream is added.
func (a *Acceptor) join(id sessionID) (link *Link, reply byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.links == nil {
		a.links = map[sessionID]*accepted{}
	}
	one := a.links[id]
	reply = knownSession
	if one == nil {
		reply = newSession
		one = &accepted{Link: NewLink(a.Options, a.connect)}
		one.observed.ended = a.Ended
		a.links[id] = one
	}
	if one.orphan != nil {
		one.orphan.Stop()
		one.orphan = nil
	}
	one.streams++
	return one.Link, reply
}

// leave removes a stream from a session, and forgets a session that stays without streams.
func (a *Acceptor) leave(id sessionID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.links[id]
	if one == nil {
		return // closed
	}
	if one.streams--; one.streams > 0 {
		return
	}
	one.orphan = time.AfterFunc(orphanTimeout, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if one.streams == 0 && a.links[id] == one {
			delete(a.links, id)
			one.Close()
		}
	})
}

// connect connects to the destination of a connection.
func (a *Acceptor) connect(description []byte) (net.Conn, error) {
	var d destination
	if err := json.Unmarshal(description, &d); err != nil {
		return nil, errors.New("malformed destination")
	}
	return a.dial(d)
}

// dial connects to a destination, if it is allowed.
func (a *Acceptor) dial(d destination) (net.Conn, error) {
	to := d.To.Addr().Unmap()
	if !a.Accept.Allows(to) {
		return nil, refusal{notAllowed, fmt.Sprintf("the exit does not connect to %s: add a prefix with it to the exit's destinations", to)}
	}
	if a.Accept.KeepSource && d.hasSource() {
		return dialFrom(context.Background(), netip.AddrPortFrom(d.From.Addr().Unmap(), d.From.Port()), netip.AddrPortFrom(to, d.To.Port()))
	}
	return net.DialTimeout("tcp", netip.AddrPortFrom(to, d.To.Port()).String(), connectTimeout)
}

// Close ends all sessions.
func (a *Acceptor) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, one := range a.links {
		delete(a.links, id)
		one.Close()
	}
}

// Dialer keeps the streams to an exit open.
type Dialer struct {
	Auth    *Auth
	Exit    relay.Exit
	Options stripe.Options
	Log     *slog.Logger
	// Ended is called with the record of a connection that has ended. It may be nil, and must not block.
	Ended func(ConnectionStatus)

	mu   sync.Mutex
	now  session
	all  []*kept
	done bool
}

// session is a session with the exit. An exit that was started again knows nothing of it; then another begins.
type session struct {
	id          sessionID
	link        *Link
	number      uint32 // of the newest stream
	established bool
}

// NewDialer returns a dialer; Run opens its streams.
func NewDialer(auth *Auth, exit relay.Exit, o stripe.Options) *Dialer {
	o.Dialer = true
	d := &Dialer{Auth: auth, Exit: exit, Options: o, Log: slog.Default()}
	d.begin()
	return d
}

// begin begins a session. d.mu must be held.
func (d *Dialer) begin() {
	d.now = session{link: NewLink(d.Options, nil)}
	d.now.link.observed = observed{exit: d.Exit.Address.String(), ended: func(c ConnectionStatus) {
		if d.Ended != nil {
			d.Ended(c)
		}
	}}
	rand.Read(d.now.id[:])
}

// Run keeps the streams open until ctx ends.
func (d *Dialer) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range d.Exit.Paths {
		all.Go(func() { d.path(ctx, p) })
	}
	<-ctx.Done()
	d.mu.Lock()
	d.done = true
	d.now.link.Close()
	d.mu.Unlock()
	all.Wait()
}

// path keeps the streams of a path open: as many as configured, or as many as help, with the congestion control that
// delivers most.
func (d *Dialer) path(ctx context.Context, p relay.Path) {
	var all sync.WaitGroup
	defer all.Wait()
	controls := p.Congestion
	if len(controls) == 0 {
		controls = congestionControls
	}
	choice := stripe.NewChoice(controls...)
	tuner := stripe.NewTuner(1, maxStreams, cmp.Or(p.FirstStreams, firstStreams))
	if p.Streams > 0 {
		tuner = stripe.NewTuner(p.Streams, p.Streams, p.Streams)
	}
	var open []*kept
	for ctx.Err() == nil {
		for len(open) < tuner.Streams() {
			one := &kept{path: p, congestion: choice.Name()}
			one.ctx, one.cancel = context.WithCancel(ctx)
			open = append(open, one)
			all.Go(func() { d.keep(one) })
		}
		for _, one := range open[tuner.Streams():] {
			all.Go(func() { d.retire(one) })
		}
		open = open[:tuner.Streams()]
		for _, one := range open {
			if err := one.selectCongestion(choice.Name()); err != nil {
				d.Log.Warn("cannot select the congestion control", "exit", d.Exit.Address, "path", p.Name, "error", err)
				choice.Remove(choice.Name())
				break
			}
		}
		goodput, busy := d.epoch(ctx, open)
		if choice.Settled() {
			tuner.Observe(goodput, busy)
		}
		choice.Observe(goodput, busy)
	}
}

// epoch measures the goodput of streams in bytes per second for an epoch. busy is false if neither direction always
// had something to send.
func (d *Dialer) epoch(ctx context.Context, open []*kept) (goodput float64, busy bool) {
	began := time.Now()
	before := d.carried(open)
	ownBefore, otherBefore := d.idle()
	select {
	case <-ctx.Done():
		return 0, false
	case <-time.After(stripe.Epoch(d.rtt(open))):
	}
	after := d.carried(open)
	took := time.Since(began).Seconds()
	own, other := d.idle()
	for n, idle := range []bool{own != ownBefore, other != otherBefore} {
		if !idle && after[n] > before[n] {
			return float64(after[n]-before[n]) / took, true
		}
	}
	return 0, false
}

// firstStreams and maxStreams are the number of streams that a path begins with, and its maximum.
const firstStreams, maxStreams = 4, 128

// kept is a stream that is kept open.
type kept struct {
	path   relay.Path
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	link   *Link // while it is open
	number uint32
	// congestion is the name of the congestion control, "" for the kernel's default.
	congestion string
	failed     error // why it ended, or could not be opened
}

// of returns the link and number of the stream, nil while it is not open.
func (k *kept) of() (*Link, uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.link, k.number
}

// set sets the link and number of a stream that is open now, nil of one that is not any longer.
func (k *kept) set(l *Link, number uint32) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.link, k.number = l, number
	if l == nil || k.congestion == "" {
		return nil
	}
	return l.selectCongestion(number, k.congestion)
}

// selectCongestion selects the congestion control, now if the stream is open, and whenever it is opened.
func (k *kept) selectCongestion(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name == k.congestion {
		return nil
	}
	k.congestion = name
	if k.link == nil {
		return nil
	}
	return k.link.selectCongestion(k.number, name)
}

func (k *kept) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = err
}

// add and remove keep the list of streams that are kept open.
func (d *Dialer) add(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, k)
}

func (d *Dialer) remove(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = slices.DeleteFunc(d.all, func(o *kept) bool { return o == k })
}

// carried returns the bytes that streams have sent and received.
func (d *Dialer) carried(streams []*kept) (sum [2]uint64) {
	for _, k := range streams {
		if l, number := k.of(); l != nil {
			l.mu.Lock()
			sent, received := l.session.Bytes(number)
			l.mu.Unlock()
			sum[0], sum[1] = sum[0]+sent, sum[1]+received
		}
	}
	return sum
}

// rtt returns the longest round-trip time of streams.
func (d *Dialer) rtt(streams []*kept) (longest time.Duration) {
	for _, k := range streams {
		if l, number := k.of(); l != nil {
			l.mu.Lock()
			if st := l.streams[number]; st != nil {
				longest = max(longest, st.estimate().RTT)
			}
			l.mu.Unlock()
		}
	}
	return longest
}

// idle returns how often this agent, and the exit, had nothing to send.
func (d *Dialer) idle() (own, other uint64) {
	d.mu.Lock()
	link := d.now.link
	d.mu.Unlock()
	link.mu.Lock()
	defer link.mu.Unlock()
	return link.session.Idle()
}

// retireTimeout is how long a stream that is not needed waits for what it has sent to be acknowledged.
const retireTimeout = 5 * time.Second

// retire ends a stream that is not needed.
func (d *Dialer) retire(k *kept) {
	defer k.cancel()
	l, number := k.of()
	if l == nil {
		return
	}
	for end := time.Now().Add(retireTimeout); time.Now().Before(end); {
		l.mu.Lock()
		l.session.Retire(number)
		drained := l.session.Drained(number)
		l.mu.Unlock()
		if drained {
			break
		}
		select {
		case <-k.ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if st := l.streams[number]; st != nil {
		st.conn.Close()
	}
}

// keep keeps one stream open.
func (d *Dialer) keep(k *kept) {
	ctx, p := k.ctx, k.path
	d.add(k)
	defer d.remove(k)
	for pause := minPause; ctx.Err() == nil; {
		began := time.Now()
		err := d.stream(k)
		if ctx.Err() != nil {
			return
		}
		k.fail(err)
		d.Log.Warn("stream to a relay ended, trying again", "exit", d.Exit.Address, "path", p.Name, "error", err)
		if time.Since(began) > maxPause {
			pause = minPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
}

// stream opens one stream, and returns when it has ended.
func (d *Dialer) stream(k *kept) error {
	ctx, p := k.ctx, k.path
	tcp, over, err := dialPath(ctx, d.Auth, d.Exit, p)
	if err != nil {
		return err
	}
	defer tcp.Close()
	d.mu.Lock()
	d.now.number++
	in := d.now
	d.mu.Unlock()
	if _, err := over.Write(appendHello(in.id, in.number)); err != nil {
		return err
	}
	var reply [1]byte
	if _, err := io.ReadFull(over, reply[:]); err != nil {
		return err
	}
	if err := d.establish(in, reply[0]); err != nil {
		return err
	}
	in.link.on(in.number, p.Name)
	st, err := in.link.addStream(in.number, tcp, over)
	if err != nil {
		return err
	}
	defer k.set(nil, 0)
	if err := k.set(in.link, in.number); err != nil {
		d.Log.Warn("cannot select the congestion control", "exit", d.Exit.Address, "path", p.Name, "error", err)
	}
	return in.link.serve(st)
}

// dialPath opens an authenticated connection to an exit on a path: tcp is the connection, over what carries the bytes.
func dialPath(ctx context.Context, auth *Auth, e relay.Exit, p relay.Path) (tcp *net.TCPConn, over net.Conn, err error) {
	dialer := net.Dialer{Timeout: dialTimeout, Control: func(network, address string, raw syscall.RawConn) error {
		return errors.Join(prepare(network, address, raw), bind(p, raw))
	}}
	if p.Source.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.Source, 0))
	}
	to := e.Address
	if p.Address.IsValid() {
		to = p.Address
	}
	c, err := dialer.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, nil, err
	}
	if over, err = auth.Client(c); err != nil {
		c.Close()
		return nil, nil, err
	}
	return c.(*net.TCPConn), over, nil
}

// errRestarted ends a stream of a session that the exit does not know any longer.
var errRestarted = errors.New("the exit was started again")

// establish decides whether a stream goes on in its session, by what the exit replied.
func (d *Dialer) establish(in session, reply byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.done:
		return net.ErrClosed
	case in.id != d.now.id:
		return errRestarted // another stream has seen it
	case reply == newSession && in.established: // before this stream's hello
		d.now.link.Close()
		d.begin()
		return errRestarted
	}
	d.now.established = true
	return nil
}

// bind selects the path of a socket that is not connected yet.
func bind(p relay.Path, raw syscall.RawConn) (err error) {
	control := raw.Control(func(fd uintptr) {
		if p.Device != "" {
			err = unix.BindToDevice(int(fd), p.Device)
		}
		if p.Mark != 0 {
			err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(p.Mark)))
		}
	})
	if err = errors.Join(control, err); err != nil {
		return fmt.Errorf("path %s: %w", p.Name, err)
	}
	return nil
}

// Carry carries an application's connection to a destination.
func (d *Dialer) Carry(app net.Conn, to netip.AddrPort) error {
	from, _ := netip.ParseAddrPort(app.RemoteAddr().String())
	text, err := json.Marshal(destination{To: to, From: from})
	if err != nil {
		return err
	}
	d.mu.Lock()
	link := d.now.link
	d.mu.Unlock()
	link.Open(app, text)
	return nil
}

// Streams returns how many streams are open.
func (d *Dialer) Streams() int {
	d.mu.Lock()
	link := d.now.link
	d.mu.Unlock()
	link.mu.Lock()
	defer link.mu.Unlock()
	return len(link.streams)
}
