package login

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/pki"
)

// RequestTimeout is the usual timeout of a request. For a report the service queries every agent.
const RequestTimeout = 30 * time.Second

// Times after which a client knows that it is cut off, chosen by this project.
const (
	// pingInterval is the time without data after which a ping is sent, and the timeout of the ping. The service answers it
	// also while a request takes long.
	pingInterval = 2 * time.Second
	// connectTimeout is the timeout of a TCP connection, and of a TLS handshake.
	connectTimeout = 4 * time.Second
)

// Client returns a client of the service. timeout is that of a request; 0 is none.
func (c Credentials) Client(timeout time.Duration) (*api.Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("%q is not the URL of a service: write for example https://10.0.0.1:8420", c.URL)
	}
	h := &http.Client{Timeout: timeout, Transport: &http.Transport{
		TLSClientConfig: pki.Pinned(u.Hostname(), c.Pin), ForceAttemptHTTP2: true,
		DialContext: (&net.Dialer{Timeout: connectTimeout}).DialContext, TLSHandshakeTimeout: connectTimeout,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingInterval}, // finds a lost connection of a silent stream
	}}
	return api.NewClient(c.URL, api.WithHTTPClient(h), api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+c.Token)
		return nil
	}))
}

// WriteAuthority writes the certificate with this pin to a file, as PEM. The server sends the certificate in
// the TLS handshake.
func WriteAuthority(file string, s *tls.ConnectionState, pin string) error {
	for _, cert := range s.PeerCertificates {
		if pki.Hash(cert) == pin {
			return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o644)
		}
	}
	return pki.ErrPin
}
