package controller

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"headgate.dev/headgate/store"
)

// errExpired refuses a stream with a certificate that is not valid now. The agent renews it (Renew), which it can while the certificate is that of its host.
var errExpired = status.Error(codes.Unauthenticated, "the certificate of this host has expired or is not valid yet: the agent renews it")

// peerHost returns the host name and the serial number of the peer's client certificate, and whether it is valid now.
func peerHost(ctx context.Context) (host, serial string, now bool, err error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "", "", false, status.Error(codes.Unauthenticated, "cannot identify the peer")
	}
	t, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(t.State.PeerCertificates) == 0 {
		return "", "", false, status.Error(codes.Unauthenticated, "missing client certificate")
	}
	c := t.State.PeerCertificates[0] // verified by pki.ServerAnyTime
	at := time.Now()
	return c.Subject.CommonName, c.SerialNumber.Text(16), !at.Before(c.NotBefore) && !at.After(c.NotAfter), nil
}

// peerAddress returns the IP address of the peer.
func peerAddress(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	at, err := netip.ParseAddrPort(p.Addr.String())
	if err != nil {
		return ""
	}
	return at.Addr().Unmap().String()
}

// accepts reports whether a host's agent is accepted with a certificate.
func (c *cache) accepts(host, serial string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[host]
	return h != nil && h.host != nil && accepts(*h.host, serial)
}

// suspends reports whether a host is of a backup that no operator has confirmed.
func (c *cache) suspends(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[host]
	return h != nil && h.since < c.restored
}

// errRestored refuses the agents of hosts of a backup that no operator has confirmed.
var errRestored = status.Error(codes.FailedPrecondition, "the service was restored from a backup, and hosts of the backup are refused until an operator confirms them: some may have been revoked since (\"headgate controller confirm-restore\")")

func accepts(h store.Host, serial string) bool {
	return !h.Revoked && slices.Contains(h.Serials, serial)
}

// errDisconnected makes agents connect to another controller.
var errDisconnected = status.Error(codes.Unavailable, "controller is disconnected from the store or still starting")

// check returns the reason to reject a host's agent now, nil if the agent is accepted.
func (h *hub) check(host, serial string) error {
	switch {
	case !h.cache.isCurrent():
		return errDisconnected
	case !h.cache.accepts(host, serial):
		return errDenied(host)
	case h.cache.suspends(host):
		return errRestored
	}
	return nil
}

func errDenied(host string) error {
	return status.Errorf(codes.PermissionDenied, "host %s was removed or revoked, or another agent joined as this host", host)
}

// authorize checks an agent that connects. The agent may have joined at another controller a moment ago,
// so that the store has its certificate and this controller's cache does not yet.
func (h *hub) authorize(ctx context.Context, host, serial string) error {
	ctx, cancel := context.WithTimeout(ctx, maxStaleness)
	defer cancel()
	for {
		err := h.check(host, serial)
		if status.Code(err) != codes.PermissionDenied {
			return err
		}
		var doc store.Host
		got, ok, err := h.store.Get(ctx, store.Key(store.Hosts, host), 0)
		if err == nil && ok {
			err = got.Into(&doc)
		}
		switch {
		case err != nil:
			return errDisconnected
		case !ok || !accepts(doc, serial):
			return errDenied(host)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
