package pki

import "testing"

// FuzzSign: any certificate request is signed or refused.
func FuzzSign(f *testing.F) {
	request, _, err := Request("h1")
	if err != nil {
		f.Fatal(err)
	}
	a, err := NewAuthority("test")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(request)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, request []byte) {
		cert, err := a.Sign(request, Template{Name: "h1"})
		if err != nil {
			return
		}
		if c, err := Certificate(cert); err != nil || c.Subject.CommonName != "h1" || c.IsCA || len(c.DNSNames)+len(c.IPAddresses) > 0 {
			t.Errorf("signed %v, %v", c, err)
		}
	})
}
