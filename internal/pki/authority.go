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

// A certificate is valid before its issue, because the clock of the other end may be behind: for a tenth of its validity, which is 3 days of 30, and for
// leastBackdated.
const leastBackdated = 5 * time.Minute

// Times between which a certificate is always valid. An authority is identified by its key, and the clock may be wrong when it is created: at the first start
// of a machine it is often 1970. RFC 5280, section 4.1.2.5, has the end for certificates without a well-defined expiration.
var always = [2]time.Time{time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}

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
	pair, err := selfSigned(name, key)
	if err != nil {
		return nil, err
	}
	return ReadAuthority(pair)
}

// selfSigned returns the certificate of an authority, with its key.
func selfSigned(name string, key *ecdsa.PrivateKey) (KeyPair, error) {
	template, err := template(Template{Name: name})
	if err != nil {
		return KeyPair{}, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return sign(template, template, &key.PublicKey, key, key)
}

// ReadAuthority parses an existing authority. One of an earlier version, which had an end, gets a certificate without one for its key.
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
	if !Endless(cert) {
		if p, err = selfSigned(cert.Subject.CommonName, key); err == nil {
			cert, err = Certificate(p.Cert)
		}
	}
	return &Authority{p, cert, key}, err
}

// Template describes the certificate to issue.
type Template struct {
	Name string
	// Hosts are the addresses and names of a server; empty for a certificate of a client only.
	Hosts []string
	// ClientNames are further names of a client, as DNS names.
	ClientNames []string
	// Client permits a server's certificate for connections to other servers.
	Client bool
	// Validity is how long the certificate is valid from its issue on; 0 is for ever.
	Validity time.Duration
	// At is when it is issued; the zero value is now.
	At time.Time
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
	t, err := template(l)
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

func template(l Template) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	from, to := always[0], always[1]
	if l.Validity != 0 {
		at := l.At
		if at.IsZero() {
			at = time.Now()
		}
		from, to = at.Add(-max(leastBackdated, l.Validity/10)), at.Add(l.Validity)
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: l.Name}, NotBefore: from, NotAfter: to}, nil
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

// Endless reports whether a certificate is always valid.
func Endless(c *x509.Certificate) bool { return !c.NotAfter.Before(always[1]) }

// Hash identifies an authority's certificate: SHA-256 of its public key (RFC 7469, section 2.4), as
// 43 letters of base64.
func Hash(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Hash returns the hash of the authority's certificate.
func (a *Authority) Hash() string { return Hash(a.cert) }
