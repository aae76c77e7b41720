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

	"headgate/api"
	"headgate/internal/pki"
)

// Ours.
const (
	// otherPatience is for how long another controller is waited for, and otherThere until it is known
	// that there is one.
	otherPatience, otherThere = 3 * time.Second, time.Second
	// mostForwarded is more than any request that is handed on.
	mostForwarded = 64 << 10
)

// forwarded is in a request that another controller hands on: nobody hands it on again.
const forwarded = "Headgate-Forwarded"

// forwarder hands what is asked of a host's agent to the controller that this is connected to, as the
// one who asked: any controller serves any caller.
type forwarder struct {
	next   http.Handler
	hub    *hub
	others []string // where their APIs are
	client *http.Client

	mu sync.Mutex
	at map[string]string // by host: the other that had its agent last
}

func newForwarder(next http.Handler, h *hub, others []string, authority []byte) (http.Handler, error) {
	tls, err := pki.Client(nil, authority)
	if err != nil || len(others) == 0 {
		return next, err
	}
	return &forwarder{next: next, hub: h, others: others, at: map[string]string{}, client: &http.Client{
		Transport: &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, TLSHandshakeTimeout: otherThere,
			DialContext: (&net.Dialer{Timeout: otherThere}).DialContext},
	}}, nil
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if together := merges[r.URL.Path]; together != nil && r.Method == http.MethodGet && r.Header.Get(forwarded) == "" {
		f.merge(w, r, together)
		return
	}
	host, ok := ofAgent(r)
	if !ok || f.hub.link(host) != nil || r.Header.Get(forwarded) != "" {
		f.next.ServeHTTP(w, r)
		return
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, mostForwarded))
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), r.Body))
	if err != nil || len(text) == mostForwarded {
		f.next.ServeHTTP(w, r)
		return
	}
	// First here: who asks may not, perhaps, or too often.
	own := api.Record(f.next, r)
	if had(own.Status, own.Body.Bytes()) || own.Status != http.StatusOK && own.Status != http.StatusNotFound && own.Status != http.StatusConflict {
		own.Give(w)
		return
	}
	for _, at := range f.order(host) {
		answer, body, err := f.ask(r, at, text, otherPatience)
		if err != nil || !had(answer.StatusCode, body) {
			continue
		}
		f.mu.Lock()
		f.at[host] = at
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
	own.Give(w)
}

// ofAgent is the host whose agent a request is about.
func ofAgent(r *http.Request) (host string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if len(parts) < 3 || parts[0] != "v1" || parts[1] != "hosts" {
		return "", false
	}
	host, err := url.PathUnescape(parts[2])
	is := len(parts) == 3 && r.Method == http.MethodGet || len(parts) > 3 && (parts[3] == "rates" || parts[3] == "probes")
	return host, err == nil && is
}

// had tells whether an answer is of a controller that has the agent.
func had(status int, body []byte) bool {
	var h struct {
		Connected *bool `json:"connected"` // of a host
	}
	return status < http.StatusBadRequest && json.Unmarshal(body, &h) == nil && (h.Connected == nil || *h.Connected)
}

// order is who is asked: first whoever had the agent last.
func (f *forwarder) order(host string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.at[host]
	if last == "" {
		return f.others
	}
	return append([]string{last}, slices.DeleteFunc(slices.Clone(f.others), func(at string) bool { return at == last })...)
}

// ask hands a request on.
func (f *forwarder) ask(r *http.Request, at string, text []byte, patience time.Duration) (*http.Response, []byte, error) {
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
