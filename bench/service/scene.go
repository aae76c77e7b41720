package service

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"headgate.dev/headgate/lab"
)

// Scene is a service for other benches: a controller, the streams of some agents that enforce nothing,
// and an enforcing agent on the host "host".
type Scene struct {
	place *place
	fleet *fleet
	host  *enforcing
}

// OpenScene starts it; say is called with the progress.
func OpenScene(ctx context.Context, hosts int, say func(string, ...any)) (_ *Scene, err error) {
	s := &Scene{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.place, err = build(ctx, 1); err != nil {
		return s, err
	}
	if s.fleet, err = s.place.provision(ctx, hosts, groupsEach, say); err != nil {
		return s, err
	}
	if err = s.fleet.start(ctx); err != nil {
		return s, err
	}
	if s.host, err = s.place.enforce(ctx); err != nil {
		return s, err
	}
	_, err = s.place.connected(ctx, hosts+1, time.Minute)
	return s, err
}

// Close stops everything.
func (s *Scene) Close() (err error) {
	if s.host != nil {
		err = s.host.close()
	}
	if s.fleet != nil {
		s.fleet.stop()
	}
	if s.place != nil {
		err = errors.Join(err, s.place.close())
	}
	return err
}

// Token returns an operator's token.
func (s *Scene) Token() string { return s.place.token }

// Dial connects to the API.
func (s *Scene) Dial(ctx context.Context) (net.Conn, error) {
	return dial(s.place.caller)(ctx, "tcp", net.JoinHostPort(s.place.controllers[0].address, apiPort))
}

// Get returns the response for a path of the controller.
func (s *Scene) Get(ctx context.Context, path string) ([]byte, error) {
	a := s.place.ask(s.place.controllers[0])
	defer a.client.CloseIdleConnections()
	return a.must(ctx, http.MethodGet, path, nil)
}

// Put creates an object by the API.
func (s *Scene) Put(ctx context.Context, path string, body any) error {
	a := s.place.ask(s.place.controllers[0])
	defer a.client.CloseIdleConnections()
	_, err := a.must(ctx, http.MethodPut, path, body)
	return err
}

// Lab has the nodes "host", whose device is shaped (1 Gbit/s out: web, with 20 Mbit/s, is TCP and UDP
// to port 443; db; rest), and "caller", to which it can send.
func (s *Scene) Lab() *lab.Lab { return s.place.lab }

// Dev returns that device.
func (s *Scene) Dev() string { return s.host.dev }
