package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"headgate/internal/pki"
	"headgate/internal/wholefile"
)

// life of the members' certificates: they are made anew when half of it is over.
const life = 2 * 365 * 24 * time.Hour

// Prepare makes what a member needs in its folder, if it is not there: certificates, of the
// authority whose key is in that folder. A member of several has that from the folder that
// Prepare made for another (Copy).
func (m Member) Prepare() error {
	if err := os.MkdirAll(filepath.Join(m.Dir, "tls"), 0o700); err != nil {
		return err
	}
	a, err := m.authority()
	if err != nil {
		return fmt.Errorf("the store's authority in %s: %w", m.file("authority.pem"), err)
	}
	// A pair of which but one half was written is none.
	if pair, err := tls.LoadX509KeyPair(m.file("member.pem"), m.file("member.key")); err == nil {
		if c := pair.Leaf; time.Until(c.NotAfter) > life/2 && c.VerifyHostname(m.Peers[m.Name]) == nil {
			return nil
		}
	}
	pair, err := a.Issue(pki.Leaf{Name: m.Name, Hosts: []string{m.Peers[m.Name]}, Client: true, Life: life})
	if err != nil {
		return err
	}
	return errors.Join(write(m.file("member.key"), pair.Key), write(m.file("member.pem"), pair.Cert))
}

// authority is that of the folder, or a new one.
func (m Member) authority() (*pki.Authority, error) {
	cert, err := os.ReadFile(m.file("authority.pem"))
	if errors.Is(err, os.ErrNotExist) {
		a, err := pki.NewAuthority("Headgate store")
		if err != nil {
			return nil, err
		}
		// The certificate last: with it the pair is there.
		return a, errors.Join(write(m.file("authority.key"), a.Key), write(m.file("authority.pem"), a.Cert))
	}
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(m.file("authority.key"))
	if err != nil {
		return nil, err
	}
	return pki.ReadAuthority(pki.Pair{Cert: cert, Key: key})
}

// Copy gives another member's folder the authority of this one.
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

// TLS is how a controller speaks to the members.
func (m Member) TLS() (*tls.Config, error) {
	var files [3][]byte
	for i, name := range []string{"member.pem", "member.key", "authority.pem"} {
		text, err := os.ReadFile(m.file(name))
		if err != nil {
			return nil, err
		}
		files[i] = text
	}
	return pki.Client(&pki.Pair{Cert: files[0], Key: files[1]}, files[2])
}

// Prepared tells whether the folder has what lets the members trust each other.
func (m Member) Prepared() bool {
	_, err := os.Stat(m.file("authority.pem"))
	return err == nil
}

// write writes a file whole or not at all, for its owner alone.
func write(name string, text []byte) error { return wholefile.Write(name, text, 0o600) }
