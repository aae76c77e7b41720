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

// asking is somebody who asks one controller, as an operator.
type asking struct {
	url, token string
	client     *http.Client
}

func (p *place) ask(c *control) *asking {
	return &asking{"https://" + net.JoinHostPort(c.address, apiPort), p.token, &http.Client{Timeout: 10 * time.Second, Transport: p.pinned(c.address)}}
}

// shared is one whose connections many use.
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

// do asks.
func (a *asking) do(ctx context.Context, method, path string, body any) (status int, text []byte, err error) {
	return a.once(ctx, method, path, body, "")
}

// once asks with an Idempotency-Key, if it is not "".
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

// must asks for what has to be done.
func (a *asking) must(ctx context.Context, method, path string, body any) ([]byte, error) {
	status, text, err := a.do(ctx, method, path, body)
	if err == nil && status >= 300 {
		err = fmt.Errorf("%s %s: %d %s", method, path, status, text)
	}
	return text, err
}

// times are how long requests took.
type times struct {
	mu   sync.Mutex
	took []time.Duration
}

func (t *times) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took = append(t.took, d)
}

// at is the value that a part of them do not pass, in ms.
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
