package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
)

// Types of PEM blocks (RFC 7468, section 7; RFC 5915, section 4).
const (
	requestType = "CERTIFICATE REQUEST"
	keyType     = "EC PRIVATE KEY"
)

// Request creates a key and a certificate request for it (PKCS #10). The key stays with the caller.
func Request(name string) (request, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	own, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		return nil, nil, err
	}
	key = pem.EncodeToMemory(&pem.Block{Type: keyType, Bytes: own})
	request, err = RequestWith(name, key)
	return request, key, err
}

// RequestWith creates a certificate request for a key that exists, in the format of Request.
func RequestWith(name string, key []byte) (request []byte, err error) {
	block, _ := pem.Decode(key)
	if block == nil || block.Type != keyType {
		return nil, errors.New("it is not an ECDSA key in PEM format (" + keyType + ")")
	}
	k, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, k)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: requestType, Bytes: der}), nil
}
