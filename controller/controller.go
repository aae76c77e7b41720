package controller

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/controller/circuits"
	"headgate.dev/headgate/controller/network"
	"headgate.dev/headgate/controller/reservations"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve/cycle"
	"headgate.dev/headgate/internal/connlimit"
	"headgate.dev/headgate/internal/listen"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Values chosen for Headgate.
const (
	// maxStreams is the number of requests of a connection at the same time: answers that a client does not take wait in memory, and may have megabytes each.
	maxStreams = 20
	// keepaliveInterval and keepaliveTimeout are the gRPC keepalive interval and timeout: an agent that is cut off without a
	// word is shown as disconnected after 4 s. An agent reports every second, so that a ping is rare.
	keepaliveInterval, keepaliveTimeout = 1500 * time.Millisecond, 2500 * time.Millisecond
	// shutdownTimeout is how long requests may take to complete when the controller stops.
	shutdownTimeout = 5 * time.Second
	// maxMessage is the largest gRPC message to an agent: all documents of a host (api/server.maxHostBytes), for an agent that takes them only together.
	maxMessage = 32 << 20
	// window is the gRPC flow control window of an agent's connection: the usage record of a week is
	// some MB. With a static window gRPC does not measure the bandwidth-delay product, which cost a ping
	// and its answer for nearly each report.
	window = 1 << 20
	// readBuffer is the read buffer of each agent's connection. A report takes half of it at most. gRPC's
	// default of 32 KiB was two fifths of the memory in use.
	readBuffer = 4 << 10
)

// Config is the configuration of a controller.
type Config struct {
	// Name identifies this controller among all controllers.
	Name string
	// API and Agents are the listen addresses for API clients and for agents.
	API, Agents string
	// Hosts are additional names and addresses in the server certificate, besides those of API and Agents.
	Hosts []string
	// AgentAddresses are the addresses of all controllers for agents; empty means this controller only.
	AgentAddresses []string
	// Peers are the API addresses of the other controllers.
	Peers   []string
	Version string
	// FreeSpace returns the free bytes on the store's disk; nil disables the check.
	FreeSpace func() (uint64, error)
	// BucketSize returns the bucket size with which a limit is enforced; nil means unknown.
	BucketSize func(limit unit.Rate) unit.Bytes
	// Leases remembers this controller's lease, so that it leads at once after it was killed; nil means that it waits until
	// the lease has expired.
	Leases store.Leases
	// OpenFlow is the listen address for switches; "" means that the controller accepts none.
	OpenFlow string
	// Scheme is how unused reserved bandwidth is lent, by its name in cycle.SchemeNamed; "" is the default.
	Scheme string
	// Cycle is how often limits follow what reservations use, from circuits.LeastInterval to MostInterval; 0 is DefaultInterval.
	Cycle time.Duration
	// Metrics, if set, is the listener for Prometheus metrics.
	Metrics net.Listener
}

// minFreeSpace is the free space on the store's disk, in bytes, below which the controller rejects
// changes, so that the store can still write what it has acknowledged.
const minFreeSpace = 256 << 20

// Controller serves the API and the agents.
type Controller struct {
	store     *store.Store
	config    Config
	authority *pki.Authority
	// switchAuthority is that of the switches of the network.
	switchAuthority switchAuthority
	cache           *cache
	hub             *hub
	prober          *prober
	plan            chan struct{} // signals that a measurement may be due
	api             net.Listener
	agents          net.Listener
	cert            *certificate
	switches        *network.Switches
	// acceptNow is closed when the configuration of the network was read: before, a switch that it does not list could connect.
	acceptNow    chan struct{}
	networkKnown sync.Once
	term         atomic.Pointer[store.Term] // current term as the leader, nil without one
	// reservations is the owner of the reservations in the current term, nil before it has built its book.
	reservations atomic.Pointer[reservations.Owner]
	// circuits keeps the limits of the reservations in the current term, nil before it has a network of switches.
	circuits atomic.Pointer[circuits.Loop]
	// seen has what was beside new results of measurements, for the leader's task that finds weak links.
	seen   map[string]beside
	looked looked
	// lowered is when the leader's task that sees what arrives has lowered the rate of a weak link.
	lowered map[fabric.LinkID]time.Time
	// networkChanged signals that switches, ports, links or hosts have changed.
	networkChanged chan struct{}
	full           atomic.Bool // the store is full or nearly full
}

