package service

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"headgate.dev/headgate/lab"
)

// Scene is a service that other benches look at: a controller, the streams of some agents that enforce
// nothing, and one on the host "host" that does.
type Scene struct {
	place *place
	fleet *fleet
	host  *enforcing
}

// OpenScene starts it; say tells how far it is.
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
	if s.fleet, err = s.place.provision(ctx, hosts, say); err != nil {
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

// Close ends all of it.
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

// Token is an operator's.
func (s *Scene) Token() string { return s.place.token }

// Dial reaches the API.
func (s *Scene) Dial(ctx context.Context) (net.Conn, error) {
	return dial(s.place.caller)(ctx, "tcp", net.JoinHostPort(s.place.controllers[0].address, apiPort))
}

// Get is what a path of the controller's answers.
func (s *Scene) Get(ctx context.Context, path string) ([]byte, error) {
	a := s.place.ask(s.place.controllers[0])
	defer a.client.CloseIdleConnections()
	return a.must(ctx, http.MethodGet, path, nil)
}

// Put makes something by the API.
func (s *Scene) Put(ctx context.Context, path string, body any) error {
	a := s.place.ask(s.place.controllers[0])
	defer a.client.CloseIdleConnections()
	_, err := a.must(ctx, http.MethodPut, path, body)
	return err
}

// Lab has the nodes "host", whose device is divided (1 Gbit/s out: web, with 20 Mbit/s, is TCP and UDP to port
// 443; db; rest), and "caller", which it can send to.
func (s *Scene) Lab() *lab.Lab { return s.place.lab }

// Dev is that device.
func (s *Scene) Dev() string { return s.host.dev }
