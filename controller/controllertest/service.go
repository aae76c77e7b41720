// Package controllertest runs a controller for tests, on a store of storetest, and agents that enforce nothing.
package controllertest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/store"
)

// Service is a running controller.
type Service struct {
	// URL is the address of its API, Pin the hash of its certificate authority, and Agents its address for agents.
	URL, Pin, Agents string
	// OpenFlow is its address for switches, "" if it accepts none.
	OpenFlow string
	// Operator is an operator's token.
	Operator string
	Store    *store.Store
	// Client trusts the authority with the pin.
	Client *http.Client
	// Stop stops the controller. It is called at the end of the test.
	Stop func()
}

// Config returns the configuration of a single controller on loopback.
func Config() controller.Config {
	return controller.Config{Name: "c1", API: "127.0.0.1:0", Agents: "127.0.0.1:0", Version: "test"}
}

// Run runs a controller on a store until the test ends. before, if not nil, is called before the controller
// starts to serve.
func Run(t testing.TB, s *store.Store, config controller.Config, before func()) *Service {
	t.Helper()
	c, err := controller.New(t.Context(), s, config)
	if err != nil {
		t.Fatal(err)
	}
	secret := server.NewSecret()
	if _, _, err := controller.EnsureOperatorToken(t.Context(), s, secret); err != nil {
		t.Fatal(err)
	}
	if before != nil {
		before()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	api, agents := c.Addresses()
	host, _, _ := net.SplitHostPort(api)
	out := &Service{URL: "https://" + api, Pin: c.CertificatePin(), Agents: agents, OpenFlow: c.OpenFlowAddress(), Operator: secret, Store: s, Stop: stop}
	out.Client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: pki.Pinned(host, out.Pin), ForceAttemptHTTP2: true}}
	return out
}
