package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

// Auth authenticates the two agents of a stream to each other, and encrypts it where it is meant to.
type Auth interface {
	// Client and Server return the connection over which the stream goes, at the agent that dials and at the other.
	Client(c net.Conn) (net.Conn, error)
	Server(c net.Conn) (net.Conn, error)
}

// handshakeTimeout is how long the authentication of a stream may take.
const handshakeTimeout = 10 * time.Second

// ErrKey means that the other agent has another key, or that somebody is between the agents.
var ErrKey = errors.New("the other agent has another key")

// SharedKey authenticates agents that have the same key. With Encrypt streams are TLS 1.3 connections, and each
// agent proves by the key that it is at the other end of this very connection (RFC 5705). Without it the agents
// prove that they have the key, and what follows can be read and changed on the way.
type SharedKey struct {
	Key     []byte
	Encrypt bool

	cert tls.Certificate
}

// NewSharedKey returns the authentication by a key of at least 16 bytes.
func NewSharedKey(key []byte, encrypt bool) (*SharedKey, error) {
	if len(key) < 16 {
		return nil, fmt.Errorf("the key has %d bytes: 16 are the minimum", len(key))
	}
	// The certificate proves nothing, because the key does; TLS requires one.
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "headgate relay"}, NotAfter: time.Now().AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, err
	}
	return &SharedKey{Key: key, Encrypt: encrypt, cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}, nil
}

// Client implements Auth.
func (k *SharedKey) Client(c net.Conn) (net.Conn, error) {
	return k.prove(c, "client", "server", func() *tls.Conn {
		return tls.Client(c, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}) // the key proves it
	})
}

// Server implements Auth.
func (k *SharedKey) Server(c net.Conn) (net.Conn, error) {
	return k.prove(c, "server", "client", func() *tls.Conn {
		return tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{k.cert}})
	})
}

// prove proves to the other agent that this one has the key, and checks that the other has it.
func (k *SharedKey) prove(c net.Conn, own, other string, secure func() *tls.Conn) (net.Conn, error) {
	if err := c.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, err
	}
	var about []byte // what both know of this connection alone
	if k.Encrypt {
		t := secure()
		if err := t.Handshake(); err != nil {
			return nil, err
		}
		state := t.ConnectionState()
		material, err := state.ExportKeyingMaterial("EXPORTER-headgate-relay", nil, sha256.Size)
		if err != nil {
			return nil, err
		}
		c, about = t, material
	} else {
		var nonces [2][sha256.Size]byte
		rand.Read(nonces[0][:])
		if _, err := c.Write(nonces[0][:]); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(c, nonces[1][:]); err != nil {
			return nil, err
		}
		if own == "server" {
			nonces[0], nonces[1] = nonces[1], nonces[0]
		}
		about = append(nonces[0][:], nonces[1][:]...)
	}
	if _, err := c.Write(k.mac(own, about)); err != nil {
		return nil, err
	}
	got := make([]byte, sha256.Size)
	if _, err := io.ReadFull(c, got); err != nil {
		return nil, err
	}
	if !hmac.Equal(got, k.mac(other, about)) {
		return nil, ErrKey
	}
	return c, c.SetDeadline(time.Time{})
}

func (k *SharedKey) mac(role string, about []byte) []byte {
	h := hmac.New(sha256.New, k.Key)
	h.Write([]byte("headgate relay " + role))
	h.Write(about)
	return h.Sum(nil)
}
