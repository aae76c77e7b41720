package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"headgate/api/agents"
	"headgate/internal/pki"
)

// Ours.
const (
	// aliveEvery and aliveWithin: a controller that is cut off is left within 10 s.
	aliveEvery, aliveWithin = 5 * time.Second, 5 * time.Second
	dialPatience            = 2 * time.Second
	// firstPause and lastPause are before another controller is tried; each agent adds a part of
	// its own, so that thousands do not come at once.
	firstPause, lastPause = 200 * time.Millisecond, 5 * time.Second
	mostMessage           = 32 << 20
	// window is what may be on its way from a controller: a host of 16,000 groups is 3 MB. One that is
	// given has gRPC not measure how long the way is, with a ping for each word of the controller.
	window = 1 << 20
	// silence is how long a controller that says every 2 s that it is there may say nothing.
	silence = 5 * time.Second
	// reportEvery, or closely while somebody watches.
	reportEvery, reportClosely = time.Second, 100 * time.Millisecond
)

// Link is the agent's side of the stream.
type Link struct {
	Dir     string
	Version string
	Intent  *Intent
	// Changed is called after something new is wanted, and does not wait.
	Changed func()
	// Log is where to say what happens; nil is the default.
	Log *slog.Logger
	// Dial, if set, is how controllers are spoken to.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Facts and Report are what is told: once, and again and again; a Report of nil is nothing.
	Facts  func() *agents.Facts
	Report func() *agents.Report
	// Closely, if set, is told how often to have something new to report: somebody watches, or
	// nobody does.
	Closely func(every time.Duration)
	// Usage answers from the record, Probe measures.
	Usage func(q *agents.UsageQuestion) *agents.UsageAnswer
	// Sets, if set, answers what the sets of connections are doing.
	Sets  func(q *agents.SetsQuestion) *agents.SetsAnswer
	Probe func(ctx context.Context, q *agents.ProbeQuestion, said func(*agents.ProbeAnswer))
	// Serve, if set, lets another host measure to this one, until ctx ends at the latest.
	Serve func(ctx context.Context, q *agents.ProbeServe) *agents.ProbeServing

	reading     sync.Mutex // of the record: one question at a time
	mu          sync.Mutex
	enforced    *agents.Enforced
	setTroubles map[string]string
	refused     map[string]refusal // by file: what the disk does not take
	tell        chan struct{}      // there is another thing to tell
}

// NewLink is one that is told of.
func NewLink(dir, version string, intent *Intent) *Link {
	return &Link{Dir: dir, Version: version, Intent: intent, tell: make(chan struct{}, 1)}
}

// Run keeps a stream to a controller until ctx ends.
func (l *Link) Run(ctx context.Context) error {
	log := cmp.Or(l.Log, slog.Default())
	failed := ""
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		id, err := ReadIdentity(l.Dir)
		if err != nil {
			return err
		}
		if len(id.Agents) == 0 {
			return errors.New("the service has said no address for agents: start the controller with --listen and one, and join again")
		}
		began := time.Now()
		at := another(id.Agents, failed)
		err = l.once(ctx, id, at)
		if ctx.Err() != nil {
			return nil
		}
		log.Warn("the controller is not there; what is in force stays", "controller", at, "error", err)
		failed = at
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// another is one of the controllers by chance, but not the one that has failed if there are others.
func another(all []string, failed string) string {
	others := slices.DeleteFunc(slices.Clone(all), func(at string) bool { return at == failed })
	if len(others) == 0 {
		others = all
	}
	return others[rand.IntN(len(others))]
}

// once is one stream, until it ends.
func (l *Link) once(ctx context.Context, id Identity, at string) error {
	tls, err := pki.Client(&id.Pair, id.Authority)
	if err != nil {
		return err
	}
	authority, err := pki.Certificate(id.Authority)
	if err != nil {
		return err
	}
	l.Intent.serve(pki.Hash(authority))
	options := []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(tls)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: dialPatience}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: aliveEvery, Timeout: aliveWithin, PermitWithoutStream: true}),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostMessage), grpc.MaxCallSendMsgSize(mostMessage))}
	if l.Dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return l.Dial(ctx, "tcp", address) }))
	}
	conn, err := grpc.NewClient(at, options...)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := agents.NewAgentsClient(conn)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	stream, err := client.Connect(ctx)
	if err != nil {
		return err
	}
	hello := &agents.Hello{Version: l.Version, Fence: l.Intent.Fence(), Interfaces: l.Intent.Revisions(), Sets: l.Sets != nil, Probes: l.Serve != nil}
	if err := stream.Send(&agents.FromAgent{Message: &agents.FromAgent_Hello{Hello: hello}}); err != nil {
		return err
	}
	s := &session{Link: l, id: id, stream: stream, every: reportEvery, out: make(chan *agents.FromAgent, 16), closely: make(chan bool, 1)}
	go func() { end(s.receive(ctx, end)) }()
	go func() { end(l.renew(ctx, client, id)) }()
	return s.send(ctx)
}

