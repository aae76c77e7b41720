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
	"time"
)

// Ours.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	clockSkew     = 5 * time.Minute
)

// Pair is a certificate and its key, as PEM.
type Pair struct {
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
}

// Authority signs.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one, with a name for people.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template(name, authorityLife)
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

// ReadAuthority is one that was made before.
func ReadAuthority(p Pair) (*Authority, error) {
	cert, err := Certificate(p.Cert)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(p.Key)
	if block == nil {
		return nil, errors.New("the key is not in PEM")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key cannot be read: %w", err)
	}
	if !cert.IsCA || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("%q is no authority, or the key is another's", cert.Subject.CommonName)
	}
	return &Authority{p, cert, key}, nil
}

// Leaf is what a certificate is for.
type Leaf struct {
	Name string
	// Hosts are the addresses and names at which it is spoken to; none is for a client only.
	Hosts []string
	// Client: its owner also speaks to others with it.
	Client bool
	Life   time.Duration
}

// Issue makes a key and its certificate.
func (a *Authority) Issue(l Leaf) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	return a.sign(l, &key.PublicKey, key)
}

// Sign makes the certificate for a request (PKCS #10, as PEM). Nothing of the request but its
// key is believed.
func (a *Authority) Sign(request []byte, l Leaf) (cert []byte, err error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != requestType {
		return nil, errors.New("it is no certificate request in PEM")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the certificate request cannot be read: %w", err)
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

func (a *Authority) sign(l Leaf, to *ecdsa.PublicKey, own *ecdsa.PrivateKey) (Pair, error) {
	t, err := template(l.Name, l.Life)
	if err != nil {
		return Pair{}, err
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	if len(l.Hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if l.Client || len(l.Hosts) == 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
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

// sign gives the certificate, and the key if own is not nil.
func sign(t, parent *x509.Certificate, to *ecdsa.PublicKey, by, own *ecdsa.PrivateKey) (p Pair, err error) {
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
	p.Key = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return p, nil
}

// Certificate reads one in PEM.
func Certificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the certificate is not in PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// Hash is a short name for an authority's certificate that nobody else can have: SHA-256 of its
// public key (RFC 7469, section 2.4), in 43 letters.
func Hash(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Hash is the authority's.
func (a *Authority) Hash() string { return Hash(a.cert) }
