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

	"headgate/api/agents"
	"headgate/store"
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

	mu    sync.Mutex
	links map[string]*link // newest stream by host
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
	tables   map[string]*table
	answers  map[uint64]chan *agents.FromAgent
	probes   probes
	waiters  map[string]chan *agents.FromAgent // by topic
	asked    uint64
	// lastWatched is when a client last requested the rates. fastReports is whether the agent reports at
	// the short interval.
	lastWatched time.Time
	fastReports bool
}

// Connect serves an agent's stream.
func (h *hub) Connect(stream agents.Agents_ConnectServer) error {
	host, serial, err := peerHost(stream.Context())
	if err != nil {
		return err
	}
	if err := h.authorize(stream.Context(), host, serial); err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello == nil {
		return status.Error(codes.InvalidArgument, "the first message of a stream must be hello")
	}
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	l := &link{host: host, address: peerAddress(stream.Context()), closed: make(chan struct{}), wake: make(chan struct{}, 1), end: end, out: make(chan *agents.ToAgent, 16), hello: hello,
		tables: map[string]*table{}, answers: map[uint64]chan *agents.FromAgent{}, waiters: map[string]chan *agents.FromAgent{}}
	h.add(l)
	defer close(l.closed)
	defer h.remove(l)
	go func() { end(h.receive(stream, l)) }()
	return h.send(ctx, stream, l, serial)
}

// add registers the stream of a host, and ends an earlier stream of the same host.
func (h *hub) add(l *link) {
	h.mu.Lock()
	before := h.links[l.host]
	h.links[l.host] = l
	h.mu.Unlock()
	if before != nil {
		before.end(status.Error(codes.Aborted, "replaced by a newer stream of the same host"))
	}
}

func (h *hub) remove(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.links[l.host] == l {
		delete(h.links, l.host)
	}
}

// changed is called by the cache after a change of a host's documents.
func (h *hub) changed(host string) {
	h.mu.Lock()
	l := h.links[host]
	h.mu.Unlock()
	if l == nil {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default: // a signal is pending already
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
	for first := true; ; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-beat.C:
				if !h.cache.current() {
					return errDisconnected
				}
				if err := stream.Send(&agents.ToAgent{}); err != nil {
					return err
				}
				continue
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
		desired := h.cache.desired(l.host, have)
		desired.Agents = h.agentsAt
		if err := stream.Send(&agents.ToAgent{Message: &agents.ToAgent_Desired{Desired: desired}}); err != nil {
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
func (h *hub) receive(stream agents.Agents_ConnectServer, l *link) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		l.mu.Lock()
		switch said := m.Message.(type) {
		case *agents.FromAgent_Facts:
			l.facts = said.Facts
		case *agents.FromAgent_Enforced:
			l.enforced = said.Enforced
		case *agents.FromAgent_Report:
			l.report(said.Report)
			l.unwatch(time.Now())
			h.reports.Add(1)
		case *agents.FromAgent_Usage:
			l.deliverAnswer(said.Usage.Id, m)
		case *agents.FromAgent_Sets:
			l.deliverAnswer(said.Sets.Id, m)
		case *agents.FromAgent_Probe:
			l.probes.update(said.Probe)
			l.deliver(measuredTopic(said.Probe.Id), m)
		case *agents.FromAgent_Serving:
			l.deliver(servingTopic(said.Serving.Id), m)
		default:
			slog.Debug("unknown message from agent", "host", l.host, "message", fmt.Sprintf("%T", said))
		}
		l.mu.Unlock()
	}
}

// Renew signs a new certificate for an agent.
func (h *hub) Renew(ctx context.Context, r *agents.RenewRequest) (*agents.RenewResponse, error) {
	host, serial, err := peerHost(ctx)
	if err != nil {
		return nil, err
	}
	cert, authority, next, err := h.sign(host, r.Request)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	key := store.Key(store.Hosts, host)
	_, err = h.store.Do(ctx, key, func(tx *store.Tx) error {
		var doc store.Host
		_, ok, err := tx.Get(key, &doc)
		if err != nil {
			return err
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
	a, err := l.query(ctx, usageTimeout, func(id uint64) *agents.ToAgent {
		return &agents.ToAgent{Message: &agents.ToAgent_Usage{Usage: &agents.UsageQuestion{Id: id, Since: since.Unix(), Until: until.Unix()}}}
	})
	return a.GetUsage(), err
}

// query sends an agent a query, and waits for the answer with the same id.
func (l *link) query(ctx context.Context, patience time.Duration, question func(id uint64) *agents.ToAgent) (*agents.FromAgent, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	to := make(chan *agents.FromAgent, 1)
	l.mu.Lock()
	l.asked++
	id := l.asked
	l.answers[id] = to
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.answers, id)
		l.mu.Unlock()
	}()
	select {
	case l.out <- question(id):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-to:
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// deliverAnswer passes an answer to the goroutine that waits for it in query, once.
func (l *link) deliverAnswer(id uint64, m *agents.FromAgent) {
	if to := l.answers[id]; to != nil {
		to <- m
		delete(l.answers, id)
	}
}
