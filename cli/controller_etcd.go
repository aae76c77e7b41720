package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/internal/wholefile"
	"headgate/store"
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

// open connects to the external etcd, and retries until the timeout. It logs the cause of a failure at
// once, before it retries.
func (o *externalEtcd) open(ctx context.Context, patience time.Duration) (*store.Store, error) {
	at, err := o.endpoint()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	trouble := o.probeMembers(ctx, at.TLS)
	if trouble != nil {
		slog.Warn("cannot connect to etcd, retrying", "error", trouble)
	}
	s, err := store.Open(ctx, at)
	if err != nil && trouble != nil {
		err = fmt.Errorf("%w: %w", err, trouble)
	}
	return s, err
}

// probeMembers tries to connect to each member, and returns why none is reachable; nil if one is. It exists
// because etcd's client reports only a timeout.
func (o *externalEtcd) probeMembers(ctx context.Context, c *tls.Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	for _, text := range o.urls {
		u, wrong := url.Parse(text)
		if wrong != nil {
			return wrong
		}
		var conn net.Conn
		if c == nil {
			conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
		} else {
			h2 := c.Clone()
			h2.NextProtos = []string{"h2"}
			conn, err = (&tls.Dialer{Config: h2}).DialContext(ctx, "tcp", u.Host)
		}
		if err != nil {
			continue
		}
		// A server rejects the client certificate only after the handshake, so read from the connection.
		conn.SetReadDeadline(time.Now().Add(reachTimeout / 10))
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
	}
	return err
}

// reachTimeout is the timeout of reach for all members together.
const reachTimeout = 3 * time.Second

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

// restoreExternalEtcd starts a new epoch in an external etcd that was restored, so that hosts accept its state.
func (a *app) restoreExternalEtcd(ctx context.Context, o *externalEtcd) error {
	s, err := o.open(ctx, openTimeout)
	if err != nil {
		return err
	}
	defer s.Close()
	docs, _, _, err := s.List(ctx, store.Prefix(store.Service), "", 1)
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		return fmt.Errorf("etcd at %s has no data of a service: restore it with its own tools first, and set the --etcd-prefix of the controllers", strings.Join(o.urls, ","))
	}
	if err := s.Restored(ctx, rand.Text()); err != nil {
		return err
	}
	p, err := s.Position(ctx)
	if err != nil {
		return err
	}
	a.note("hosts accept the restored state as of epoch %d: start the controllers", p.Epoch)
	return nil
}

const (
	// positionFile is the file in the data directory with the last seen position of the external etcd.
	positionFile = "etcd-position.json"
	// positionEvery is the interval at which a controller stores the position.
	positionEvery = 2 * time.Second
)

// errRevisionBackwards means that the revision or epoch of the external etcd is lower than before.
var errRevisionBackwards = errors.New("etcd revision went backwards")

// checkPosition compares the etcd's position with the last one stored in the data directory, and stores the
// new one. An etcd whose position went backwards was restored, or is another one: hosts have seen later
// revisions and would reject its state, and the state that controllers have read is stale.
func (r controllerOptions) checkPosition(ctx context.Context, s *store.Store) error {
	file := filepath.Join(r.dir, positionFile)
	var before store.Position
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot read the last etcd position from %s: %w", file, err)
	}
	now, err := s.Position(ctx)
	if err != nil {
		return err
	}
	if now.Before(before) {
		return fmt.Errorf("%w from %d (epoch %d) to %d (epoch %d): the etcd was restored, or is another one. If this is intended, stop all controllers and run \"headgate controller restore %s\", so that hosts accept its state; otherwise correct --etcd",
			errRevisionBackwards, before.Revision, before.Epoch, now.Revision, now.Epoch, r.etcd.commandLine())
	}
	if now == before {
		return nil
	}
	if text, err = json.Marshal(now); err != nil {
		return err
	}
	return wholefile.Write(file, text, 0o600)
}

// watchPosition checks the etcd's position until ctx ends, and calls end with an error when it went backwards.
func (r controllerOptions) watchPosition(ctx context.Context, s *store.Store, end func(error)) {
	for sleepUntil(ctx, time.Now().Add(positionEvery)) {
		err := r.checkPosition(ctx, s)
		switch {
		case errors.Is(err, errRevisionBackwards):
			end(err)
			return
		case err != nil && ctx.Err() == nil:
			slog.Warn("cannot store etcd position", "error", err)
		}
	}
}
