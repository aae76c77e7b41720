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

// outside is an etcd that the service does not run itself.
type outside struct {
	urls                 []string
	authority, cert, key string
	prefix               string
	plain                bool
}

func (o *outside) flags(c *cobra.Command) {
	c.Flags().StringSliceVar(&o.urls, "etcd", nil, "keep everything in the etcd at these `URLS`, instead of one that the controller runs")
	c.Flags().StringVar(&o.authority, "etcd-ca", "", "PEM `FILE` with the authority of that etcd's certificates; those of this machine if left out")
	c.Flags().StringVar(&o.cert, "etcd-cert", "", "PEM `FILE` with the certificate for it")
	c.Flags().StringVar(&o.key, "etcd-key", "", "PEM `FILE` with that one's private key")
	c.Flags().StringVar(&o.prefix, "etcd-prefix", "", "begin all keys with this `PREFIX`, such as /prod, and /headgate/ behind it")
	c.Flags().BoolVar(&o.plain, "etcd-plain", false, "speak http also to an etcd that is not on loopback: who listens can be the service")
	c.MarkFlagsRequiredTogether("etcd-cert", "etcd-key")
}

// asked tells whether there is one.
func (o *outside) asked() bool { return len(o.urls) > 0 }

// check finds mistakes in what was asked for.
func (o *outside) check() error {
	if !o.asked() {
		if o.authority != "" || o.cert != "" || o.prefix != "" || o.plain {
			return errors.New("write --etcd and the URL of the etcd that is meant")
		}
		return nil
	}
	if o.prefix != "" && (!strings.HasPrefix(o.prefix, "/") || strings.HasSuffix(o.prefix, "/")) {
		return fmt.Errorf("--etcd-prefix %q is not possible: write for example /prod", o.prefix)
	}
	schemes := map[string]bool{}
	for _, text := range o.urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Port() == "" || strings.Trim(u.Path, "/") != "" {
			return fmt.Errorf("--etcd %q is not the URL of an etcd: write for example https://10.0.0.5:2379", text)
		}
		schemes[u.Scheme] = true
		if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) && !o.plain {
			return fmt.Errorf("--etcd %s would send the service's secrets over the network in the clear: write https, or --etcd-plain if nobody can listen", text)
		}
	}
	if len(schemes) > 1 {
		return errors.New("--etcd has URLs with http and with https: write one of them")
	}
	if schemes["http"] && (o.authority != "" || o.cert != "") {
		return errors.New("--etcd has http, where certificates are of no use: write https")
	}
	return nil
}

// endpoint is how it is spoken to. A certificate that is written anew is used from the next
// connection on.
func (o *outside) endpoint() (store.Endpoint, error) {
	at := store.Endpoint{URLs: o.urls, Prefix: o.prefix, Foreign: true}
	if strings.HasPrefix(o.urls[0], "http:") {
		return at, nil
	}
	at.TLS = &tls.Config{MinVersion: tls.VersionTLS12} // it may be older than ours
	if o.authority != "" {
		text, err := os.ReadFile(o.authority)
		if err != nil {
			return at, err
		}
		at.TLS.RootCAs = x509.NewCertPool()
		if !at.TLS.RootCAs.AppendCertsFromPEM(text) {
			return at, fmt.Errorf("--etcd-ca %s has no certificate in PEM", o.authority)
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

// open connects to it. What keeps it from that is told at once: it may come to be.
func (o *outside) open(ctx context.Context, patience time.Duration) (*store.Store, error) {
	at, err := o.endpoint()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	trouble := o.reach(ctx, at.TLS)
	if trouble != nil {
		slog.Warn("the etcd cannot be spoken to, and is waited for", "error", trouble)
	}
	s, err := store.Open(ctx, at)
	if err != nil && trouble != nil {
		err = fmt.Errorf("%w: %w", err, trouble)
	}
	return s, err
}

// reach is why no member can be spoken to, of which etcd's client says no more than that time is
// over; nil if one can.
func (o *outside) reach(ctx context.Context, c *tls.Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, reachPatience)
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
		// Only then does a server say that it wants another certificate.
		conn.SetReadDeadline(time.Now().Add(reachPatience / 10))
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
	}
	return err
}

// reachPatience is for all members.
const reachPatience = 3 * time.Second

// again is the command line that says which etcd is meant.
func (o *outside) again() string {
	line := "--etcd " + strings.Join(o.urls, ",")
	for _, f := range [][2]string{{"--etcd-ca", o.authority}, {"--etcd-cert", o.cert}, {"--etcd-key", o.key}, {"--etcd-prefix", o.prefix}} {
		if f[1] != "" {
			line += " " + f[0] + " " + f[1]
		}
	}
	if o.plain {
		line += " --etcd-plain"
	}
	return line
}

// restoredOutside has hosts obey what the etcd has after its owner has restored it.
func (a *app) restoredOutside(ctx context.Context, o *outside) error {
	s, err := o.open(ctx, openPatience)
	if err != nil {
		return err
	}
	defer s.Close()
	docs, _, _, err := s.List(ctx, store.Prefix(store.Service), "", 1)
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		return fmt.Errorf("there is no service in the etcd at %s: restore it with its own tools first, and write the --etcd-prefix with which the controllers run", strings.Join(o.urls, ","))
	}
	if err := s.Restored(ctx, rand.Text()); err != nil {
		return err
	}
	p, err := s.Position(ctx)
	if err != nil {
		return err
	}
	a.note("hosts obey what the etcd has now, as of epoch %d: start the controllers", p.Epoch)
	return nil
}

// Ours.
const (
	positionFile = "etcd-position.json"
	// positionEvery is how often a controller notes how far the etcd has come.
	positionEvery = 2 * time.Second
)

// errBack means that an etcd is not as far as it was.
var errBack = errors.New("the etcd has gone back")

// advance holds the etcd's position against the one that is in the controller's folder, and keeps it
// there. One that has gone back was restored, or is another: hosts, which have seen more, would obey
// nothing in it, and what controllers have read of it is not so.
func (r controllerRun) advance(ctx context.Context, s *store.Store) error {
	file := filepath.Join(r.dir, positionFile)
	var before store.Position
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("where the etcd was cannot be read from %s: %w", file, err)
	}
	now, err := s.Position(ctx)
	if err != nil {
		return err
	}
	if now.Before(before) {
		return fmt.Errorf("%w, from revision %d of epoch %d to %d of %d: it was restored, or is another. If that is meant, end all controllers and run \"headgate controller restore %s\", so that hosts obey what is in it; else name the one that was meant",
			errBack, before.Revision, before.Epoch, now.Revision, now.Epoch, r.etcd.again())
	}
	if now == before {
		return nil
	}
	if text, err = json.Marshal(now); err != nil {
		return err
	}
	return wholefile.Write(file, text, 0o600)
}

// follow calls end with an error when the etcd goes back, until ctx ends.
func (r controllerRun) follow(ctx context.Context, s *store.Store, end func(error)) {
	for sleepUntil(ctx, time.Now().Add(positionEvery)) {
		err := r.advance(ctx, s)
		switch {
		case errors.Is(err, errBack):
			end(err)
			return
		case err != nil && ctx.Err() == nil:
			slog.Warn("how far the etcd has come cannot be noted", "error", err)
		}
	}
}
