package host

import (
	"cmp"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
)

// rateInterval is the interval over which rates are measured.
const rateInterval = time.Second

// Status is the state of an agent.
type Status struct {
	Agent string    `json:"agent"`
	At    time.Time `json:"at"`
	// Began is when the agent was started.
	Began time.Time `json:"began"`
	// Exits are the agents to which it carries connections, in the order of the configuration, and Entries those
	// whose streams it accepted.
	Exits   []PeerStatus `json:"exits"`
	Entries []PeerStatus `json:"entries"`
	// Connections are those that are carried now, the oldest first.
	Connections []ConnectionStatus `json:"connections"`
	Total       TotalStatus        `json:"total"`
	// Omitted is what a bounded status leaves out (Bound).
	Omitted *Omitted `json:"omitted,omitempty"`
}

// PeerStatus is the state of the session with another agent. Directions are those of this agent: what it has sent to
// the other, and received from it.
type PeerStatus struct {
	// Address is that of an exit, or the address without port from which an entry's newest stream came.
	Address      string         `json:"address"`
	Destinations []netip.Prefix `json:"destinations,omitempty"`
	Paths        []PathStatus   `json:"paths"`
}

// PathStatus is the state of a path.
type PathStatus struct {
	// Name is the configured name; at an exit it is the address from which the path's streams came.
	Name string `json:"name"`
	// Selection describes what selects the path at the entry.
	Selection string `json:"selection,omitempty"`
	PathSummary
	// Sent and Received are bytes of connections since the session began, also on streams that have ended.
	Sent     uint64 `json:"sent_bytes"`
	Received uint64 `json:"received_bytes"`
	// Streams are the open ones by number, and after them those that are being opened.
	Streams []StreamStatus `json:"streams"`
}

// StreamStatus is the state of a stream.
type StreamStatus struct {
	Number uint32      `json:"number,omitempty"`
	State  StreamState `json:"state"`
	// RTT is the smoothed round-trip time of the stream's TCP connection, and EstimatedRate at what rate it can send.
	RTT           time.Duration `json:"rtt_ns"`
	EstimatedRate uint64        `json:"estimated_rate_bps"`
	// SendRate and ReceiveRate are of connections' bytes in the last second.
	SendRate    uint64 `json:"send_rate_bps"`
	ReceiveRate uint64 `json:"receive_rate_bps"`
	// Unsent bytes wait in the socket, and Unacknowledged ones were not acknowledged by the other agent.
	Unsent         int    `json:"unsent_bytes"`
	Unacknowledged int    `json:"unacknowledged_bytes"`
	Sent           uint64 `json:"sent_bytes"`
	Received       uint64 `json:"received_bytes"`
	// Error is why the stream could not be opened, or ended, while it is closed.
	Error string `json:"error,omitempty"`
}

// StreamState is the state of a stream.
type StreamState string

// The states of streams.
const (
	StreamOpen StreamState = "open"
	// StreamSuspect makes no progress, and gets no data until it does.
	StreamSuspect StreamState = "suspect"
	// StreamRetired is not needed, and ends when what it has sent was acknowledged.
	StreamRetired StreamState = "retired"
	// StreamClosed is not open, and is tried again.
	StreamClosed StreamState = "closed"
)

