package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// Validity periods.
const (
	authorityValidity = 10 * 365 * 24 * time.Hour
	clockSkew         = 5 * time.Minute
)

// KeyPair is a certificate and its key, as PEM.
type KeyPair struct {
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
}

// Authority is a certificate authority.
type Authority struct {
	KeyPair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority creates an authority with a common name.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template(name, authorityValidity)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	pair, err := sign(template, template, &key.PublicKey, key, key)
	if err != nil {
		return nil, err
	}
	return ReadAuthority(pair)
}

// ReadAuthority parses an existing authority.
func ReadAuthority(p KeyPair) (*Authority, error) {
	cert, err := Certificate(p.Cert)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(p.Key)
	if block == nil {
		return nil, errors.New("the key is not in PEM format")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the key: %w", err)
	}
	if !cert.IsCA || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("%q is not a certificate authority, or the key does not match", cert.Subject.CommonName)
	}
	return &Authority{p, cert, key}, nil
}

// Template describes the certificate to issue.
type Template struct {
	Name string
	// Hosts are the addresses and names of a server; empty for a certificate of a client only.
	Hosts []string
	// ClientNames are further names of a client, as DNS names.
	ClientNames []string
	// Client permits a server's certificate for connections to other servers.
	Client   bool
	Validity time.Duration
}

// Issue creates a key and its certificate.
func (a *Authority) Issue(l Template) (KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, err
	}
	return a.sign(l, &key.PublicKey, key)
}

// Sign issues the certificate for a request (PKCS #10, as PEM). Only the key of the request is
// used.
func (a *Authority) Sign(request []byte, l Template) (cert []byte, err error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != requestType {
		return nil, errors.New("the certificate request is not in PEM format")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the certificate request: %w", err)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the certificate request is not signed with its own key: %w", err)
	}
	key, ok := r.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, errors.New("the certificate request has no ECDSA key")
	}
	pair, err := a.sign(l, key, nil)
	return pair.Cert, err
}

func (a *Authority) sign(l Template, to *ecdsa.PublicKey, own *ecdsa.PrivateKey) (KeyPair, error) {
	t, err := template(l.Name, l.Validity)
	if err != nil {
		return KeyPair{}, err
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	if len(l.Hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if l.Client || len(l.Hosts) == 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	t.DNSNames = slices.Clone(l.ClientNames)
	for _, h := range l.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return sign(t, a.cert, to, a.key, own)
}

func template(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(life),
	}, nil
}

// sign returns the certificate, with the key if own is not nil.
func sign(t, parent *x509.Certificate, to *ecdsa.PublicKey, by, own *ecdsa.PrivateKey) (p KeyPair, err error) {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, to, by)
	if err != nil {
		return p, err
	}
	p.Cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if own == nil {
		return p, nil
	}
	if der, err = x509.MarshalECPrivateKey(own); err != nil {
		return p, err
	}
	p.Key = pem.EncodeToMemory(&pem.Block{Type: keyType, Bytes: der})
	return p, nil
}

// Certificate parses a certificate in PEM.
func Certificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the certificate is not in PEM format")
	}
	return x509.ParseCertificate(block.Bytes)
}

// Hash identifies an authority's certificate: SHA-256 of its public key (RFC 7469, section 2.4), as
// 43 letters of base64.
func Hash(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Hash returns the hash of the authority's certificate.
func (a *Authority) Hash() string { return Hash(a.cert) }
