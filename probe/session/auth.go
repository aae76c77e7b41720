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

// Auth is how the ends know each other: a shared key, or certificates; neither is
// open to all.
type Auth struct {
	// Key is shared by both ends.
	Key []byte
	// Certificate is this end's, and Authority what signed the other's.
	Certificate *tls.Certificate
	Authority   *x509.CertPool
}

// leastKey is how long a key is at least, in bytes: what somebody who pretends to be
// the server could not find by trying.
const leastKey = 16

// ReadKey reads a shared key from a file; white space around it is not part of it.
func ReadKey(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b = bytes.TrimSpace(b)
	if len(b) < leastKey {
		return nil, fmt.Errorf("%s: the key has %d bytes, and needs %d: write one with \"head -c 32 /dev/urandom | base64\"", file, len(b), leastKey)
	}
	return b, nil
}

// ReadCertificates reads this end's certificate and key, and the authority of the
// other's, from PEM files.
func ReadCertificates(cert, key, authority string) (Auth, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return Auth{}, fmt.Errorf("%s, %s: %w", cert, key, err)
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return Auth{}, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return Auth{}, fmt.Errorf("%s: there is no certificate in it", authority)
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
	// The certificate says nothing: the shared key does, or the server is open to all.
	c.InsecureSkipVerify = true
	return c
}

// selfSigned is a certificate for one run of a server.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// Who proves that it knows the key; so one end's proof cannot be sent back to it.
const (
	byClient = "headgate probe client"
	byServer = "headgate probe server"
)

// mac is of what only the two ends of this connection know (RFC 9266): somebody in
// between has two connections, and so two others.
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

// ErrKey tells that the other end has another key, or none.
var ErrKey = errors.New("the other end has another key, or none")

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
