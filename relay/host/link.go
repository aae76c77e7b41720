package host

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"headgate.dev/headgate/relay/stripe"
)

// tickInterval is the interval in which streams without progress are looked for.
const tickInterval = 100 * time.Millisecond

// Link is the session with another agent, over any number of streams.
type Link struct {
	// dial connects to the destination of a connection that the other agent opens.
	dial func(description []byte) (net.Conn, error)
	log  *slog.Logger
	// replaced is called when the other agent will be replaced by another process. It may be nil.
	replaced func()

	mu      sync.Mutex
	session *stripe.Session
	streams map[uint32]*stream
	conns   map[*stripe.Conn]*conn
	began   time.Time
	ticking bool
	acks    *time.Timer
	// refusedCongestion is true after a congestion control that the other agent selects could not be had.
	refusedCongestion bool
	closed            bool
	// carrying is the number of connections whose bytes are passed on.
	carrying int
	// goingAway is true if the other agent must open new connections in another session.
	goingAway bool

	// reading is true while the goroutine that has l.mu will deliver what arrived to the connections in arrived.
	reading bool
	arrived []*conn

	observed observed
}

// NewLink returns a link without streams. dial connects to the destination of a connection that the other agent
// opens; nil refuses all.
func NewLink(o stripe.Options, dial func(description []byte) (net.Conn, error)) *Link {
	return &Link{dial: dial, log: slog.Default(), session: stripe.NewSession(o), streams: map[uint32]*stream{}, conns: map[*stripe.Conn]*conn{}, began: time.Now()}
}

func (l *Link) now() time.Duration { return time.Since(l.began) }

// pump assigns frames to the streams that can take them, and acts on what has happened. l.mu must be held.
func (l *Link) pump() {
	for {
		for events := l.session.Events(); len(events) > 0; events = l.session.Events() {
			for _, e := range events {
				l.handle(e)
			}
		}
		number, f, ok := l.session.Next(l.now())
		if !ok {
			break
		}
		l.streams[number].out <- f // has room for one, and Next assigns the next one after Writable
	}
	if at, ok := l.session.Deadline(); ok && l.acks == nil {
		l.acks = time.AfterFunc(atBatch(max(at-l.now(), 0)), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.acks = nil
			l.pump()
		})
	}
	if !l.ticking && !l.session.Quiet() {
		l.tickLater()
	}
}

func (l *Link) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ticking = false
	for number, st := range l.streams {
		info := tcpInfo(st.raw)
		l.session.Update(number, estimateOf(info))
		if st.idling.look(st.raw, l.session.Waits(number)) {
			l.tickLater()
		}
		st.regrow(time.Now(), info)
	}
	l.readDirect()
	l.session.Tick(l.now())
	l.pump()
}

// tickLater calls tick after an interval. l.mu must be held.
func (l *Link) tickLater() {
	if !l.ticking && !l.closed {
		l.ticking = true
		time.AfterFunc(tickInterval, l.tick)
	}
}

func (l *Link) handle(e stripe.Event) {
	k := l.conns[e.Conn]
	switch e.Kind {
	case stripe.EventCongestion:
		if st := l.streams[e.Stream]; st != nil {
			st.selected(e.Only)
			if err := setCongestion(st.raw, e.Reason); err != nil && !l.refusedCongestion {
				l.refusedCongestion = true // it will be for all streams
				l.log.Warn("cannot select the congestion control that the other agent requests", "name", e.Reason, "error", err)
			}
		}
		return
	case stripe.EventOpen:
		go l.connect(e.Conn, e.Description)
		return
	case stripe.EventOpened:
		if k != nil {
			k.opened = true
		}
	case stripe.EventReset:
		if k == nil {
			return
		}
		k.err = parseRefusal(e.Reason)
		k.end()
	case stripe.EventClosed:
		if k != nil {
			delete(l.conns, e.Conn)
			k.finish()
		}
	}
	switch {
	case k == nil:
	case e.Kind == stripe.EventData && l.reading && k.to != nil:
		l.arrived = append(l.arrived, k)
	default:
		k.changed.Broadcast()
	}
}

// connect connects to the destination of a connection that the other agent opened.
func (l *Link) connect(c *stripe.Conn, description []byte) {
	app, err := net.Conn(nil), error(refusal{notAllowed, "this agent is no exit"})
	if l.dial != nil {
		app, err = l.dial(description)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		c.Reset(refusalOf(err).reason())
		l.refused(description, err)
	case l.closed, l.session.Conn(c.Number) != c: // it has ended meanwhile
		reset(app)
	default:
		c.Accept()
		l.start(c, app)
		l.describe(l.conns[c], description)
	}
	l.pump()
}

// Open carries an application's connection to the other agent.
func (l *Link) Open(app net.Conn, description []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		app.Close()
		return
	}
	c := l.session.Open(description)
	l.start(c, app)
	l.describe(l.conns[c], description)
	l.pump()
}

// Close ends all streams and connections.
func (l *Link) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, st := range l.streams {
		st.conn.Close()
	}
	for _, k := range l.conns {
		k.err = net.ErrClosed
		k.end()
	}
}
