package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
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

// ServerAnyTime is Server for clients whose certificates are accepted before and after their validity: the caller knows which are valid by their serial
// numbers, and the clock with which they were issued may have been wrong.
func ServerAnyTime(own KeyPair, clients []byte) (*tls.Config, error) {
	c, err := tlsConfig(own)
	if err != nil {
		return nil, err
	}
	roots, err := pool(clients)
	if err != nil {
		return nil, err
	}
	c.ClientAuth, c.ClientCAs = tls.RequireAnyClientCert, roots
	c.VerifyConnection = func(s tls.ConnectionState) error {
		leaf := s.PeerCertificates[0]
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: leaf.NotAfter, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return err
	}
	return c, nil
}

// WithClock adds to an error because of the validity of a certificate that a clock is wrong.
func WithClock(err error) error {
	if err != nil && strings.Contains(err.Error(), "certificate has expired or is not yet valid") { // gRPC keeps only the text
		return fmt.Errorf("%w: check the clock of this machine and that of the server", err)
	}
	return err
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
				leaf := s.PeerCertificates[0]
				_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
				var invalid x509.CertificateInvalidError
				switch {
				case err == nil:
					return nil
				case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
					return fmt.Errorf("the clock of this machine says %s, and the server's certificate is valid from %s to %s: set the clock of this machine, or that of the server",
						time.Now().UTC().Format(time.DateTime), leaf.NotBefore.UTC().Format(time.DateTime), leaf.NotAfter.UTC().Format(time.DateTime))
				}
				return fmt.Errorf("%w: %w", ErrPin, err)
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
