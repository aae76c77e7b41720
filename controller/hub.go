package controller

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/controller/points"
	"headgate.dev/headgate/store"
)

// hub holds the streams of the agents that are connected to this controller.
type hub struct {
	agents.UnimplementedAgentsServer
	store *store.Store
	cache *cache
	// agentsAt are the addresses of all controllers for agents.
	agentsAt []string
	sign     func(host string, request []byte) (cert, authority []byte, serial string, err error)

	reports atomic.Uint64 // number of reports received
	changes changes

	// measured adds up the agents' reports of reservations.
	measured points.Collector

	mu       sync.Mutex
	links    map[string]*link                // newest stream by host
	reserved map[string]*agents.Reservations // by host, with the limits now
	// allowances are what agents may still do, by host.
	allowances map[string]*allowance
	// ahead has what agents have that are ahead of this controller, by host.
	ahead map[string]*agents.Fence
}

// link is the stream of one agent.
type link struct {
	host    string
	address string        // IP address of the agent
	closed  chan struct{} // closed when the stream has ended
	wake    chan struct{} // signals that the desired state may have changed
	end     context.CancelCauseFunc
	// out queues messages other than the desired state.
	out chan *agents.ToAgent

	mu       sync.Mutex
	hello    *agents.Hello
	facts    *agents.Facts
	enforced *agents.Enforced
	reserved *agents.ReservationsEnforced
	tables   map[string]*table
	probes   probes
	// queries are the open queries, by number; lastQuery is the number of the newest.
	queries   map[uint64]openQuery
	lastQuery uint64
	// lastWatched is when a client last requested the rates. fastReports is whether the agent reports at
	// the short interval.
	lastWatched time.Time
	fastReports bool
}

// Connect serves an agent's stream.
func (h *hub) Connect(stream agents.Agents_ConnectServer) error {
	host, serial, valid, err := peerHost(stream.Context())
	if err != nil {
		return err
	}
	if !valid {
		return errExpired
	}
	if err := h.authorize(stream.Context(), host, serial); err != nil {
		return err
	}
	hello, err := receiveHello(stream)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	l := &link{host: host, address: peerAddress(stream.Context()), closed: make(chan struct{}), wake: make(chan struct{}, 1), end: end, out: make(chan *agents.ToAgent, 16), hello: hello,
		tables: map[string]*table{}, queries: map[uint64]openQuery{}}
	h.add(l)
	defer close(l.closed)
	defer h.remove(l)
	go func() { end(h.receive(ctx, stream, l)) }()
	return h.send(ctx, stream, l, serial)
}

// add registers the stream of a host, and ends an earlier stream of the same host.
func (h *hub) add(l *link) {
	h.mu.Lock()
	before := h.links[l.host]
	h.links[l.host] = l
	l.sendReservations(h.reserved[l.host]) // after the desired state, which is the first message
	h.mu.Unlock()
	h.changes.reported(l.host)
	if before != nil {
		before.end(status.Error(codes.Aborted, "replaced by a newer stream of the same host"))
	}
}

func (h *hub) remove(l *link) {
	h.mu.Lock()
	if h.links[l.host] == l {
		delete(h.links, l.host)
	}
	h.mu.Unlock()
	h.changes.reported(l.host)
}

// changed is called by the cache after a change of a host's documents.
func (h *hub) changed(host string) {
	h.mu.Lock()
	l := h.links[host]
	h.mu.Unlock()
	if l != nil {
		wake(l.wake)
	}
}

// heartbeatInterval is the heartbeat interval. A heartbeat is an empty message, which shows the agent that
// the controller itself is alive, and not only its kernel, which acknowledges TCP segments.
const heartbeatInterval = 2 * time.Second

// send sends an agent the documents that it does not have, after each change.
func (h *hub) send(ctx context.Context, stream agents.Agents_ConnectServer, l *link, serial string) error {
	have := maps.Clone(l.hello.Interfaces)
	if have == nil {
		have = map[string]int64{}
	}
	beat := time.NewTicker(heartbeatInterval)
	defer beat.Stop()
	began, ahead := time.Now(), false
	for first := true; ; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-beat.C:
				if !h.cache.isCurrent() {
					return errDisconnected
				}
				if err := stream.Send(&agents.ToAgent{}); err != nil {
					return err
				}
				if !ahead {
					continue
				}
			case m := <-l.out:
				if err := stream.Send(m); err != nil {
					return err
				}
				continue
			case <-l.wake:
			}
		}
		if err := h.check(l.host, serial); err != nil {
			return err
		}
		// An agent ends a stream with an earlier state than its own. It stays connected, so that it is seen, until this controller has caught up.
		if ahead = h.noteAhead(l, began); ahead {
			if err := stream.Send(&agents.ToAgent{}); err != nil {
				return err
			}
			continue
		}
		desired := h.cache.desired(l.host, have)
		desired.Agents = h.agentsAt
		if l.hello.Documents {
			for _, i := range desired.Interfaces {
				if len(i.Document) == 0 {
					continue
				}
				if err := stream.Send(agents.To(&agents.Interface{Dev: i.Dev, Revision: i.Revision, Document: i.Document})); err != nil {
					return err
				}
				i.Document = nil
			}
		}
		if err := stream.Send(agents.To(desired)); err != nil {
			return err
		}
		if first { // the agent expects heartbeats from now on
			if err := stream.Send(&agents.ToAgent{}); err != nil {
				return err
			}
		}
	}
}

