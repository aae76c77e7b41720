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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/internal/pki"
)

// Timeouts, intervals and sizes of the stream.
const (
	// keepaliveInterval and keepaliveTimeout detect within 10 s that a controller is unreachable.
	keepaliveInterval, keepaliveTimeout = 5 * time.Second, 5 * time.Second
	// firstPause and lastPause bound the delay before a connection to another controller. Each
	// agent adds a random part, so that thousands of agents do not connect at once.
	firstPause, lastPause = 200 * time.Millisecond, 5 * time.Second
	// firstDial and lastDial bound the time that a connection may take, which doubles with the pause: the first, as another controller may answer. With
	// 2 s for each, of 10,000 agents that connected at once to one controller none was connected after a minute: each gave up before its handshake was
	// complete, and began anew.
	firstDial, lastDial = 2 * time.Second, 20 * time.Second
	maxMessageSize      = 32 << 20
	// window is the flow-control window, the most bytes in flight from a controller: the documents
	// of a host with 16,000 groups are 3 MB. A fixed window disables gRPC's bandwidth estimation,
	// which sends a ping for each message of the controller.
	window = 1 << 20
	// heartbeatTimeout is the heartbeat timeout: the time without a heartbeat after which a controller
	// counts as disconnected. A controller sends one every 2 s.
	heartbeatTimeout = 5 * time.Second
	// reportInterval is the interval of reports, and watchedReportInterval the interval while a client
	// watches.
	reportInterval, watchedReportInterval = time.Second, 100 * time.Millisecond
)

// Link is the agent's end of the stream to a controller.
type Link struct {
	Dir          string
	Version      string
	DesiredState *DesiredState
	// Changed is called after the desired state changed, and must not block.
	Changed func()
	// Log receives log messages; nil is the default logger.
	Log *slog.Logger
	// Dial, if set, opens connections to controllers.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Facts is sent once and after changes, Report periodically. A nil Report is not sent.
	Facts  func() *agents.Facts
	Report func() *agents.Report
	// SetReportInterval, if set, is called with the new interval of readings: that of reports, or that of
	// reservations' reports if it is shorter.
	SetReportInterval func(every time.Duration)
	// Handlers answer the queries of controllers.
	Handlers []Handler
	// Reservations, if set, stores the reservations of this host. Changed is called after they changed too, and
	// LimitsChanged, which must not block, after a change of limits alone.
	Reservations  *Reservations
	LimitsChanged func()

	// Of Run alone: whether a controller has refused the certificate as not valid, and when it was last renewed for that.
	refused bool
	renewed time.Time

	mu               sync.Mutex
	enforced         *agents.Enforced
	collectiveErrors map[string]string
	writeErrors      map[string]writeError // failed writes, by file
	reserved         *agents.ReservationsEnforced
	current          *session      // the open stream, if any
	tell             chan struct{} // signals that a report is due
}

// NewLink returns a Link for an identity directory.
func NewLink(dir, version string, desired *DesiredState) *Link {
	return &Link{Dir: dir, Version: version, DesiredState: desired, tell: make(chan struct{}, 1)}
}

