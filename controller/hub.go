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

// hub is the agents that are connected to this controller.
type hub struct {
	agents.UnimplementedAgentsServer
	store *store.Store
	cache *cache
	// agentsAt are where agents find all controllers.
	agentsAt []string
	sign     func(host string, request []byte) (cert, authority []byte, serial string, err error)

	reports atomic.Uint64 // that were taken in

	mu    sync.Mutex
	links map[string]*link // by host: the newest
}

// link is the stream of one agent.
type link struct {
	host string
	at   string        // the address that the agent comes from
	gone chan struct{} // is closed when the stream has ended
	kick chan struct{} // there may be something to send
	end  context.CancelCauseFunc
	// out is what is sent beside what is desired.
	out chan *agents.ToAgent

	mu       sync.Mutex
	hello    *agents.Hello
	facts    *agents.Facts
	enforced *agents.Enforced
	tables   map[string]*table
	answers  map[uint64]chan *agents.FromAgent
	probes   probes
	heard    map[string]chan *agents.FromAgent // by what it is about
	asked    uint64
	// watched is when somebody last looked at the rates, closely whether the agent knows.
	watched time.Time
	closely bool
}

// Connect serves an agent's stream.
func (h *hub) Connect(stream agents.Agents_ConnectServer) error {
	host, serial, err := caller(stream.Context())
	if err != nil {
		return err
	}
	if err := h.admit(stream.Context(), host, serial); err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello == nil {
		return status.Error(codes.InvalidArgument, "a stream begins with hello")
	}
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	l := &link{host: host, at: from(stream.Context()), gone: make(chan struct{}), kick: make(chan struct{}, 1), end: end, out: make(chan *agents.ToAgent, 16), hello: hello,
		tables: map[string]*table{}, answers: map[uint64]chan *agents.FromAgent{}, heard: map[string]chan *agents.FromAgent{}}
	h.join(l)
	defer close(l.gone)
	defer h.leave(l)
	go func() { end(h.receive(stream, l)) }()
	return h.send(ctx, stream, l, serial)
}

// join makes this the host's stream, in place of one that it had.
func (h *hub) join(l *link) {
	h.mu.Lock()
	before := h.links[l.host]
	h.links[l.host] = l
	h.mu.Unlock()
	if before != nil {
		before.end(status.Error(codes.Aborted, "the agent has come again"))
	}
}

func (h *hub) leave(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.links[l.host] == l {
		delete(h.links, l.host)
	}
}

// changed is told by the cache.
func (h *hub) changed(host string) {
	h.mu.Lock()
	l := h.links[host]
	h.mu.Unlock()
	if l == nil {
		return
	}
	select {
	case l.kick <- struct{}{}:
	default: // it is about to look
	}
}

// beatEvery is the longest that an agent hears nothing: by an empty message it knows that somebody
// is there, and does not just have a kernel that acknowledges.
const beatEvery = 2 * time.Second

// send sends an agent what it does not have, as often as there is something.
func (h *hub) send(ctx context.Context, stream agents.Agents_ConnectServer, l *link, serial string) error {
	have := maps.Clone(l.hello.Interfaces)
	if have == nil {
		have = map[string]int64{}
	}
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for first := true; ; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-beat.C:
				if !h.cache.sound() {
					return errCutOff
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
			case <-l.kick:
			}
		}
		if err := h.may(l.host, serial); err != nil {
			return err
		}
		desired := h.cache.desired(l.host, have)
		desired.Agents = h.agentsAt
		if err := stream.Send(&agents.ToAgent{Message: &agents.ToAgent_Desired{Desired: desired}}); err != nil {
			return err
		}
		if first { // from now on silence means something
			if err := stream.Send(&agents.ToAgent{}); err != nil {
				return err
			}
		}
	}
}

// desired is what a host is to have, without documents that its agent has, which is noted.
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
			i.Document = doc.text
			have[dev] = doc.revision
		}
		d.Interfaces = append(d.Interfaces, i)
	}
	for _, name := range slices.Sorted(maps.Keys(h.collectives)) {
		d.Collectives = append(d.Collectives, &agents.Document{Name: name, Text: string(h.collectives[name].text)})
	}
	return d
}

// receive takes in what an agent says until its stream ends.
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
			l.answered(said.Usage.Id, m)
		case *agents.FromAgent_Sets:
			l.answered(said.Sets.Id, m)
		case *agents.FromAgent_Probe:
			l.probes.put(said.Probe)
			l.hear(measured(said.Probe.Id), m)
		case *agents.FromAgent_Serving:
			l.hear(serving(said.Serving.Id), m)
		default:
			slog.Debug("an agent says what this version does not know", "host", l.host, "message", fmt.Sprintf("%T", said))
		}
		l.mu.Unlock()
	}
}

// Renew signs an agent's next certificate.
func (h *hub) Renew(ctx context.Context, r *agents.RenewRequest) (*agents.RenewResponse, error) {
	host, serial, err := caller(ctx)
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
		if !ok || !admits(doc, serial) {
			return denied(host)
		}
		doc.Serials = []string{serial, next} // with the old one it may ask again, if the answer is lost
		return tx.Put(key, doc)
	})
	if err != nil {
		return nil, err
	}
	return &agents.RenewResponse{Certificate: cert, Authority: authority, Agents: h.agentsAt}, nil
}

// link is a host's stream, nil if it has none.
func (h *hub) link(host string) *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links[host]
}

// usagePatience is how long agents may take to read a week of minutes.
const usagePatience = 10 * time.Second

// usage asks one agent for its record.
func (l *link) usage(ctx context.Context, since, until time.Time) (*agents.UsageAnswer, error) {
	a, err := l.ask(ctx, usagePatience, func(id uint64) *agents.ToAgent {
		return &agents.ToAgent{Message: &agents.ToAgent_Usage{Usage: &agents.UsageQuestion{Id: id, Since: since.Unix(), Until: until.Unix()}}}
	})
	return a.GetUsage(), err
}

// ask asks an agent something, and waits for the answer with the same number.
func (l *link) ask(ctx context.Context, patience time.Duration, question func(id uint64) *agents.ToAgent) (*agents.FromAgent, error) {
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

// answered gives an answer to who asked, once.
func (l *link) answered(id uint64, m *agents.FromAgent) {
	if to := l.answers[id]; to != nil {
		to <- m
		delete(l.answers, id)
	}
}
