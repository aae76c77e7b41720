package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/backend"
)

// externalEtcd has the options of an external etcd, which the controller does not run itself.
type externalEtcd struct {
	urls                 []string
	authority, cert, key string
	prefix               string
	allowHTTP            bool
}

func (o *externalEtcd) flags(c *cobra.Command) {
	c.Flags().StringSliceVar(&o.urls, "etcd", nil, "use the external etcd at these `URLS`, instead of one that the controller runs")
	c.Flags().StringVar(&o.authority, "etcd-ca", "", "PEM `FILE` with the certificate authority of the external etcd (default: this machine's authorities)")
	c.Flags().StringVar(&o.cert, "etcd-cert", "", "PEM `FILE` with the client certificate for the external etcd")
	c.Flags().StringVar(&o.key, "etcd-key", "", "PEM `FILE` with the private key of the client certificate")
	c.Flags().StringVar(&o.prefix, "etcd-prefix", "", "`PREFIX` of all keys, before /headgate/, such as /prod")
	c.Flags().BoolVar(&o.allowHTTP, "etcd-plain", false, "allow unencrypted http to an etcd that is not on loopback: anyone who can read the traffic can impersonate the service")
	c.MarkFlagsRequiredTogether("etcd-cert", "etcd-key")
}

// configured reports whether --etcd was set.
func (o *externalEtcd) configured() bool { return len(o.urls) > 0 }

// check validates the flags.
func (o *externalEtcd) check() error {
	if !o.configured() {
		if o.authority != "" || o.cert != "" || o.prefix != "" || o.allowHTTP {
			return errors.New("--etcd is missing: set it to the URL of the external etcd")
		}
		return nil
	}
	if o.prefix != "" && (!strings.HasPrefix(o.prefix, "/") || strings.HasSuffix(o.prefix, "/")) {
		return fmt.Errorf("--etcd-prefix %q is invalid: set for example /prod", o.prefix)
	}
	schemes := map[string]bool{}
	for _, text := range o.urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Port() == "" || strings.Trim(u.Path, "/") != "" {
			return fmt.Errorf("--etcd %q is not the URL of an etcd: set for example https://10.0.0.5:2379", text)
		}
		schemes[u.Scheme] = true
		if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) && !o.allowHTTP {
			return fmt.Errorf("--etcd %s would send the service's secrets in the clear: use https, or set --etcd-plain if the network is trusted", text)
		}
	}
	if len(schemes) > 1 {
		return errors.New("--etcd has both http and https URLs: use one scheme")
	}
	if schemes["http"] && (o.authority != "" || o.cert != "") {
		return errors.New("--etcd-ca and --etcd-cert require https: change the URLs of --etcd")
	}
	return nil
}

// endpoint returns the store's endpoint. A replaced certificate file takes effect with the next
// connection.
func (o *externalEtcd) endpoint() (store.Endpoint, error) {
	at := store.Endpoint{URLs: o.urls, Prefix: o.prefix, External: true}
	if strings.HasPrefix(o.urls[0], "http:") {
		return at, nil
	}
	at.TLS = &tls.Config{MinVersion: tls.VersionTLS12} // the etcd may be older than the controller's own
	if o.authority != "" {
		text, err := os.ReadFile(o.authority)
		if err != nil {
			return at, err
		}
		at.TLS.RootCAs = x509.NewCertPool()
		if !at.TLS.RootCAs.AppendCertsFromPEM(text) {
			return at, fmt.Errorf("--etcd-ca %s has no PEM certificate", o.authority)
		}
	}
	if o.cert != "" {
		if _, err := tls.LoadX509KeyPair(o.cert, o.key); err != nil {
			return at, fmt.Errorf("--etcd-cert %s and --etcd-key %s: %w", o.cert, o.key, err)
		}
		at.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(o.cert, o.key)
			return &pair, err
		}
	}
	return at, nil
}

// commandLine returns the command line flags that select this etcd.
func (o *externalEtcd) commandLine() string {
	line := "--etcd " + strings.Join(o.urls, ",")
	for _, f := range [][2]string{{"--etcd-ca", o.authority}, {"--etcd-cert", o.cert}, {"--etcd-key", o.key}, {"--etcd-prefix", o.prefix}} {
		if f[1] != "" {
			line += " " + f[0] + " " + f[1]
		}
	}
	if o.allowHTTP {
		line += " --etcd-plain"
	}
	return line
}

// withRestoreRemedy adds the remedy to the error of an external etcd whose position went backwards.
func (o *externalEtcd) withRestoreRemedy(err error) error {
	if errors.Is(err, backend.ErrBackwards) {
		return fmt.Errorf("%w: the etcd was restored, or is another one. If this is intended, stop all controllers and run \"headgate controller restore %s\", so that hosts accept its state; otherwise correct --etcd", err, o.commandLine())
	}
	return err
}

// restoreExternalEtcd starts a new epoch in an external etcd that was restored, so that hosts accept its state.
func (a *app) restoreExternalEtcd(ctx context.Context, r *controllerOptions) error {
	if err := r.readEndpoint(); err != nil {
		return err
	}
	epoch, err := backend.External{Endpoint: *r.External}.Restored(ctx)
	if errors.Is(err, backend.ErrNoService) {
		return fmt.Errorf("etcd at %s has %w: restore it with its own tools first, and set the --etcd-prefix of the controllers", strings.Join(r.etcd.urls, ","), err)
	}
	if err != nil {
		return err
	}
	a.note("hosts accept the restored state as of epoch %d: start the controllers", epoch)
	return nil
}
