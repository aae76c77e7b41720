package controller

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/controller/network"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/internal/listen"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/store"
)

// Values chosen for Headgate.
const (
	// flowsTimeout is how long a switch may take to list its flows: a hardware switch with 10,000 flows takes a second.
	flowsTimeout = 3 * time.Second
	// generationRetry is after what time the generation of a term is read again.
	generationRetry = 200 * time.Millisecond
)

// acceptSwitches makes c.switches, with its listener that does not depend on the configuration of the network, if there is an
// address for it.
func (c *Controller) acceptSwitches() error {
	key, err := discoveryKey(c.authority)
	if err != nil {
		return err
	}
	o := network.Options{Key: key, Changed: func() { wake(c.networkChanged) }}
	if o.TLS, err = c.switchAuthority.tls(c.cert.hosts); err != nil {
		return err
	}
	if c.config.OpenFlow != "" {
		if o.Plain, err = net.Listen("tcp", c.config.OpenFlow); err != nil {
			return fmt.Errorf("cannot serve switches: %w", listen.Remedy(err, "--openflow"))
		}
	}
	c.switches = network.New(o)
	return nil
}

// configureNetwork passes on the configuration of the network.
func (c *Controller) configureNetwork() {
	c.cache.mu.Lock()
	defer c.cache.mu.Unlock()
	c.switches.Configure(c.cache.configured())
	c.networkKnown.Do(func() { close(c.acceptNow) })
}

// putNetwork stores the configuration of the network. One that this version cannot parse, of a newer one, is none: switches that
// an operator did not list must not connect.
func (c *contents) putNetwork(name []string, d store.Doc) error {
	if store.Key(store.Network, name...) == store.WeakLinksKey {
		c.weak = nil
		var stored store.WeakLinks
		if d.Value == nil {
			return nil
		}
		err := d.Into(&stored)
		c.weak = stored.Links
		return err
	}
	if d.Value == nil {
		c.network = nil
		return nil
	}
	c.network = &fabric.Config{}
	var stored store.NetworkConfig
	if err := d.Into(&stored); err != nil {
		return err
	}
	parsed, err := config.ParseNetwork("store", stored.Text)
	if err != nil {
		return fmt.Errorf("cannot read the configuration of the network, so no switch is accepted: %w", err)
	}
	c.network = &parsed
	return nil
}

// discoveryKey returns the key of discovery frames, which all controllers derive from the key of their authority
// (HKDF, RFC 5869).
func discoveryKey(a *pki.Authority) ([]byte, error) {
	return hkdf.Key(sha256.New, a.Key, nil, "headgate discovery frames", sha256.Size)
}

// OpenFlowAddress returns the first address on which the controller listens for switches, "" if there is none.
func (c *Controller) OpenFlowAddress() string {
	for _, l := range c.switches.Listeners() {
		return l.Address
	}
	return ""
}

// leadNetwork is the leader's task that leads the switches.
func (c *Controller) leadNetwork(ctx context.Context, t store.Term) {
	if generation, ok := generationOf(ctx, t); ok {
		c.switches.Lead(ctx, generation)
	}
}

// generationOf reads the generation of a term, and tries again until ctx ends: then it returns false.
func generationOf(ctx context.Context, t store.Term) (uint64, bool) {
	for {
		generation, err := t.Generation(ctx)
		if err == nil {
			return generation, true
		}
		slog.Warn("cannot read the generation of the leader's term, trying again", "error", err)
		if !sleep.Until(ctx, time.Now().Add(generationRetry)) {
			return 0, false
		}
	}
}

// networkView implements server.Fabric.
type networkView struct{ c *Controller }

// live returns the loop of the switches.
func (v networkView) live() (*live.Network, error) {
	if !v.c.isLeader() {
		return nil, errNoLeader
	}
	n := v.c.switches.Live()
	if n == nil {
		return nil, errNoLeader // its term begins
	}
	return n, nil
}

var errNoLeader = &server.Refusal{Status: http.StatusServiceUnavailable, Detail: "no controller leads the network at this moment: retry", RetryAfter: 2}

// Network implements server.Fabric.
func (v networkView) Network() (api.Network, error) {
	n, err := v.live()
	if err != nil {
		return api.Network{}, err
	}
	out := networkOf(v.c.networkStatus(n))
	for _, l := range v.c.switches.Listeners() {
		one := api.NetworkListener{Address: l.Address, Tls: l.TLS}
		if l.Err != nil {
			one.Error = nonZero(l.Err.Error())
		}
		out.Listen = append(out.Listen, one)
	}
	return out, nil
}

// networkStatus returns what the loop knows, with the faults that are found where switches connect.
func (c *Controller) networkStatus(n *live.Network) live.Status {
	s := n.Status()
	s.Faults = slices.Concat(c.switches.Faults(), s.Faults, c.weakLinkFaults(), c.missingRelays(s.Relays))
	return s
}

// NetworkEvents implements server.Fabric.
func (v networkView) NetworkEvents(p api.ListNetworkEventsParams) (api.NetworkEventList, error) {
	out := api.NetworkEventList{Items: []api.NetworkEvent{}}
	if _, err := v.live(); err != nil {
		return out, err
	}
	var of fabric.DPID
	if p.Switch != nil {
		var err error
		if of, err = fabric.ParseDPID(*p.Switch); err != nil {
			return out, noSwitch(*p.Switch)
		}
	}
	all, since := v.c.switches.Events()
	out.Since = since
	for _, e := range all {
		switch {
		case p.Since != nil && e.Recent().Before(*p.Since), p.Kind != nil && !e.Kind.Is(*p.Kind), p.Switch != nil && !e.About(of):
		default:
			out.Items = append(out.Items, networkEventOf(e))
		}
	}
	return out, nil
}

// SwitchFlows implements server.Fabric.
func (v networkView) SwitchFlows(ctx context.Context, text string) (out api.SwitchFlowList, err error) {
	n, err := v.live()
	if err != nil {
		return out, err
	}
	id, err := fabric.ParseDPID(text)
	if err != nil {
		return out, noSwitch(text)
	}
	ctx, cancel := context.WithTimeout(ctx, flowsTimeout)
	defer cancel()
	flows, err := n.Flows(ctx, id)
	switch {
	case errors.Is(err, live.ErrNoSwitch):
		return out, noSwitch(text)
	case err != nil:
		return out, &server.Refusal{Status: http.StatusConflict, Detail: err.Error()}
	}
	return flowsOf(flows), nil
}

// NetworkHistory implements server.Fabric.
func (v networkView) NetworkHistory(text string, port int64) (out api.NetworkLinkHistory, err error) {
	n, err := v.live()
	if err != nil {
		return out, err
	}
	unknown := &server.Refusal{Status: http.StatusNotFound, Detail: fmt.Sprintf("no port %d of a switch %s has been up in the last hour", port, text)}
	id, err := fabric.ParseDPID(text)
	if err != nil || port < 1 || port > int64(fabric.MaxPort) {
		return out, unknown
	}
	h, err := n.History(fabric.PortID{Switch: id, Port: fabric.PortNo(port)})
	if err != nil {
		return out, unknown
	}
	return historyOf(h), nil
}

func noSwitch(id string) error {
	return &server.Refusal{Status: http.StatusNotFound, Detail: fmt.Sprintf("switch %s is not connected", id)}
}