// ConnectionStatus is the state of a connection of an application, or its record after the end. Directions are those
// of this agent: what it took from the application and sent to the other agent, and what it received from there.
type ConnectionStatus struct {
	Client      netip.AddrPort `json:"client"`
	Destination netip.AddrPort `json:"destination"`
	// Exit is the address of the exit, at the entry; Entry is that of the entry, at the exit.
	Exit  string `json:"exit,omitempty"`
	Entry string `json:"entry,omitempty"`
	// State is one of stripe's, or "failed" if the connection ended with an error.
	State stripe.ConnState `json:"state"`
	Began time.Time        `json:"began"`
	// Age is the time since then, until the end of the connection.
	Age      time.Duration `json:"age_ns"`
	Sent     uint64        `json:"sent_bytes"`
	Received uint64        `json:"received_bytes"`
	// SendRate and ReceiveRate are those of the last second.
	SendRate    uint64 `json:"send_rate_bps"`
	ReceiveRate uint64 `json:"receive_rate_bps"`
	// Waiting bytes were not given to a stream, and Unacknowledged ones were not acknowledged by the other agent.
	Waiting        int `json:"waiting_bytes"`
	Unacknowledged int `json:"unacknowledged_bytes"`
	// Unread bytes arrived in order, and the application has not taken them; Reordering ones wait for earlier bytes.
	Unread     int `json:"unread_bytes"`
	Reordering int `json:"reordering_bytes"`
	// Paths are the bytes that each path has carried.
	Paths []stripe.PathBytes `json:"paths"`
	// DirectRate is the estimated rate of one direct TCP connection in this agent's sending direction
	// (stripe.DirectPath), and Gain the connection's average rate divided by it. They are 0 if it is not known: the
	// connection has received more than it has sent, or is too short, or the application often had nothing to send. Only
	// the agent that sends knows what was lost: an exit has them for what it sends, over the only path of its entry.
	DirectRate uint64  `json:"direct_rate_bps,omitempty"`
	Gain       float64 `json:"gain,omitempty"`
	// Error is why the connection failed.
	Error string `json:"error,omitempty"`
}

// Failed is the state of a connection that ended with an error.
const Failed stripe.ConnState = "failed"

// TotalStatus sums up an agent.
type TotalStatus struct {
	// Streams and Connections are open ones.
	Streams     int `json:"streams"`
	Connections int `json:"connections"`
	// Ended counts connections since the agent was started; Failed are those of them that ended with an error.
	Ended  uint64 `json:"ended"`
	Failed uint64 `json:"failed"`
	// Sent and Received are bytes of open and ended connections.
	Sent        uint64 `json:"sent_bytes"`
	Received    uint64 `json:"received_bytes"`
	SendRate    uint64 `json:"send_rate_bps"`
	ReceiveRate uint64 `json:"receive_rate_bps"`
	Waiting     int    `json:"waiting_bytes"`
	Unread      int    `json:"unread_bytes"`
	Reordering  int    `json:"reordering_bytes"`
}

// Agent is a relay agent.
type Agent struct {
	policy  relay.Policy
	log     *slog.Logger
	began   time.Time
	records records
	network *networkAgent // nil without a network
	sockets sockets
	// Metrics serves metrics at an address, "" for none.
	Metrics struct {
		Address string
		Serve   func(net.Listener) (stop func() error)
	}
	// Upgrade is how another process takes over; nil if none can.
	Upgrade *Upgrade

	mu sync.Mutex
	// now accepts connections and streams, nil while another process does. draining were handed over, and still have
	// connections. Only Run changes them.
	now      *serving
	draining []*serving
}

// NewAgent returns an agent, which Run runs.
func NewAgent(p relay.Policy, log *slog.Logger) *Agent {
	a := &Agent{policy: p, log: log, began: time.Now(), records: records{log: log}}
	if p.Network != "" {
		a.network = &networkAgent{policy: p, log: log}
	}
	return a
}

// ended takes the record of a connection that has ended.
func (a *Agent) ended(c ConnectionStatus) {
	a.records.add(c)
	if a.network != nil {
		a.network.end(c)
	}
}

// links returns all sessions.
func (a *Agent) links() (all []*Link) {
	a.mu.Lock()
	from := slices.Clone(a.draining)
	if a.now != nil {
		from = append(from, a.now)
	}
	a.mu.Unlock()
	for _, s := range from {
		for _, d := range s.dials() {
			all = append(all, d.links()...)
		}
		all = append(all, s.acceptor.sessions()...)
	}
	return all
}

// Status returns the state of the agent.
func (a *Agent) Status() Status {
	now := time.Now()
	s := Status{Agent: a.policy.Name, At: now.UTC(), Began: a.began.UTC(), Exits: []PeerStatus{}, Entries: []PeerStatus{}, Connections: []ConnectionStatus{}}
	a.mu.Lock()
	serving := a.now
	a.mu.Unlock()
	if serving != nil {
		for _, d := range serving.dials() {
			s.Exits = append(s.Exits, d.status())
		}
		s.Entries = serving.acceptor.status()
	}
	s.Connections, s.Total = a.connections(now)
	sortConnections(s.Connections)
	s.Total.Connections = len(s.Connections)
	for _, c := range s.Connections {
		s.Total.Sent += c.Sent
		s.Total.Received += c.Received
		s.Total.SendRate += c.SendRate
		s.Total.ReceiveRate += c.ReceiveRate
		s.Total.Waiting += c.Waiting
		s.Total.Unread += c.Unread
		s.Total.Reordering += c.Reordering
	}
	for _, p := range slices.Concat(s.Exits, s.Entries) {
		for _, path := range p.Paths {
			s.Total.Streams += path.Open
		}
	}
	return s
}

