package host

import (
	"errors"
	"fmt"
	"os"

	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/relay"
)

// ReadAuth reads the files by which a policy's agents authenticate each other.
func ReadAuth(p relay.Policy) (*Auth, error) {
	if p.KeyFile == "" {
		if _, err := readPrivate(p.TLS.Key); err != nil {
			return nil, fmt.Errorf("cannot read the key of the certificate: %w", err)
		}
		c, err := peerauth.ReadCertificates(p.TLS.Certificate, p.TLS.Key, p.TLS.Authority)
		if err != nil {
			return nil, err
		}
		return NewAuth(c, p.Plain)
	}
	_, err := readPrivate(p.KeyFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the key: %w: create one with \"headgate relay key %s\"", err, p.KeyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the key: %w", err)
	}
	key, err := peerauth.ReadKey(p.KeyFile)
	if err != nil {
		return nil, err
	}
	return NewAuth(peerauth.Credentials{Key: key}, p.Plain)
}

// readPrivate reads a file that no other user may read.
func readPrivate(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by other users: chmod 600 %[1]s", file)
	}
	return os.ReadFile(file)
}
