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
	// forwardTimeout is the timeout of a request to another controller, which queries an agent in turn. dialTimeout is
	// the timeout of the connection to it.
	forwardTimeout, dialTimeout = setsTimeout + time.Second, time.Second
	// leaderTimeout is the timeout of a request that only the leader can answer. A change is answered within 5 s (package
	// store), after those that wait before it.
	leaderTimeout = 10 * time.Second
	// maxForwarded is above the size in bytes of any request that is forwarded.
	maxForwarded = 64 << 10
)

// forwarder forwards requests about a host's agent to the controller to which the agent is connected,
// with the credentials of the client: every controller serves every client.
type forwarder struct {
	api    *server.Server
	next   http.Handler // of api
	hub    *hub
	leads  func() bool // reports whether this controller is the leader
	peers  []string    // addresses of their APIs
	client *http.Client

	mu             sync.Mutex
	lastController map[string]string // by host: the other controller to which its agent was connected last
}

func newForwarder(api *server.Server, next http.Handler, h *hub, leads func() bool, others []string, authority []byte) (*forwarder, error) {
	tls, err := pki.Client(nil, authority)
	if err != nil {
		return nil, err
	}
	return &forwarder{api: api, next: next, hub: h, leads: leads, peers: others, lastController: map[string]string{}, client: &http.Client{
		Transport: &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout,
			DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext},
	}}, nil
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(f.peers) == 0 || server.Forwarded(r) {
		f.next.ServeHTTP(w, r)
		return
	}
	op, host := f.api.Operation(r), hostOf(r)
	switch {
	case op != nil && op.OfLeader && !f.leads():
		f.findLeader(w, r)
	case op == nil || op.Agents == server.NoAgents || op.Agents == server.HostAgent && f.hub.link(host) != nil:
		f.next.ServeHTTP(w, r)
	case op.Agents == server.AllAgents:
		f.merge(w, r, merges[op.ID])
	default:
		f.findAgent(w, r, host)
	}
}

// findAgent serves a request about the agent of a host that is not connected to this controller: by the controller
// to which it is connected, or by this one if there is none.
func (f *forwarder) findAgent(w http.ResponseWriter, r *http.Request, host string) {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxForwarded))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), r.Body))
	if err != nil || len(text) == maxForwarded {
		f.next.ServeHTTP(w, r)
		return
	}
	// This controller handles the request first: it may reject the client or apply the rate limit.
	own := server.RecordResponse(f.next, r)
	if own.Status != http.StatusOK && own.Status != http.StatusNotFound && own.Status != http.StatusConflict {
		own.Replay(w)
		return
	}
	for _, at := range f.candidates(host) {
		answer, body, err := f.forward(r, at, text, forwardTimeout)
		limited := err == nil && answer.StatusCode == http.StatusTooManyRequests // as if this controller had answered so
		if err != nil || !hasAgent(answer.StatusCode, body) && !limited {
			continue
		}
		f.mu.Lock()
		f.lastController[host] = at
		f.mu.Unlock()
		server.CopyHeader(w.Header(), answer.Header, "Content-Type", "ETag", "Retry-After")
		w.WriteHeader(answer.StatusCode)
		w.Write(body)
		return
	}
	own.Replay(w)
}

// findLeader serves a request that only the leader can answer, by the controller that is the leader, or by this one if there
// is none.
func (f *forwarder) findLeader(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxForwarded))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), r.Body))
	if err != nil || len(text) == maxForwarded {
		f.next.ServeHTTP(w, r)
		return
	}
	// This controller handles the request first: it may reject the client or apply the rate limit.
	own := server.RecordResponse(f.next, r)
	if own.Status != http.StatusServiceUnavailable {
		own.Replay(w)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel() // of the requests to the others, once one has answered
	answers := make(chan func(), len(f.peers))
	for _, at := range f.peers {
		go func() {
			answer, body, err := f.forward(r.WithContext(ctx), at, text, leaderTimeout)
			if err != nil || answer.StatusCode == http.StatusServiceUnavailable {
				answers <- nil
				return
			}
			answers <- func() {
				server.CopyHeader(w.Header(), answer.Header, "Content-Type", "ETag", "Retry-After")
				w.WriteHeader(answer.StatusCode)
				w.Write(body)
			}
		}()
	}
	for range f.peers {
		if reply := <-answers; reply != nil {
			reply()
			return
		}
	}
	own.Replay(w)
}

// hasAgent reports whether an answer is from the controller to which the agent is connected.
func hasAgent(status int, body []byte) bool {
	var h struct {
		Connected *bool `json:"connected"` // only in states that a controller without the agent also answers with 200
	}
	return status < http.StatusBadRequest && json.Unmarshal(body, &h) == nil && (h.Connected == nil || *h.Connected)
}

// hostOf returns the host in the path of a request, "" if there is none.
func hostOf(r *http.Request) string {
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if len(parts) < 3 || parts[0] != "v1" || parts[1] != "hosts" {
		return ""
	}
	host, err := url.PathUnescape(parts[2])
	if err != nil {
		return ""
	}
	return host
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
	q, err := f.request(ctx, r, r.Method, "https://"+at+r.URL.RequestURI(), bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	answer, err := f.client.Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer, body, err
}

// request returns a request to another controller, with the credentials of the client's request.
func (f *forwarder) request(ctx context.Context, of *http.Request, method, url string, body io.Reader) (*http.Request, error) {
	q, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	server.CopyHeader(q.Header, of.Header, "Authorization", "Content-Type", "Idempotency-Key", "If-Match")
	q.Header.Set(server.ForwardedHeader, "1")
	return q, nil
}
