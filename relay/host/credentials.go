package host

import (
	"fmt"
	"os"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/relay"
)

// ReadAuth reads the files by which a policy's agents authenticate each other.
func ReadAuth(p relay.Policy) (*Auth, error) {
	if p.KeyFile == "" {
		if err := private(p.TLS.Key); err != nil {
			return nil, err
		}
		c, err := peerauth.ReadCertificates(p.TLS.Certificate, p.TLS.Key, p.TLS.Authority)
		if err != nil {
			return nil, err
		}
		return NewAuth(c, p.Plain)
	}
	if err := private(p.KeyFile); err != nil {
		return nil, err
	}
	key, err := peerauth.ReadKey(p.KeyFile)
	if err != nil {
		return nil, err
	}
	return NewAuth(peerauth.Credentials{Key: key}, p.Plain)
}

// private checks that nobody but the owner can read a file.
func private(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("cannot read the key: %w: create one with \"headgate relay key %s\"", err, file)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s can be read by other users: chmod 600 %[1]s", file)
	}
	return nil
}