// connections describes all connections, and sums up those that have ended. A connection that ends meanwhile would
// count twice or not at all: then it tries again, but not without end.
func (a *Agent) connections(now time.Time) (all []ConnectionStatus, sum TotalStatus) {
	sum = a.records.total()
	for range 10 {
		all = []ConnectionStatus{}
		for _, l := range a.links() {
			all = append(all, l.connections(now)...)
		}
		before := sum.Ended
		if sum = a.records.total(); sum.Ended == before {
			break
		}
	}
	return all, sum
}

func (d *Dialer) status() PeerStatus {
	d.mu.Lock()
	now, all := d.now.link, slices.Clone(d.all)
	d.mu.Unlock()
	out := PeerStatus{Address: d.Exit.Address.String(), Destinations: d.Exit.Destinations, Paths: []PathStatus{}}
	if d.Exit.Announced {
		out.Destinations = d.Announced()
	}
	for _, p := range d.Exit.Paths {
		path := PathStatus{Name: p.Name, Selection: p.String(), Streams: []StreamStatus{}}
		for _, k := range all {
			if k.path.Name == p.Name {
				path.Streams = append(path.Streams, k.status())
			}
		}
		now.past(&path)
		out.Paths = append(out.Paths, path.sum())
	}
	return out
}

// status describes a stream that is kept open.
func (k *kept) status() StreamStatus {
	if l, number := k.of(); l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if st := l.streams[number]; st != nil {
			return l.stream(st)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	out := StreamStatus{State: StreamClosed}
	if k.failed != nil {
		out.Error = k.failed.Error()
	}
	return out
}

// stream describes an open stream. l.mu must be held.
func (l *Link) stream(st *stream) StreamStatus {
	i, _ := l.session.Stream(st.number)
	out := StreamStatus{
		Number: st.number, State: StreamOpen, RTT: i.RTT, EstimatedRate: bits(i.Rate), SendRate: st.rate.send, ReceiveRate: st.rate.receive,
		Unsent: i.Unsent, Unacknowledged: i.Unacknowledged, Sent: i.Sent, Received: i.Received,
	}
	switch {
	case i.Retired:
		out.State = StreamRetired
	case i.Suspect:
		out.State = StreamSuspect
	}
	return out
}

// past adds the bytes of a path's streams that have ended.
func (l *Link) past(p *PathStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.observed.past[p.Name]
	p.Sent += was.Sent
	p.Received += was.Received
}

// sum adds the bytes of the streams to those of the path, sums them up, and sorts them.
func (p PathStatus) sum() PathStatus {
	p.PathSummary = Summarize(p.Streams)
	for _, st := range p.Streams {
		p.Sent += st.Sent
		p.Received += st.Received
	}
	slices.SortStableFunc(p.Streams, func(a, b StreamStatus) int {
		// Those without a number are last.
		return cmp.Compare(a.Number-1, b.Number-1)
	})
	return p
}

// sessions returns the sessions with other agents.
func (a *Acceptor) sessions() (all []*Link) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.links {
		all = append(all, one.Link)
	}
	return all
}

func (a *Acceptor) status() []PeerStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := []PeerStatus{}
	for _, one := range a.links {
		out = append(out, one.Link.entryStatus())
	}
	sortPeers(out)
	return out
}

