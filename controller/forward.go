package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/internal/pki"
)

// Values chosen for Headgate.
const (
	// forwardTimeout is the timeout of a request to another controller. dialTimeout is the timeout of the
	// connection to it.
	forwardTimeout, dialTimeout = 3 * time.Second, time.Second
	// maxForwarded is above the size in bytes of any request that is forwarded.
	maxForwarded = 64 << 10
)

// forwarded is the header of a forwarded request, which is not forwarded again.
const forwarded = "Headgate-Forwarded"

// forwarder forwards requests about a host's agent to the controller to which the agent is connected,
// with the credentials of the client: every controller serves every client.
type forwarder struct {
	next   http.Handler
	hub    *hub
	peers  []string // addresses of their APIs
	client *http.Client

	mu             sync.Mutex
	lastController map[string]string // by host: the other controller to which its agent was connected last
}

func newForwarder(next http.Handler, h *hub, others []string, authority []byte) (http.Handler, error) {
	tls, err := pki.Client(nil, authority)
	if err != nil || len(others) == 0 {
		return next, err
	}
	return &forwarder{next: next, hub: h, peers: others, lastController: map[string]string{}, client: &http.Client{
		Transport: &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout,
			DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext},
	}}, nil
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if together := merges[r.URL.Path]; together != nil && r.Method == http.MethodGet && r.Header.Get(forwarded) == "" {
		f.merge(w, r, together)
		return
	}
	host, ok := agentHost(r)
	if !ok || f.hub.link(host) != nil || r.Header.Get(forwarded) != "" {
		f.next.ServeHTTP(w, r)
		return
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxForwarded))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), r.Body))
	if err != nil || len(text) == maxForwarded {
		f.next.ServeHTTP(w, r)
		return
	}
	// This controller handles the request first: it may reject the client or apply the rate limit.
	own := server.RecordResponse(f.next, r)
	if hasAgent(own.Status, own.Body.Bytes()) || own.Status != http.StatusOK && own.Status != http.StatusNotFound && own.Status != http.StatusConflict {
		own.Replay(w)
		return
	}
	for _, at := range f.candidates(host) {
		answer, body, err := f.forward(r, at, text, forwardTimeout)
		if err != nil || !hasAgent(answer.StatusCode, body) {
			continue
		}
		f.mu.Lock()
		f.lastController[host] = at
		f.mu.Unlock()
		for _, name := range []string{"Content-Type", "ETag"} {
			if v := answer.Header.Get(name); v != "" {
				w.Header().Set(name, v)
			}
		}
		w.WriteHeader(answer.StatusCode)
		w.Write(body)
		return
	}
	own.Replay(w)
}

// agentHost returns the host if a request is about the host's agent.
func agentHost(r *http.Request) (host string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if len(parts) < 3 || parts[0] != "v1" || parts[1] != "hosts" {
		return "", false
	}
	host, err := url.PathUnescape(parts[2])
	is := len(parts) == 3 && r.Method == http.MethodGet || len(parts) > 3 && (parts[3] == "rates" || parts[3] == "probes")
	return host, err == nil && is
}

// hasAgent reports whether an answer is from the controller to which the agent is connected.
func hasAgent(status int, body []byte) bool {
	var h struct {
		Connected *bool `json:"connected"` // only in the state of a host
	}
	return status < http.StatusBadRequest && json.Unmarshal(body, &h) == nil && (h.Connected == nil || *h.Connected)
}

// candidates returns the other controllers, starting with the one to which the host's agent was connected last.
func (f *forwarder) candidates(host string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.lastController[host]
	if last == "" {
		return f.peers
	}
	return append([]string{last}, slices.DeleteFunc(slices.Clone(f.peers), func(at string) bool { return at == last })...)
}

// forward sends a request to another controller and returns its answer.
func (f *forwarder) forward(r *http.Request, at string, text []byte, patience time.Duration) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, r.Method, "https://"+at+r.URL.RequestURI(), bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"Authorization", "Content-Type", "Idempotency-Key"} {
		if v := r.Header.Get(name); v != "" {
			q.Header.Set(name, v)
		}
	}
	q.Header.Set(forwarded, "1")
	answer, err := f.client.Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer, body, err
}