// New creates a controller and listens on its addresses; Run serves.
func New(ctx context.Context, s *store.Store, c Config) (_ *Controller, err error) {
	c.Cycle = cmp.Or(c.Cycle, circuits.DefaultInterval)
	if _, err := cycle.SchemeNamed(cmp.Or(c.Scheme, cycle.DefaultScheme), c.Cycle); err != nil {
		return nil, err
	}
	if err := circuits.CheckInterval(c.Cycle); err != nil {
		return nil, err
	}
	out := &Controller{store: s, config: c, acceptNow: make(chan struct{}), networkChanged: make(chan struct{}, 1)}
	if out.authority, err = loadAuthority(ctx, s, authorityDocument, "Headgate"); err != nil {
		return nil, err
	}
	if out.switchAuthority.Authority, err = loadAuthority(ctx, s, "switch-authority", "Headgate switches"); err != nil {
		return nil, err
	}
	if out.api, err = net.Listen("tcp", c.API); err != nil {
		return nil, fmt.Errorf("cannot serve the API: %w", listen.Remedy(err, "--listen, or the key api in the document of kind: Controllers,"))
	}
	if out.agents, err = net.Listen("tcp", c.Agents); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot serve agents: %w", listen.Remedy(err, "--listen, or the key agents in the document of kind: Controllers,")), out.api.Close())
	}
	hosts := slices.Clone(c.Hosts)
	for _, l := range []net.Listener{out.api, out.agents} {
		if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
			hosts = append(hosts, localAddresses()...)
		} else if ok {
			hosts = append(hosts, a.IP.String())
		}
	}
	slices.Sort(hosts)
	out.cert = &certificate{authority: out.authority, hosts: slices.Compact(hosts)}
	if err := out.acceptSwitches(); err != nil {
		return nil, errors.Join(err, out.api.Close(), out.agents.Close())
	}
	if len(c.AgentAddresses) == 0 {
		out.config.AgentAddresses = []string{out.agents.Addr().String()}
	}
	out.cache = &cache{store: s, contents: newContents()}
	out.lowered = map[fabric.LinkID]time.Time{}
	out.hub = &hub{store: s, cache: out.cache, agentsAt: out.config.AgentAddresses, sign: signer(out.authority), links: map[string]*link{}, allowances: map[string]*allowance{}, ahead: map[string]*agents.Fence{}}
	out.cache.onHostChange, out.cache.onRevision = out.hub.changed, out.hub.changes.stored
	out.prober, out.plan = newProber(out.hub, out.authority, out.nominal), make(chan struct{}, 1)
	out.cache.onChange = map[string]func(){
		store.Probing: func() {
			wake(out.prober.wake)
			wake(out.plan)
		},
		store.Network: out.configureNetwork,
	}
	return out, nil
}

// localAddresses lists the IP addresses of this machine without link-local ones.
func localAddresses() (all []string) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		slog.Warn("cannot list local addresses; the certificate does not include them", "error", err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			all = append(all, n.IP.String())
		}
	}
	return all
}

// CertificatePin returns the certificate pin by which API clients and agents verify the controller.
func (c *Controller) CertificatePin() string { return c.authority.Hash() }

// Addresses returns the addresses on which the controller listens for API clients and agents.
func (c *Controller) Addresses() (api, agents string) {
	return c.api.Addr().String(), c.agents.Addr().String()
}