// entryStatus describes a session whose streams were accepted.
func (l *Link) entryStatus() PeerStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	paths := map[string]*PathStatus{}
	of := func(name string) *PathStatus {
		if paths[name] == nil {
			paths[name] = &PathStatus{Name: name, Streams: []StreamStatus{}}
		}
		return paths[name]
	}
	for name, was := range l.observed.past {
		of(name).Sent, of(name).Received = was.Sent, was.Received
	}
	for number, st := range l.streams {
		p := of(l.observed.paths[number])
		p.Streams = append(p.Streams, l.stream(st))
	}
	out := PeerStatus{Address: l.observed.entry, Paths: []PathStatus{}}
	for _, p := range paths {
		out.Paths = append(out.Paths, p.sum())
	}
	slices.SortFunc(out.Paths, func(a, b PathStatus) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// connections describes the connections of a session.
func (l *Link) connections(now time.Time) (out []ConnectionStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.conns {
		out = append(out, k.status(now))
	}
	return out
}

// status describes a connection. link.mu must be held.
func (k *conn) status(now time.Time) ConnectionStatus {
	i, o := k.c.Info(), k.link.observed
	out := ConnectionStatus{
		Client: k.about.From, Destination: k.about.To, Exit: o.exit, Entry: o.entry, State: i.State, Began: k.began.UTC(), Age: now.Sub(k.began),
		Sent: i.Sent, Received: i.Received, SendRate: k.rate.send, ReceiveRate: k.rate.receive,
		Waiting: i.Waiting, Unacknowledged: i.Unacknowledged, Unread: i.Unread, Reordering: i.Reordering, Paths: slices.Concat([]stripe.PathBytes{}, i.Paths),
	}
	k.estimateDirect(&out)
	return out
}

// observed is what a link keeps for the status alone, and the announcement of destinations.
type observed struct {
	// exit is the address of the exit at an entry, and entry that of the entry at an exit.
	exit, entry string
	// paths are the names of the paths of streams, and past the bytes of streams that have ended, by path.
	paths map[uint32]string
	past  map[string]stripe.PathBytes
	// direct is the path that direct connections would be on.
	direct directPath
	// ended is called with the record of a connection that has ended; it may be nil, and must not block.
	ended func(ConnectionStatus)
	// asks tells whether to ask for the exit's destinations, and announced is called with the answer; both are nil for
	// none. announces is this agent's own answer, nil if it does not answer.
	asks      func() bool
	announced func(payload []byte)
	announces []byte
}

// on names the path of a stream before it is added.
func (l *Link) on(number uint32, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.observed.paths == nil {
		l.observed.paths, l.observed.past = map[uint32]string{}, map[string]stripe.PathBytes{}
	}
	l.observed.paths[number] = path
}

// from names the path of a stream that was accepted, by the address from which it came.
func (l *Link) from(number uint32, at net.Addr) {
	host, _, err := net.SplitHostPort(at.String())
	if err != nil {
		host = at.String()
	}
	l.on(number, host)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.observed.entry = host
}

// leave adds the bytes of a stream that has ended to those of its path. l.mu must be held, and the session still
// have the stream.
func (l *Link) leave(number uint32) {
	path, named := l.observed.paths[number]
	if !named {
		return
	}
	sent, received := l.session.Bytes(number)
	was := l.observed.past[path]
	l.observed.past[path] = stripe.PathBytes{Path: path, Sent: was.Sent + sent, Received: was.Received + received}
	delete(l.observed.paths, number)
}

// measure computes the rates of streams and connections, and returns how many there are.
func (l *Link) measure() (conns, streams int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for number, st := range l.streams {
		sent, received := l.session.Bytes(number)
		st.rate.update(sent, received, l.now())
	}
	l.measureDirect()
	for _, k := range l.conns {
		i := k.c.Info()
		k.rate.update(i.Sent, i.Received, l.now())
		k.observeDirect(i)
	}
	return len(l.conns), len(l.streams)
}

// rate is the rate of bytes in both directions between two readings of counters.
type rate struct {
	sent, received uint64
	at             time.Duration // of the last reading
	send, receive  uint64        // bit/s
}

func (r *rate) update(sent, received uint64, now time.Duration) {
	if took := (now - r.at).Seconds(); r.at > 0 && took > 0 {
		r.send, r.receive = bits(float64(sent-r.sent)/took), bits(float64(received-r.received)/took)
	}
	r.sent, r.received, r.at = sent, received, now
}

// bits converts bytes per second to bit/s.
func bits(rate float64) uint64 { return uint64(math.Round(8 * rate)) }
