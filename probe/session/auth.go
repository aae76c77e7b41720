package session

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

// Auth has the credentials of one end: a shared key, or certificates. Without either, the
// server is open to everyone.
type Auth struct {
	// Key is the shared key.
	Key []byte
	// Certificate identifies this end; Authority verifies the certificate of the other
	// end.
	Certificate *tls.Certificate
	Authority   *x509.CertPool
}

// minKeyLength is the minimum length of a key in bytes. An attacker that impersonates the
// server cannot find such a key by trying.
const minKeyLength = 16

// ReadKey reads a shared key from a file and strips surrounding white space.
func ReadKey(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b = bytes.TrimSpace(b)
	if len(b) < minKeyLength {
		return nil, fmt.Errorf("%s: key is too short: %d bytes, the minimum is %d: create one with \"head -c 32 /dev/urandom | base64\"", file, len(b), minKeyLength)
	}
	return b, nil
}

// ReadCertificates reads PEM files: the certificate and key of this end, and the
// authority that signs the certificate of the other end.
func ReadCertificates(cert, key, authority string) (Auth, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return Auth{}, fmt.Errorf("cannot load certificate %s with key %s: %w", cert, key, err)
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return Auth{}, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return Auth{}, fmt.Errorf("%s: no certificate found", authority)
	}
	return Auth{Certificate: &pair, Authority: pool}, nil
}

func (a Auth) server() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if a.Certificate != nil {
		c.Certificates = []tls.Certificate{*a.Certificate}
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, a.Authority
		return c, nil
	}
	own, err := selfSigned()
	if err != nil {
		return nil, err
	}
	c.Certificates = []tls.Certificate{own}
	return c, nil
}

func (a Auth) client(host string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host}
	if a.Certificate != nil {
		c.Certificates, c.RootCAs = []tls.Certificate{*a.Certificate}, a.Authority
		return c
	}
	// The certificate is not verified: the shared key authenticates the server, or the
	// server is open to everyone.
	c.InsecureSkipVerify = true
	return c
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

// The label of the end that sends a MAC. Each end has its own, so that an attacker cannot
// reflect the MAC of one end back to that end.
const (
	clientMACLabel = "headgate probe client"
	serverMACLabel = "headgate probe server"
)

// mac returns the MAC of who's label and the channel binding of the connection, which
// only its two ends know (RFC 9266). A man in the middle has two connections, whose
// bindings differ.
func (a Auth) mac(c *tls.Conn, who string) ([]byte, error) {
	state := c.ConnectionState()
	binding, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, a.Key)
	h.Write([]byte(who))
	h.Write(binding)
	return h.Sum(nil), nil
}

// ErrKey is the error for a wrong or missing proof from the other end.
var ErrKey = errors.New("shared key does not match: the other end has another key, or none")

func (a Auth) check(c *tls.Conn, who string, p *proof) error {
	want, err := a.mac(c, who)
	if err != nil {
		return err
	}
	if p == nil || !hmac.Equal(want, p.MAC) {
		return ErrKey
	}
	return nil
}