// Run serves until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go c.cache.follow(ctx)
	go c.monitorStore(ctx)
	go c.prober.run(ctx)
	var serving sync.WaitGroup
	serving.Go(func() {
		select {
		case <-c.acceptNow:
		case <-ctx.Done():
		}
		c.switches.Serve(ctx)
	})
	defer serving.Wait()
	defer cancel(nil)
	// Run waits for the end of the term, so that the next leader need not wait until the lease has expired.
	serving.Go(func() { c.store.Lead(ctx, store.Candidate{Name: c.config.Name, Leases: c.config.Leases}, c.lead) })

	requests := metrics.NewRequests()
	if c.config.Metrics != nil {
		defer metrics.Serve(c.config.Metrics, append(metrics.Controller(c.service), requests, metrics.NewProbes(c.probeMetrics), metrics.NewNetwork(c.networkMetrics), metrics.NewReservations(c.reservationMetrics))...)()
	}
	service := &server.Server{
		OnRequest: requests.Observe,
		Store:     c.store, Agents: view{c.hub}, Fabric: networkView{c}, Reservations: reservationsView{c}, Version: c.config.Version, Writable: c.writable, Confirmed: c.cache.confirmed, Burst: c.config.BucketSize,
		Sign: func(host string, request []byte) (api.Certificate, string, error) {
			cert, authority, serial, err := c.hub.sign(host, request)
			return api.Certificate{Certificate: string(cert), Authority: string(authority), Agents: c.config.AgentAddresses}, serial, err
		},
		SignSwitches: c.switchAuthority.sign,
		StoredBeside: c.cache.storedBeside, Identify: connlimit.IdentifyIn, Restored: c.cache.restoredAt, HighestEpoch: c.hub.highestEpoch,
	}
	handler, err := service.Handler()
	if err != nil {
		return err
	}
	f, err := newForwarder(service, handler, c.hub, c.isLeader, c.config.Peers, c.authority.Cert)
	if err != nil {
		return err
	}
	service.Cluster, service.Changes = f, f.liveChanges
	web := &http.Server{Handler: withDeadlines(withDashboard(service.Cluster)), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		ConnContext: connlimit.Context, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: c.cert.get}}
	mutual, err := pki.ServerAnyTime(pki.KeyPair{}, c.authority.Cert)
	if err != nil {
		return err
	}
	mutual.GetCertificate = c.cert.get
	g := grpc.NewServer(grpc.Creds(identified{credentials.NewTLS(mutual)}), grpc.MaxSendMsgSize(maxMessage), grpc.MaxRecvMsgSize(maxAgentMessage),
		grpc.ConnectionTimeout(handshakeTimeout), grpc.MaxConcurrentStreams(maxAgentStreams),
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window), grpc.ReadBufferSize(readBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveInterval, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	agents.RegisterAgentsServer(g, c.hub)
	go func() { cancel(g.Serve(connlimit.New(c.agents, agentConnections))) }()
	go func() { cancel(web.ServeTLS(connlimit.New(c.api, clientConnections), "", "")) }()
	<-ctx.Done()
	g.Stop() // agents' streams have no end of their own
	end, stop := context.WithTimeout(context.Background(), shutdownTimeout)
	defer stop()
	if err := web.Shutdown(end); err != nil {
		web.Close() // open watches
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// service returns the state of the controller for metrics.
func (c *Controller) service() metrics.Service {
	out := metrics.Service{Reports: c.hub.reports.Load(), Leader: c.isLeader(), Writable: c.writable()}
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

// isLeader reports whether this controller is the leader and its lease is still valid.
func (c *Controller) isLeader() bool {
	t := c.term.Load()
	return t != nil && t.Valid()
}

// writable reports whether the controller accepts changes.
func (c *Controller) writable() bool {
	if c.full.Load() {
		return false
	}
	if c.config.FreeSpace == nil {
		return true
	}
	room, err := c.config.FreeSpace()
	if err != nil {
		slog.Warn("cannot read free space of the store's disk, accepting changes", "error", err)
		return true
	}
	return room >= minFreeSpace
}