// desired returns the desired state of a host, without the text of documents that its agent has. It
// updates have.
func (c *cache) desired(host string, have map[string]int64) *agents.Desired {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &agents.Desired{Fence: &agents.Fence{Epoch: c.epoch, Revision: c.revision}}
	h := c.hosts[host]
	if h == nil {
		return d
	}
	for _, dev := range slices.Sorted(maps.Keys(h.interfaces)) {
		doc := h.interfaces[dev]
		i := &agents.Interface{Dev: dev, Revision: doc.revision}
		if have[dev] != doc.revision {
			i.Document = doc.body
			have[dev] = doc.revision
		}
		d.Interfaces = append(d.Interfaces, i)
	}
	for _, name := range slices.Sorted(maps.Keys(h.collectives)) {
		d.Collectives = append(d.Collectives, &agents.Document{Name: name, Text: string(h.collectives[name].body)})
	}
	return d
}

// receive processes an agent's messages until its stream ends.
func (h *hub) receive(ctx context.Context, stream agents.Agents_ConnectServer, l *link) error {
	allowance := h.allowance(l.host)
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := h.admit(ctx, l.host, allowance, m); err != nil {
			return err
		}
		announced := true // to live streams; an answer to a query that such a stream has caused would cause the next
		l.mu.Lock()
		switch carried := agents.Carried(m).(type) {
		case *agents.Facts:
			l.facts = carried
		case *agents.Enforced:
			l.enforced = carried
		case *agents.ReservationsEnforced:
			fresh := 0
			for key, why := range carried.Errors {
				if l.reserved.GetErrors()[key] == why {
					continue
				}
				if fresh++; fresh <= maxLogged {
					slog.Warn("the agent does not enforce a reservation", "host", l.host, "reservation", key, "reason", why)
				}
			}
			l.reserved = carried
		case *agents.ReservationReport:
			announced = false // clients read the rates of groups
			h.measured.Add(carried)
		case *agents.Report:
			l.report(carried)
			l.unwatch(time.Now())
			h.reports.Add(1)
		default:
			_, announced = carried.(*agents.ProbeAnswer)
			if !l.deliver(m) {
				slog.Debug("message of an unknown type, or to no open query", "host", l.host, "type", fmt.Sprintf("%T", carried), "query", m.Answer)
			}
		}
		l.mu.Unlock()
		if announced {
			h.changes.reported(l.host)
		}
	}
}

// maxLogged is how many errors of one message of an agent are logged.
const maxLogged = 10

// Renew signs a new certificate for an agent.
func (h *hub) Renew(ctx context.Context, r *agents.RenewRequest) (*agents.RenewResponse, error) {
	host, serial, _, err := peerHost(ctx)
	if err != nil {
		return nil, err
	}
	if a := h.allowance(host); !a.renewals.Allow() {
		h.excess(host, a, "more requests for certificates than one a minute")
		return nil, status.Error(codes.ResourceExhausted, "too many requests for certificates: retry later")
	}
	cert, authority, next, err := h.sign(host, r.Request)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	key := store.Key(store.Hosts, host)
	_, err = h.store.Do(ctx, key, func(tx *store.Tx) error {
		var doc store.Host
		since, ok, err := tx.Get(key, &doc)
		if err != nil {
			return err
		}
		// Writing the document would make the host one of the restored service, which permits it.
		if _, restored, err := tx.Unconfirmed(); err != nil {
			return err
		} else if ok && since != 0 && since < restored {
			return errRestored
		}
		if !ok || !accepts(doc, serial) {
			return errDenied(host)
		}
		doc.Serials = []string{serial, next} // the old certificate stays valid for a retry, if the answer is lost
		return tx.Put(key, doc)
	})
	if err != nil {
		return nil, err
	}
	return &agents.RenewResponse{Certificate: cert, Authority: authority, Agents: h.agentsAt}, nil
}

// link returns a host's stream, nil if its agent is not connected.
func (h *hub) link(host string) *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[host]
}

// usageTimeout is how long an agent may take to read its usage record of a week.
const usageTimeout = 10 * time.Second

// usage queries an agent's usage record.
func (l *link) usage(ctx context.Context, since, until time.Time) (*agents.UsageAnswer, error) {
	return query[*agents.UsageAnswer](ctx, l, usageTimeout, &agents.UsageQuery{Since: since.Unix(), Until: until.Unix()})
}