// Run keeps a stream to a controller open until ctx ends.
func (l *Link) Run(ctx context.Context) error {
	log := cmp.Or(l.Log, slog.Default())
	failed := ""
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		id, err := ReadIdentity(l.Dir)
		if err != nil {
			return err
		}
		if len(id.Agents) == 0 {
			return errors.New("the identity has no controller address for agents: start the controller with --listen ADDRESS, and join again")
		}
		began := time.Now()
		at := id.nextController(failed)
		err = pki.WithClock(l.runStream(ctx, id, at, min(pause*(firstDial/firstPause), lastDial)))
		if ctx.Err() != nil {
			return nil
		}
		l.refused = l.refused || status.Code(err) == codes.Unauthenticated
		log.Warn("disconnected from controller; the active configuration stays in force", "controller", at, "error", err)
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

// randomController returns a random controller, but not the failed one if there are others.
func randomController(all []string, failed string) string {
	others := slices.DeleteFunc(slices.Clone(all), func(at string) bool { return at == failed })
	if len(others) == 0 {
		others = all
	}
	return others[rand.IntN(len(others))]
}

// runStream runs one stream until it ends. The connection may take as long as dial.
func (l *Link) runStream(ctx context.Context, id Identity, at string, dial time.Duration) error {
	tls, err := pki.Client(&id.KeyPair, id.Authority)
	if err != nil {
		return err
	}
	authority, err := pki.Certificate(id.Authority)
	if err != nil {
		return err
	}
	l.DesiredState.setAuthority(pki.Hash(authority))
	options := []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(tls)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: dial}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveInterval, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageSize), grpc.MaxCallSendMsgSize(maxMessageSize))}
	if l.Dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return l.Dial(ctx, "tcp", address) }))
	}
	conn, err := grpc.NewClient(at, options...)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := agents.NewAgentsClient(conn)
	if l.mustRenew(id) {
		if err := l.renewNow(ctx, client, id); !errors.Is(err, errRenewed) {
			slog.Warn("cannot renew the certificate", "error", pki.WithClock(err))
		} else {
			return err
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	stream, err := client.Connect(ctx)
	if err != nil {
		return err
	}
	hello := &agents.Hello{Version: l.Version, Fence: l.DesiredState.Fence(), Interfaces: l.DesiredState.Revisions(), Sets: l.handler(&agents.SetsQuery{}) != nil, Probes: l.handler(&agents.ProbeServe{}) != nil,
		Reservations: l.Reservations != nil, Documents: true}
	if err := stream.Send(agents.From(hello)); err != nil {
		return err
	}
	s := &session{Link: l, id: id, stream: stream, authority: pki.Hash(authority), every: reportInterval, read: reportInterval,
		out: make(chan *agents.FromAgent, 16), watched: make(chan bool, 1), relisted: make(chan struct{}, 1)}
	l.setSession(s)
	defer l.setSession(nil)
	go func() { end(s.receive(ctx, end)) }()
	go func() { end(l.renew(ctx, client, id)) }()
	return s.send(ctx)
}

// session is one open stream.
type session struct {
	*Link
	id        Identity
	stream    agents.Agents_ConnectClient
	authority string        // hash of the controllers' certificate authority
	every     time.Duration // interval of reports
	read      time.Duration // interval of readings
	out       chan *agents.FromAgent
	watched   chan bool
	relisted  chan struct{}   // signals that the list of reservations has changed
	unstored  *agents.Desired // a desired state that could not be written to disk
	documents documents       // of the next desired state
}

// setSession sets the open stream.
func (l *Link) setSession(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = s
}

// setReadInterval passes on the interval of readings if it has changed.
func (s *session) setReadInterval() {
	every := s.every
	if s.Reservations != nil && s.Reservations.Interval() > 0 {
		every = min(every, s.Reservations.Interval())
	}
	if every != s.read && s.SetReportInterval != nil {
		s.SetReportInterval(every)
	}
	s.read = every
}

func (s *session) send(ctx context.Context) error {
	defer func() { // watches end with the stream
		if s.read != reportInterval && s.SetReportInterval != nil {
			s.SetReportInterval(reportInterval)
		}
	}()
	if err := s.stream.Send(agents.From(s.Facts())); err != nil {
		return err
	}
	if e := s.report(); e != nil {
		if err := s.stream.Send(agents.From(e)); err != nil {
			return err
		}
	}
	if r := s.reservations(); r != nil {
		if err := s.stream.Send(agents.From(r)); err != nil {
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
		case closely := <-s.watched:
			s.every = reportInterval
			if closely {
				s.every = watchedReportInterval
			}
			tick.Reset(s.every)
			s.setReadInterval()
			continue
		case <-s.relisted:
			s.setReadInterval()
			continue
		case <-s.tell:
			m = agents.From(s.report())
			if r := s.reservations(); r != nil {
				if err := s.stream.Send(agents.From(r)); err != nil {
					return err
				}
			}
			// The list of devices, or the owner of a device, may have changed.
			if err := s.stream.Send(agents.From(s.Facts())); err != nil {
				return err
			}
		case <-tick.C:
			r := s.Report()
			if r == nil {
				continue
			}
			m = agents.From(r)
		}
		if err := s.stream.Send(m); err != nil {
			return err
		}
	}
}

// errHeartbeatTimeout ends a stream on which no heartbeat arrives.
var errHeartbeatTimeout = fmt.Errorf("no heartbeat from the controller for %v", heartbeatTimeout)

func (s *session) receive(ctx context.Context, end context.CancelCauseFunc) error {
	// A controller sends the desired state at once, and then heartbeats, unless its version is
	// earlier.
	silent, beats := time.AfterFunc(heartbeatTimeout, func() { end(errHeartbeatTimeout) }), false
	defer silent.Stop()
	for {
		m, err := s.stream.Recv()
		if err != nil {
			return err
		}
		beats = beats || m.Message == nil && m.Query == 0
		if silent.Stop(); beats {
			silent.Reset(heartbeatTimeout)
		}
		if d := m.GetDesired(); d != nil {
			fillDocuments(d, s.documents.all)
			s.documents = documents{}
		}
		if err := s.storeDesired(m.GetDesired()); err != nil {
			return err // connect to another controller
		}
		switch carried := agents.Carried(m).(type) {
		case *agents.Desired:
		case *agents.Interface:
			if err := s.documents.add(carried); err != nil {
				return err
			}
		case *agents.Watch:
			select {
			case s.watched <- carried.Closely:
			default:
			}
		case *agents.Reservations:
			s.storeReservations(carried)
		case *agents.ReservationLimits:
			if s.Reservations != nil && s.Reservations.Adjust(carried) {
				s.LimitsChanged()
			}
		default:
			if carried != nil || m.Query != 0 { // else a heartbeat
				go s.answer(ctx, m.Query, carried)
			}
		}
	}
}

// errRenewed ends a stream that must be reopened with the new certificate.
var errRenewed = errors.New("certificate renewed")

// renew is the certificate renewal: it renews the agent's certificate after two thirds of its validity period.
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
		case <-time.After(min(time.Until(due), renewalCheck)): // a timer does not follow a clock that jumps
		}
		if time.Now().Before(due) && !time.Now().Before(c.NotBefore) {
			continue
		}
		switch err := l.renewNow(ctx, client, id); {
		case errors.Is(err, errRenewed):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			slog.Warn("cannot renew the certificate, retrying", "expires", c.NotAfter, "error", err)
			due = time.Now().Add(renewalCheck)
		}
	}
}

