package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"headgate/api"
	"headgate/api/agents"
	"headgate/internal/pki"
	"headgate/metrics"
	"headgate/store"
	"headgate/unit"
)

// Ours.
const (
	// aliveEvery and aliveWithin: an agent that is cut off is noticed within 10 s.
	aliveEvery, aliveWithin = 5 * time.Second, 5 * time.Second
	// gentle is how long requests may take to end when the controller does.
	gentle = 5 * time.Second
	// mostMessage is the largest that an agent is sent: a host of 16,000 groups.
	mostMessage = 32 << 20
	// window is what may be on its way from an agent: its record of a week is some MB. With one that is given
	// gRPC does not measure how long the way is, which was a ping and its answer for nearly each report.
	window = 1 << 20
	// readBuffer is of each agent's connection, whose reports are half of it at the most: with gRPC's own of
	// 32 KiB they were two fifths of what was in use.
	readBuffer = 4 << 10
)

// Config is what a controller is told.
type Config struct {
	// Name is this one's among the controllers.
	Name string
	// API and Agents are the addresses at which callers and agents speak to it.
	API, Agents string
	// Hosts are names and addresses that its certificate is for, beside those of API and Agents.
	Hosts []string
	// AgentsAt are where agents find all controllers; none is this one.
	AgentsAt []string
	// Others are where the APIs of the other controllers are.
	Others  []string
	Version string
	// Room tells how much of the disk is free that the store is on, in bytes; nil is no matter.
	Room func() (uint64, error)
	// Burst is what a limit lets through at once, where it is put in force; nil is not known.
	Burst func(limit unit.Rate) unit.Bytes
	// Metrics, if set, is where metrics for Prometheus are served.
	Metrics net.Listener
}

// watermark: with less room than this on its disk the controller takes no changes, so that the
// store can still do what it has promised.
const watermark = 256 << 20

// Controller serves.
type Controller struct {
	store     *store.Store
	config    Config
	authority *pki.Authority
	cache     *cache
	hub       *hub
	prober    *prober
	plan      chan struct{} // there may be something to measure
	api       net.Listener
	agents    net.Listener
	cert      *certificate
	term      atomic.Pointer[store.Term] // as the leader, or nil
	full      atomic.Bool                // the store is, or nearly
}

// New listens; Run serves.
func New(ctx context.Context, s *store.Store, c Config) (_ *Controller, err error) {
	out := &Controller{store: s, config: c}
	if out.authority, err = authority(ctx, s); err != nil {
		return nil, err
	}
	if out.api, err = net.Listen("tcp", c.API); err != nil {
		return nil, fmt.Errorf("the API cannot be served: %w", err)
	}
	if out.agents, err = net.Listen("tcp", c.Agents); err != nil {
		return nil, errors.Join(fmt.Errorf("agents cannot be served: %w", err), out.api.Close())
	}
	hosts := slices.Clone(c.Hosts)
	for _, l := range []net.Listener{out.api, out.agents} {
		if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
			hosts = append(hosts, ownAddresses()...)
		} else if ok {
			hosts = append(hosts, a.IP.String())
		}
	}
	slices.Sort(hosts)
	out.cert = &certificate{authority: out.authority, hosts: slices.Compact(hosts)}
	if len(c.AgentsAt) == 0 {
		out.config.AgentsAt = []string{out.agents.Addr().String()}
	}
	out.cache = &cache{store: s, hosts: map[string]*hostIntent{}, probing: newProbing()}
	out.hub = &hub{store: s, cache: out.cache, agentsAt: out.config.AgentsAt, sign: signer(out.authority), links: map[string]*link{}}
	out.cache.changed = out.hub.changed
	out.prober, out.plan = newProber(out.hub, out.authority), make(chan struct{}, 1)
	out.cache.probed = func() {
		for _, kick := range []chan struct{}{out.prober.kick, out.plan} {
			select {
			case kick <- struct{}{}:
			default: // it is about to look
			}
		}
	}
	return out, nil
}

// ownAddresses are those of this machine, but for those of a link alone.
func ownAddresses() (all []string) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		slog.Warn("the addresses of this machine cannot be told, and the certificate is not for them", "error", err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			all = append(all, n.IP.String())
		}
	}
	return all
}

// Pin is the hash of the authority, by which callers and agents know it.
func (c *Controller) Pin() string { return c.authority.Hash() }

// Addresses are those at which it is spoken to.
func (c *Controller) Addresses() (api, agents string) {
	return c.api.Addr().String(), c.agents.Addr().String()
}

// Run serves until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go c.cache.follow(ctx)
	go c.room(ctx)
	go c.prober.run(ctx)
	go c.store.Lead(ctx, c.config.Name, func(ctx context.Context, t store.Term) error { return c.lead(ctx, t) })

	requests := metrics.NewRequests()
	if c.config.Metrics != nil {
		defer metrics.Serve(c.config.Metrics, append(metrics.Controller(c.service), requests, metrics.Probes(c.probing))...)()
	}
	service := &api.Server{
		Done:  requests.Done,
		Store: c.store, Agents: view{c.hub}, Version: c.config.Version, Writable: c.writable, Burst: c.config.Burst,
		Sign: func(host string, request []byte) (api.Certificate, string, error) {
			cert, authority, serial, err := c.hub.sign(host, request)
			return api.Certificate{Certificate: string(cert), Authority: string(authority), Agents: c.config.AgentsAt}, serial, err
		},
	}
	handler, err := service.Handler()
	if err != nil {
		return err
	}
	if service.Whole, err = newForwarder(handler, c.hub, c.config.Others, c.authority.Cert); err != nil {
		return err
	}
	web := &http.Server{Handler: inTime(browsable(service.Whole)), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: c.cert.get}}
	mutual, err := pki.Server(pki.Pair{}, c.authority.Cert)
	if err != nil {
		return err
	}
	mutual.GetCertificate = c.cert.get
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(mutual)), grpc.MaxSendMsgSize(mostMessage), grpc.MaxRecvMsgSize(mostMessage),
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window), grpc.ReadBufferSize(readBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: aliveEvery, Timeout: aliveWithin}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	agents.RegisterAgentsServer(g, c.hub)
	go func() { cancel(g.Serve(c.agents)) }()
	go func() { cancel(web.ServeTLS(c.api, "", "")) }()
	<-ctx.Done()
	g.Stop() // streams do not end by themselves
	end, stop := context.WithTimeout(context.Background(), gentle)
	defer stop()
	if err := web.Shutdown(end); err != nil {
		web.Close() // those that watch
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// service is what it is doing, for metrics.
func (c *Controller) service() metrics.Service {
	out := metrics.Service{Reports: c.hub.reports.Load(), Leader: c.leader(), Writable: c.writable()}
	c.hub.mu.Lock()
	out.Agents = len(c.hub.links)
	c.hub.mu.Unlock()
	c.cache.mu.Lock()
	defer c.cache.mu.Unlock()
	out.Revision = c.cache.revision
	for _, h := range c.cache.hosts {
		if h.host != nil {
			out.Hosts++
		}
	}
	return out
}

// leader tells whether this one leads, and nobody else can.
func (c *Controller) leader() bool {
	t := c.term.Load()
	return t != nil && t.Sure()
}

// writable tells whether changes are taken.
func (c *Controller) writable() bool {
	if c.full.Load() {
		return false
	}
	if c.config.Room == nil {
		return true
	}
	room, err := c.config.Room()
	if err != nil {
		slog.Warn("the room on the store's disk cannot be told", "error", err)
		return true
	}
	return room >= watermark
}
