package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"headgate.dev/headgate/internal/listen"
	"headgate.dev/headgate/relay"
)

// Timeouts of explicit requests, chosen for Headgate.
const (
	// requestTimeout is how long an application waits for the reply to its request, all addresses of a name together.
	requestTimeout = 30 * time.Second
	// answerTimeout is how long an exit may take to connect to one address: its own timeout, and some round trips.
	answerTimeout = connectTimeout + 2*time.Second
)

// explicit connects to the destinations that applications name in their requests, by SOCKS5 or HTTP CONNECT.
type explicit struct {
	policy  relay.Policy
	dialers []carrier
	log     *slog.Logger
	apps    *applications
}

// explicitListener is a listener for requests. serve serves it until it is closed.
type explicitListener struct {
	net.Listener
	serve func() error
}

// listenExplicit opens the listeners for requests.
func listenExplicit(apps *applications, s *sockets, p relay.Policy, dialers []carrier, log *slog.Logger) (all []explicitListener, err error) {
	e := &explicit{policy: p, dialers: dialers, log: log, apps: apps}
	for _, one := range []struct {
		relay.Proxy
		key   string
		serve func(l net.Listener, users Users) error
	}{{p.Socks, "socks", e.serveSocks}, {p.HTTPProxy, "http_proxy", e.serveHTTP}} {
		if one.Listen == "" {
			continue
		}
		var users Users
		if one.UsersFile != "" {
			users, err = ReadUsers(one.UsersFile)
		}
		var l net.Listener
		if err == nil {
			l, err = s.listen(apps.ctx, "tcp", one.Listen, nil)
			err = listen.Remedy(err, "listen in "+one.key)
		}
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, fmt.Errorf("cannot accept requests: %w", err)
		}
		all = append(all, explicitListener{l, func() error { return one.serve(l, users) }})
	}
	return all, nil
}

// outlet is a connection to a destination; carry passes the bytes of an application's connection on, and returns at
// once.
type outlet interface{ carry(app net.Conn) }

// connect connects to a destination: an IP address or a name, which is resolved here. The addresses of a name are
// tried one after another; the error is that of the first one.
func (e *explicit) connect(ctx context.Context, client net.Addr, host string, port uint16) (outlet, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	from, _ := netip.ParseAddrPort(client.String())
	all, err := resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var first error
	for _, a := range all {
		out, err := e.connectTo(ctx, from, netip.AddrPortFrom(a.Unmap(), port))
		if err == nil {
			return out, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// connectTo connects to an address over its exit, and direct if it has none, or one that does not answer.
func (e *explicit) connectTo(ctx context.Context, from, to netip.AddrPort) (outlet, error) {
	if n := (exits{e.policy, e.dialers}).of(to.Addr()); n >= 0 {
		answer, cancel := context.WithTimeout(ctx, answerTimeout)
		k, err := e.dialers[n].Connect(answer, from, to)
		cancel()
		var r refusal
		switch {
		case err == nil:
			return k, nil
		case errors.As(err, &r) || ctx.Err() != nil:
			return nil, err
		}
		e.log.Info("connection goes direct", "to", to, "exit", e.policy.Exits[n].Address, "error", err)
	}
	d, err := dialDirect(ctx, e.apps, to)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// refusedRequest logs a request without a connection.
func (e *explicit) refusedRequest(client net.Addr, to string, err error) {
	e.log.Info("cannot connect to destination", "from", client, "to", to, "error", err)
}