// session is one stream at work.
type session struct {
	*Link
	id      Identity
	stream  agents.Agents_ConnectClient
	every   time.Duration
	out     chan *agents.FromAgent
	closely chan bool
	waits   *agents.Desired // for room on the disk
}

func (s *session) send(ctx context.Context) error {
	defer func() { // who watched has gone with the stream
		if s.every != reportEvery && s.Closely != nil {
			s.Closely(reportEvery)
		}
	}()
	if err := s.stream.Send(&agents.FromAgent{Message: &agents.FromAgent_Facts{Facts: s.Facts()}}); err != nil {
		return err
	}
	if e := s.told(); e != nil {
		if err := s.stream.Send(&agents.FromAgent{Message: &agents.FromAgent_Enforced{Enforced: e}}); err != nil {
			return err
		}
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		var m *agents.FromAgent
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m = <-s.out:
		case closely := <-s.closely:
			s.every = reportEvery
			if closely {
				s.every = reportClosely
			}
			tick.Reset(s.every)
			if s.Closely != nil {
				s.Closely(s.every)
			}
			continue
		case <-s.tell:
			m = &agents.FromAgent{Message: &agents.FromAgent_Enforced{Enforced: s.told()}}
			// Whose devices are has changed, perhaps, and which there are.
			if err := s.stream.Send(&agents.FromAgent{Message: &agents.FromAgent_Facts{Facts: s.Facts()}}); err != nil {
				return err
			}
		case <-tick.C:
			r := s.Report()
			if r == nil {
				continue
			}
			m = &agents.FromAgent{Message: &agents.FromAgent_Report{Report: r}}
		}
		if err := s.stream.Send(m); err != nil {
			return err
		}
	}
}

// errSilent ends a stream on which a controller is not heard any more.
var errSilent = errors.New("the controller says nothing any more")

func (s *session) receive(ctx context.Context, end context.CancelCauseFunc) error {
	// A controller says at once what is wanted, and after that, unless it is of an earlier version,
	// again and again that it is there.
	silent, beats := time.AfterFunc(silence, func() { end(errSilent) }), false
	defer silent.Stop()
	for {
		m, err := s.stream.Recv()
		if err != nil {
			return err
		}
		beats = beats || m.Message == nil
		if silent.Stop(); beats {
			silent.Reset(silence)
		}
		if err := s.obey(m.GetDesired()); err != nil {
			return err // to another controller
		}
		switch m := m.Message.(type) {
		case *agents.ToAgent_Watch:
			select {
			case s.closely <- m.Watch.Closely:
			default:
			}
		case *agents.ToAgent_Usage:
			go func() {
				s.reading.Lock()
				defer s.reading.Unlock()
				if ctx.Err() == nil {
					s.answer(ctx, &agents.FromAgent{Message: &agents.FromAgent_Usage{Usage: s.Usage(m.Usage)}})
				}
			}()
		case *agents.ToAgent_Sets:
			if s.Sets != nil {
				go func() {
					s.answer(ctx, &agents.FromAgent{Message: &agents.FromAgent_Sets{Sets: s.Sets(m.Sets)}})
				}()
			}
		case *agents.ToAgent_Serve:
			if s.Serve != nil {
				go func() {
					if a := s.Serve(ctx, m.Serve); a != nil {
						s.answer(ctx, &agents.FromAgent{Message: &agents.FromAgent_Serving{Serving: a}})
					}
				}()
			}
		case *agents.ToAgent_Probe:
			go s.Probe(ctx, m.Probe, func(a *agents.ProbeAnswer) {
				s.answer(ctx, &agents.FromAgent{Message: &agents.FromAgent_Probe{Probe: a}})
			})
		}
	}
}

func (s *session) answer(ctx context.Context, m *agents.FromAgent) {
	select {
	case s.out <- m:
	case <-ctx.Done():
	}
}

// errRenewed ends a stream that has to begin anew with the new certificate.
var errRenewed = errors.New("the certificate was renewed")

// renew has the certificate signed anew when two thirds of its life are over.
func (l *Link) renew(ctx context.Context, client agents.AgentsClient, id Identity) error {
	c, err := pki.Certificate(id.Cert)
	if err != nil {
		return err
	}
	due := c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(due)):
		}
		request, key, err := pki.Request(id.Host)
		if err != nil {
			return err
		}
		got, err := client.Renew(ctx, &agents.RenewRequest{Request: request})
		if err != nil {
			slog.Warn("the certificate cannot be renewed, and is tried again", "until", c.NotAfter, "error", err)
			due = time.Now().Add(time.Minute)
			continue
		}
		err = id.change(l.Dir, func(now *Identity) {
			now.Pair, now.Authority = pki.Pair{Cert: got.Certificate, Key: key}, got.Authority
			if len(got.Agents) > 0 {
				now.Agents = got.Agents
			}
		})
		l.kept(identityFile, fmt.Sprintf("the next certificate, without which the service does not know this host after %s", c.NotAfter.UTC().Format(time.DateTime)), nil, err)
		if err != nil { // the service knows the host by this one still
			due = time.Now().Add(time.Minute)
			continue
		}
		return errRenewed
	}
}
