package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// asking is a client of one controller, as an operator.
type asking struct {
	url, token string
	client     *http.Client
}

func (p *place) ask(c *control) *asking {
	return &asking{"https://" + net.JoinHostPort(c.address, apiPort), p.token, &http.Client{Timeout: 10 * time.Second, Transport: p.pinned(c.address)}}
}

// shared is a client whose connections are shared by many callers.
func (p *place) shared(c *control) *asking {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shares == nil {
		p.shares = map[string]*asking{}
	}
	if p.shares[c.name] == nil {
		p.shares[c.name] = p.ask(c)
	}
	return p.shares[c.name]
}

// do sends a request.
func (a *asking) do(ctx context.Context, method, path string, body any) (status int, text []byte, err error) {
	return a.once(ctx, method, path, body, "")
}

// once sends a request with an Idempotency-Key, if it is not "".
func (a *asking) once(ctx context.Context, method, path string, body any, key string) (status int, text []byte, err error) {
	var from io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		from = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, from)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	got, err := a.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer got.Body.Close()
	text, err = io.ReadAll(got.Body)
	return got.StatusCode, text, err
}

// must sends a request that has to succeed.
func (a *asking) must(ctx context.Context, method, path string, body any) ([]byte, error) {
	status, text, err := a.do(ctx, method, path, body)
	if err == nil && status >= 300 {
		err = fmt.Errorf("%s %s: %d %s", method, path, status, text)
	}
	return text, err
}

// times are the durations of requests.
type times struct {
	mu   sync.Mutex
	took []time.Duration
}

func (t *times) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took = append(t.took, d)
}

// at returns the quantile of the times, in ms.
func (t *times) at(part float64) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := slices.Clone(t.took)
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[min(int(part*float64(len(v))), len(v)-1)].Seconds() * 1000
}

func (t *times) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.took)
}
