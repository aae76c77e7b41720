package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Server returns the TLS configuration of a server. If clients is set, it accepts only clients with
// certificates of that authority.
func Server(own KeyPair, clients []byte) (*tls.Config, error) {
	c, err := tlsConfig(own)
	if err != nil || clients == nil {
		return c, err
	}
	if c.ClientCAs, err = pool(clients); err != nil {
		return nil, err
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

// Client returns the TLS configuration of a client that accepts servers of an authority, with a
// client certificate if own is set.
func Client(own *KeyPair, authority []byte) (c *tls.Config, err error) {
	c = &tls.Config{MinVersion: tls.VersionTLS13}
	if own != nil {
		if c, err = tlsConfig(*own); err != nil {
			return nil, err
		}
	}
	c.RootCAs, err = pool(authority)
	return c, err
}

// ErrPin means that a server's certificate was not issued by the pinned authority.
var ErrPin = errors.New("the server's certificate was not issued by the pinned certificate authority")

// Pinned returns the TLS configuration of a client that knows only the Hash of a server's
// authority. The server sends the authority's certificate. The server's name or address is verified
// as usual.
func Pinned(host, hash string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: host,
		// VerifyConnection verifies the certificate, with the authority that the server sent.
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

// Chain returns the certificate followed by its authority's, for servers whose clients pin the
// authority.
func (p KeyPair) Chain(authority []byte) KeyPair {
	return KeyPair{append(append([]byte{}, p.Cert...), authority...), p.Key}
}

func tlsConfig(own KeyPair) (*tls.Config, error) {
	if own.Cert == nil { // the caller sets the certificate in another way
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
		return nil, errors.New("the authority's certificate is not in PEM format")
	}
	return p, nil
}
