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
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/controller/network"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/internal/listen"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/store"
)

// Values chosen for Headgate.
const (
	// flowsTimeout is how long a switch may take to list its flows: a hardware switch with 10,000 flows takes a second.
	flowsTimeout = 3 * time.Second
	// generationRetry is after what time the generation of a term is read again.
	generationRetry = 200 * time.Millisecond
)

// listenForSwitches makes the listener of c.switches, if there is an address for it.
func (c *Controller) listenForSwitches() error {
	if c.config.OpenFlow == "" {
		return nil
	}
	key, err := discoveryKey(c.authority)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.config.OpenFlow)
	if err != nil {
		return fmt.Errorf("cannot serve switches: %w", listen.Remedy(err, "--openflow"))
	}
	c.switches = network.New(l, key)
	return nil
}

// discoveryKey returns the key of discovery frames, which all controllers derive from the key of their authority
// (HKDF, RFC 5869).
func discoveryKey(a *pki.Authority) ([]byte, error) {
	return hkdf.Key(sha256.New, a.Key, nil, "headgate discovery frames", sha256.Size)
}

// OpenFlowAddress returns the address on which the controller listens for switches, "" if it does not.
func (c *Controller) OpenFlowAddress() string {
	if c.switches == nil {
		return ""
	}
	return c.switches.Address()
}

// leadNetwork is the leader's task that leads the switches.
func (c *Controller) leadNetwork(ctx context.Context, t store.Term) {
	if c.switches == nil {
		return
	}
	for {
		generation, err := t.Generation(ctx)
		if err == nil {
			c.switches.Lead(ctx, generation)
			return
		}
		slog.Warn("cannot read the generation of the leader's term, trying again", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(generationRetry):
		}
	}
}

// networkView implements server.Fabric.
type networkView struct{ c *Controller }

// live returns the loop of the switches, nil if this leader accepts none.
func (v networkView) live() (*live.Network, error) {
	switch alone := len(v.c.config.Peers) == 0; {
	case v.c.switches == nil && (alone || v.c.isLeader()):
		return nil, nil
	case !v.c.isLeader():
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
	switch {
	case err != nil:
		return api.Network{}, err
	case n == nil:
		return networkOf(live.Status{At: time.Now(), Settled: true}), nil
	}
	out := networkOf(n.Status())
	at := v.c.switches.Address()
	out.Listen = &at
	return out, nil
}

// NetworkEvents implements server.Fabric.
func (v networkView) NetworkEvents() (api.NetworkEventList, error) {
	out := api.NetworkEventList{Items: []api.NetworkEvent{}}
	n, err := v.live()
	if err != nil || n == nil {
		return out, err
	}
	for _, e := range v.c.switches.Events() {
		out.Items = append(out.Items, networkEventOf(e))
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
	if err != nil || n == nil {
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

func noSwitch(id string) error {
	return &server.Refusal{Status: http.StatusNotFound, Detail: fmt.Sprintf("switch %s is not connected", id)}
}
