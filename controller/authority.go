package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/store"
)

// Lifetimes of certificates. Renewal is automatic. A short lifetime bounds how long a stolen
// certificate is valid if the host is not revoked.
const (
	serverLife = 30 * 24 * time.Hour
	agentLife  = 30 * 24 * time.Hour
)

// loadAuthority loads a certificate authority that all controllers share from a document of the store, or creates it with a name.
func loadAuthority(ctx context.Context, s *store.Store, document, name string) (*pki.Authority, error) {
	fresh, err := pki.NewAuthority(name)
	if err != nil {
		return nil, err
	}
	key := store.Key(store.Service, document)
	pair := fresh.KeyPair
	if _, err := s.Do(ctx, key, func(tx *store.Tx) error {
		pair = fresh.KeyPair
		if _, there, err := tx.Get(key, &pair); err != nil || there {
			return err
		}
		return tx.Put(key, fresh.KeyPair)
	}); err != nil {
		return nil, err
	}
	return pki.ReadAuthority(pair)
}

// authorityDocument is the document of the authority of controllers and agents.
const authorityDocument = "authority"

// Pin returns the pin of a service's certificate authority, as its store has it.
func Pin(ctx context.Context, s *store.Store) (string, error) {
	d, there, err := s.Get(ctx, store.Key(store.Service, authorityDocument), 0)
	if err != nil {
		return "", err
	}
	if !there {
		return "", errors.New("the service has no certificate authority yet: start the controller first")
	}
	var pair pki.KeyPair
	if err := d.Into(&pair); err != nil {
		return "", err
	}
	a, err := pki.ReadAuthority(pair)
	if err != nil {
		return "", err
	}
	return a.Hash(), nil
}

// certificate is this controller's server certificate, reissued after two thirds of its lifetime.
type certificate struct {
	authority *pki.Authority
	hosts     []string

	mu      sync.Mutex
	current *tls.Certificate
	// It is issued again from renewAt on, and before issued: then the clock was ahead.
	issued, renewAt time.Time
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Before(c.renewAt) && !now.Before(c.issued) {
		return c.current, nil
	}
	pair, err := c.authority.Issue(pki.Template{Name: "controller", Hosts: c.hosts, Validity: serverLife})
	if err != nil {
		return nil, err
	}
	pair = pair.Chain(c.authority.Cert) // clients pin the authority
	made, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	now = now.Round(0) // without the monotonic clock, which does not jump
	c.current, c.issued, c.renewAt = &made, now, now.Add(serverLife*2/3)
	return c.current, nil
}

// signer returns a function that signs agents' certificate requests.
func signer(a *pki.Authority) func(host string, request []byte) (cert, authority []byte, serial string, err error) {
	return func(host string, request []byte) ([]byte, []byte, string, error) {
		cert, err := a.Sign(request, pki.Template{Name: host, Validity: agentLife})
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