// renewalCheck is how often an agent checks whether its certificate must be renewed, and how long it waits after a failure.
const renewalCheck = time.Minute

// mustRenew reports whether the certificate must be renewed before a stream can be opened: it is not valid by the clock of this host, or a controller has
// refused it as not valid. If that clock is wrong a renewal does not help, so it is tried once in renewalCheck.
func (l *Link) mustRenew(id Identity) bool {
	c, err := pki.Certificate(id.Cert)
	now := time.Now()
	if err != nil || now.Sub(l.renewed) < renewalCheck { // renewed is long ago at first
		return false
	}
	if valid := !now.Before(c.NotBefore) && !now.After(c.NotAfter); valid && !l.refused {
		return false
	}
	l.refused, l.renewed = false, now
	return true
}

// renewNow renews the certificate once. The error is errRenewed if the new one is stored.
func (l *Link) renewNow(ctx context.Context, client agents.AgentsClient, id Identity) error {
	request, key, err := pki.Request(id.Host)
	if err != nil {
		return err
	}
	got, err := client.Renew(ctx, &agents.RenewRequest{Request: request})
	if err != nil {
		return err
	}
	err = id.change(l.Dir, func(now *Identity) {
		now.KeyPair, now.Authority = pki.KeyPair{Cert: got.Certificate, Key: key}, got.Authority
		if len(got.Agents) > 0 {
			now.Agents = got.Agents
		}
	})
	l.recordWrite(identityFile, "the renewed certificate", nil, err)
	if err != nil { // the current certificate is still valid
		return err
	}
	return errRenewed
}
