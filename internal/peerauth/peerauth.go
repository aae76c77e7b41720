// Package peerauth authenticates two Headgate programs to each other over TLS 1.3, by a shared key or by certificates.
// A shared key is proved by a MAC of what only the two ends of this very connection know (RFC 5705, RFC 9266), so that
// a man in the middle, who has two connections, cannot pass it on.
package peerauth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"
)

// Credentials are those of one end: a shared key, or certificates. Without either, the server is open to everyone.
type Credentials struct {
	// Key is the shared key.
	Key []byte
	// Certificate identifies this end; Authority verifies the certificate of the other end.
	Certificate *tls.Certificate
	Authority   *x509.CertPool
}

// minKeyLength is the minimum length of a key in bytes. An attacker that impersonates the server cannot find such a key
// by trying.
const minKeyLength = 16

// ReadKey reads a shared key from a file and strips surrounding white space.
func ReadKey(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("cannot read the key: %w: run as its owner, or root", err)
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("cannot read the key: %w: create one with \"headgate probe key %s\", and copy it to the other host", err, file)
	case err != nil:
		return nil, err
	}
	b = bytes.TrimSpace(b)
	if len(b) < minKeyLength {
		return nil, fmt.Errorf("%s: key is too short: %d bytes, the minimum is %d: create one with \"headgate probe key FILE\"", file, len(b), minKeyLength)
	}
	return b, nil
}

// ReadCertificates reads PEM files: the certificate and key of this end, and the authority that signs the certificate of
// the other end.
func ReadCertificates(cert, key, authority string) (Credentials, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return Credentials{}, fmt.Errorf("cannot load certificate %s with key %s: %w", cert, key, err)
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return Credentials{}, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return Credentials{}, fmt.Errorf("%s: no certificate found", authority)
	}
	return Credentials{Certificate: &pair, Authority: pool}, nil
}

// Server returns the configuration of the end that accepts connections.
func (c Credentials) Server() (*tls.Config, error) {
	if c.Certificate != nil {
		return &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*c.Certificate},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.Authority,
		}, nil
	}
	own, err := selfSigned()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}}, nil
}

// Client returns the configuration of the end that connects. host is the name that the server's certificate must have.
func (c Credentials) Client(host string) *tls.Config {
	if c.Certificate != nil {
		return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host, Certificates: []tls.Certificate{*c.Certificate}, RootCAs: c.Authority}
	}
	// The certificate is not verified: the shared key authenticates the server, or the server is open to everyone.
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host, InsecureSkipVerify: true}
}

// selfSigned returns a certificate for one run of a server.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// MACSize is the size of a MAC in bytes.
const MACSize = sha256.Size

// MAC returns the proof of one end that it has the key. label names the protocol and the end: each end has its own, so
// that an attacker cannot reflect the MAC of one end back to it.
func (c Credentials) MAC(conn *tls.Conn, label string) ([]byte, error) {
	state := conn.ConnectionState()
	binding, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
	if err != nil {
		return nil, err
	}
	return c.MACOf(binding, label), nil
}

// MACOf returns the proof for a connection without TLS, of which both ends, and no earlier connection, know about.
func (c Credentials) MACOf(about []byte, label string) []byte {
	h := hmac.New(sha256.New, c.Key)
	h.Write([]byte(label))
	h.Write(about)
	return h.Sum(nil)
}

// ErrKey is the error for a wrong or missing proof from the other end.
var ErrKey = errors.New("shared key does not match: the other end has another key, or none")

// Check checks the other end's proof.
func (c Credentials) Check(conn *tls.Conn, label string, proof []byte) error {
	want, err := c.MAC(conn, label)
	if err != nil {
		return err
	}
	if !Equal(want, proof) {
		return ErrKey
	}
	return nil
}

// Equal compares two proofs in constant time.
func Equal(a, b []byte) bool { return hmac.Equal(a, b) }
