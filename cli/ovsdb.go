package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/fabric/ovsdb"
)

// ovsdbTimeout is for connecting to a database, and for a change in it.
const ovsdbTimeout = 10 * time.Second

// ovsdbFlags select a database of Open vSwitch.
type ovsdbFlags struct {
	address string
	tls     pemFiles
}

// pemFiles are an authority, a certificate and its private key.
type pemFiles struct{ ca, cert, key string }

func (f *ovsdbFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "db", "", "the `ADDRESS` of the database of Open vSwitch: unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT (default that of this machine)")
	c.Flags().StringVar(&f.tls.ca, "db-ca", "", "the authority of a database at ssl:, a PEM `FILE` of this machine")
	c.Flags().StringVar(&f.tls.cert, "db-cert", "", "the certificate with which to connect to a database at ssl:, a PEM `FILE` of this machine")
	c.Flags().StringVar(&f.tls.key, "db-key", "", "the private key of --db-cert, a PEM `FILE` of this machine")
}

// local reports whether the database is one of this machine.
func (f *ovsdbFlags) local() bool { return f.address == "" || strings.HasPrefix(f.address, "unix:") }

func (f *ovsdbFlags) dial(ctx context.Context) (*ovsdb.Session, error) {
	if f.address == "" {
		f.address = ovsdb.LocalAddress()
	}
	var config *tls.Config
	if err := f.tls.complete("db-"); err != nil {
		return nil, err
	}
	if f.tls != (pemFiles{}) {
		pair, authority, err := f.tls.load()
		if err != nil {
			return nil, err
		}
		config = ovsdb.TLS(pair, authority)
	}
	s, err := ovsdb.Dial(ctx, f.address, config)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, withRootRemedy(err)
	case f.local() && err != nil:
		return nil, fmt.Errorf("%w: check with \"systemctl status openvswitch-switch\" that Open vSwitch is running", err)
	}
	return s, err
}

// complete returns an error if some files are set and others are not. prefix begins the names of their flags.
func (p pemFiles) complete(prefix string) error {
	var missing []string
	for _, f := range []struct{ flag, file string }{{"ca", p.ca}, {"cert", p.cert}, {"key", p.key}} {
		if f.file == "" {
			missing = append(missing, "--"+prefix+f.flag)
		}
	}
	if len(missing) == 0 || len(missing) == 3 {
		return nil
	}
	return fmt.Errorf("TLS needs --%sca, --%[1]scert and --%[1]skey: add %s", prefix, strings.Join(missing, " and "))
}

// load reads the files.
func (p pemFiles) load() (pair tls.Certificate, authority *x509.CertPool, err error) {
	if pair, err = tls.LoadX509KeyPair(p.cert, p.key); err != nil {
		return pair, nil, fmt.Errorf("cannot use the certificate %q with the private key %q: %w", p.cert, p.key, err)
	}
	ca, err := os.ReadFile(p.ca)
	if err != nil {
		return pair, nil, fmt.Errorf("cannot read the authority: %w", err)
	}
	if authority = x509.NewCertPool(); !authority.AppendCertsFromPEM(ca) {
		return pair, nil, fmt.Errorf("%s has no certificate in PEM", p.ca)
	}
	return pair, authority, nil
}

// onSwitch returns the files as Open vSwitch needs them, checked if they are files of this machine.
func (p pemFiles) onSwitch(local bool) (ovsdb.SSL, error) {
	if p == (pemFiles{}) {
		return ovsdb.SSL{}, nil
	}
	if err := p.complete(""); err != nil {
		return ovsdb.SSL{}, err
	}
	if local {
		if _, _, err := p.load(); err != nil {
			return ovsdb.SSL{}, err
		}
	}
	for _, file := range []*string{&p.ca, &p.cert, &p.key} {
		var err error
		if local {
			*file, err = filepath.Abs(*file)
		} else if !filepath.IsAbs(*file) {
			err = fmt.Errorf("%q is a file of the machine of the switch: write its path from / on", *file)
		}
		if err != nil {
			return ovsdb.SSL{}, err
		}
	}
	return ovsdb.SSL{PrivateKey: p.key, Certificate: p.cert, CA: p.ca}, nil
}

// completeBridges offers the bridges of the database.
func completeBridges(db *ovsdbFlags) completion {
	return names(func(*cobra.Command) (found []string, err error) {
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		s, err := db.dial(ctx)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		state, err := s.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		for _, b := range state.Bridges {
			found = append(found, b.Name)
		}
		return found, nil
	})
}
