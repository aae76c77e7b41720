package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Server is the TLS of who is spoken to, by clients with certificates of an authority alone if
// there is one.
func Server(own Pair, clients []byte) (*tls.Config, error) {
	c, err := with(own)
	if err != nil || clients == nil {
		return c, err
	}
	if c.ClientCAs, err = pool(clients); err != nil {
		return nil, err
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

// Client is the TLS of who speaks to a server of an authority, with a certificate of its own if
// there is one.
func Client(own *Pair, authority []byte) (c *tls.Config, err error) {
	c = &tls.Config{MinVersion: tls.VersionTLS13}
	if own != nil {
		if c, err = with(*own); err != nil {
			return nil, err
		}
	}
	c.RootCAs, err = pool(authority)
	return c, err
}

// ErrPin means that a server is not of the authority that it should be of.
var ErrPin = errors.New("the server's certificate is not of the authority that was pinned")

// Pinned is the TLS of who knows no more of a server's authority than its Hash, which the server
// sends along. The server's name or address is checked as always.
func Pinned(host, hash string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: host,
		// What it leaves out is done below, with the authority that was sent.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			for _, a := range s.PeerCertificates {
				if !a.IsCA || Hash(a) != hash {
					continue
				}
				roots := x509.NewCertPool()
				roots.AddCert(a)
				if _, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
					return fmt.Errorf("%w: %w", ErrPin, err)
				}
				return nil
			}
			return ErrPin
		},
	}
}

// Chain is a certificate with its authority's behind it, for servers whose clients pin that.
func (p Pair) Chain(authority []byte) Pair {
	return Pair{append(append([]byte{}, p.Cert...), authority...), p.Key}
}

func with(own Pair) (*tls.Config, error) {
	if own.Cert == nil { // the caller has another way to it
		return &tls.Config{MinVersion: tls.VersionTLS13}, nil
	}
	c, err := tls.X509KeyPair(own.Cert, own.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c}}, nil
}

func pool(authority []byte) (*x509.CertPool, error) {
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(authority) {
		return nil, errors.New("the authority's certificate is not in PEM")
	}
	return p, nil
}
