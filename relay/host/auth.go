package host

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"time"

	"headgate.dev/headgate/internal/peerauth"
)

// Auth authenticates the two agents of a stream to each other, and encrypts the stream unless Plain.
type Auth struct {
	peerauth.Credentials
	// Plain leaves streams unencrypted, and authenticated by the shared key at their beginning: what follows can be
	// read and changed on the way.
	Plain bool

	server *tls.Config
	client *tls.Config
}

// handshakeTimeout is how long the authentication of a stream may take.
const handshakeTimeout = 10 * time.Second

// The labels of the agents' proofs of the shared key.
const (
	dialerLabel   = "headgate relay client"
	acceptorLabel = "headgate relay server"
)

// NewAuth returns the authentication by a shared key, or by certificates.
func NewAuth(c peerauth.Credentials, plain bool) (*Auth, error) {
	if plain && c.Key == nil {
		return nil, errors.New("streams without encryption need a shared key: write key, or leave out encrypt: false")
	}
	server, err := c.Server()
	if err != nil {
		return nil, err
	}
	a := &Auth{Credentials: c, Plain: plain, server: server, client: c.Client("")}
	if c.Certificate != nil {
		// An agent is known by the authority that has signed its certificate, not by the address of a path.
		a.client.InsecureSkipVerify = true
		a.client.VerifyConnection = func(s tls.ConnectionState) error { return verify(c.Authority, s) }
		a.server.ClientAuth = tls.RequireAnyClientCert
		a.server.VerifyConnection = a.client.VerifyConnection
	}
	return a, nil
}

// verify verifies that the authority has signed the other agent's certificate, for whatever use: the certificates of
// hosts are those of clients, and a relay agent is both.
func verify(authority *x509.CertPool, s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the other agent has no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: authority, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

// Client authenticates the agent that dials, and returns the connection over which the stream goes.
func (a *Auth) Client(c net.Conn) (net.Conn, error) {
	return a.prove(c, dialerLabel, acceptorLabel, func(c net.Conn) *tls.Conn { return tls.Client(c, a.client) })
}

// Server authenticates the agent that accepts, and returns the connection over which the stream goes.
func (a *Auth) Server(c net.Conn) (net.Conn, error) {
	return a.prove(c, acceptorLabel, dialerLabel, func(c net.Conn) *tls.Conn { return tls.Server(c, a.server) })
}

// prove proves to the other agent that this one has the key, and checks that the other has it.
func (a *Auth) prove(c net.Conn, own, other string, wrap func(net.Conn) *tls.Conn) (net.Conn, error) {
	if err := c.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, err
	}
	c = newRawConn(c)
	over := c
	var mac func(label string) ([]byte, error)
	if a.Plain {
		about, err := nonces(c, own == dialerLabel)
		if err != nil {
			return nil, err
		}
		mac = func(label string) ([]byte, error) { return a.MACOf(about, label), nil }
	} else {
		t := secure(c, wrap)
		if err := t.Handshake(); err != nil {
			return nil, err
		}
		over = t
		mac = func(label string) ([]byte, error) { return a.MAC(t.Conn, label) }
	}
	if a.Key != nil {
		if err := exchange(over, mac, own, other); err != nil {
			return nil, err
		}
	}
	return over, c.SetDeadline(time.Time{})
}

// exchange sends this agent's proof, and checks the other's.
func exchange(c net.Conn, mac func(label string) ([]byte, error), own, other string) error {
	proof, err := mac(own)
	if err != nil {
		return err
	}
	if _, err := c.Write(proof); err != nil {
		return err
	}
	got := make([]byte, peerauth.MACSize)
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	want, err := mac(other)
	if err != nil {
		return err
	}
	if !peerauth.Equal(got, want) {
		return peerauth.ErrKey
	}
	return nil
}

// nonces exchanges random numbers, which make the connection different from each earlier one.
func nonces(c net.Conn, dialer bool) ([]byte, error) {
	var all [2][peerauth.MACSize]byte
	rand.Read(all[0][:])
	if _, err := c.Write(all[0][:]); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c, all[1][:]); err != nil {
		return nil, err
	}
	if !dialer {
		all[0], all[1] = all[1], all[0]
	}
	return append(all[0][:], all[1][:]...), nil
}
