package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/internal/wholefile"
)

// Prepare creates the member's certificates in its directory, unless they exist. They are signed by
// the certificate authority whose key is in that directory. In a cluster of several members, the
// authority is copied from the directory that Prepare created for the first one (Copy). Certificates have no end: whoever could steal one finds the key of
// the authority beside it, and a wrong clock must not keep a controller from its store.
func (m Member) Prepare() error {
	if err := os.MkdirAll(filepath.Join(m.Dir, "tls"), 0o700); err != nil {
		return err
	}
	a, err := m.authority()
	if err != nil {
		return fmt.Errorf("cannot load or create the store's certificate authority %s: %w", m.file("authority.pem"), err)
	}
	// A pair of which only one file was written is incomplete and replaced.
	if pair, err := tls.LoadX509KeyPair(m.file("member.pem"), m.file("member.key")); err == nil {
		if c := pair.Leaf; pki.Endless(c) && c.VerifyHostname(m.Peers[m.Name]) == nil {
			return nil
		}
	}
	pair, err := a.Issue(pki.Template{Name: m.Name, Hosts: []string{m.Peers[m.Name]}, Client: true})
	if err != nil {
		return err
	}
	return errors.Join(write(m.file("member.key"), pair.Key), write(m.file("member.pem"), pair.Cert))
}

// authority loads the certificate authority of the directory, or creates one.
func (m Member) authority() (*pki.Authority, error) {
	cert, err := os.ReadFile(m.file("authority.pem"))
	if errors.Is(err, os.ErrNotExist) {
		a, err := pki.NewAuthority("Headgate store")
		if err != nil {
			return nil, err
		}
		// The certificate is written last: its existence means that the pair is complete.
		return a, errors.Join(write(m.file("authority.key"), a.Key), write(m.file("authority.pem"), a.Cert))
	}
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(m.file("authority.key"))
	if err != nil {
		return nil, err
	}
	return pki.ReadAuthority(pki.KeyPair{Cert: cert, Key: key})
}

// Copy copies the certificate authority to another member's directory.
func (m Member) Copy(to string) error {
	if err := os.MkdirAll(filepath.Join(to, "tls"), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"authority.key", "authority.pem"} {
		text, err := os.ReadFile(m.file(name))
		if err == nil {
			err = write(filepath.Join(to, "tls", name), text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TLS returns the TLS configuration with which a controller connects to the members.
func (m Member) TLS() (*tls.Config, error) {
	var files [3][]byte
	for i, name := range []string{"member.pem", "member.key", "authority.pem"} {
		text, err := os.ReadFile(m.file(name))
		if err != nil {
			return nil, err
		}
		files[i] = text
	}
	return pki.Client(&pki.KeyPair{Cert: files[0], Key: files[1]}, files[2])
}

// Prepared reports whether the directory has the certificate authority that the members share.
func (m Member) Prepared() bool {
	_, err := os.Stat(m.file("authority.pem"))
	return err == nil
}

// write writes a file atomically, readable by its owner only.
func write(name string, text []byte) error { return wholefile.Write(name, text, 0o600) }
