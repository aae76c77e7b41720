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

	"headgate/store"
)

// caller is the host whose certificate a peer shows, and its serial number.
func caller(ctx context.Context) (host, serial string, err error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "", "", status.Error(codes.Unauthenticated, "nobody")
	}
	t, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(t.State.VerifiedChains) == 0 {
		return "", "", status.Error(codes.Unauthenticated, "without a certificate")
	}
	c := t.State.VerifiedChains[0][0]
	return c.Subject.CommonName, c.SerialNumber.Text(16), nil
}

// from is the address that a peer has.
func from(ctx context.Context) string {
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

// admitted tells whether a host's agent may be spoken to.
func (c *cache) admitted(host, serial string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[host]
	return h != nil && h.host != nil && admits(*h.host, serial)
}

func admits(h store.Host, serial string) bool {
	return !h.Revoked && slices.Contains(h.Serials, serial)
}

// errCutOff sends agents to another controller.
var errCutOff = status.Error(codes.Unavailable, "this controller is cut off from the store, or has just begun")

// may tells why a host's agent may not be spoken to, if it may not now.
func (h *hub) may(host, serial string) error {
	switch {
	case !h.cache.sound():
		return errCutOff
	case !h.cache.admitted(host, serial):
		return denied(host)
	}
	return nil
}

func denied(host string) error {
	return status.Errorf(codes.PermissionDenied, "the host %s was taken away, or another agent has joined as it", host)
}

// admit is may for one who comes: he may have joined at another controller a moment ago, of which the
// store knows and this one does not yet.
func (h *hub) admit(ctx context.Context, host, serial string) error {
	ctx, cancel := context.WithTimeout(ctx, soundFor)
	defer cancel()
	for {
		err := h.may(host, serial)
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
			return errCutOff
		case !ok || !admits(doc, serial):
			return denied(host)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
