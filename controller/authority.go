package controller

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"headgate/internal/pki"
	"headgate/store"
)

// Lives of certificates. What is short is renewed by itself; it bounds for how long one that was
// lost is good where nobody takes its host away.
const (
	serverLife = 30 * 24 * time.Hour
	agentLife  = 30 * 24 * time.Hour
)

// authority is the service's own: one for all controllers, kept in the store.
func authority(ctx context.Context, s *store.Store) (*pki.Authority, error) {
	fresh, err := pki.NewAuthority("Headgate")
	if err != nil {
		return nil, err
	}
	key := store.Key(store.Service, "authority")
	pair := fresh.Pair
	if _, err := s.Do(ctx, key, func(tx *store.Tx) error {
		pair = fresh.Pair
		if _, there, err := tx.Get(key, &pair); err != nil || there {
			return err
		}
		return tx.Put(key, fresh.Pair)
	}); err != nil {
		return nil, err
	}
	return pki.ReadAuthority(pair)
}

// certificate is this controller's, made anew when two thirds of its life are over.
type certificate struct {
	authority *pki.Authority
	hosts     []string

	mu    sync.Mutex
	have  *tls.Certificate
	until time.Time
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.until) {
		return c.have, nil
	}
	pair, err := c.authority.Issue(pki.Leaf{Name: "controller", Hosts: c.hosts, Life: serverLife})
	if err != nil {
		return nil, err
	}
	pair = pair.Chain(c.authority.Cert) // for who has pinned that
	made, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	c.have, c.until = &made, time.Now().Add(serverLife*2/3)
	return c.have, nil
}

// signer signs for agents.
func signer(a *pki.Authority) func(host string, request []byte) (cert, authority []byte, serial string, err error) {
	return func(host string, request []byte) ([]byte, []byte, string, error) {
		cert, err := a.Sign(request, pki.Leaf{Name: host, Life: agentLife})
		if err != nil {
			return nil, nil, "", err
		}
		c, err := pki.Certificate(cert)
		if err != nil {
			return nil, nil, "", err
		}
		return cert, a.Cert, c.SerialNumber.Text(16), nil
	}
}
