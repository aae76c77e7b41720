package controller_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/internal/pki"
)

// Unauthenticated clients cannot overload the service: the size and the time of bodies are limited,
// and invalid tokens are rate limited. Clients with valid tokens are not affected, also from the same
// address.
func TestStrangers(t *testing.T) {
	if testing.Short() {
		t.Skip("its clients wait seconds, and the race detector makes them wait longer")
	}
	t.Parallel()
	s := start(t)
	s.must(200, "PUT", "/v1/hosts/h1", `{}`)

	slow := make(chan error, 1)
	go func() { slow <- s.slowly() }()

	big := strings.Repeat(" ", 70<<10)
	for path, status := range map[string]int{"/v1/tenants/a": 413, "/v1/hosts/h1/interfaces/eth0": 200} {
		body := big + `{}`
		if status == 200 {
			body = big + `{"out": {"limit": "1Mbit", "groups": [{"name": "all", "default": true}]}}`
		}
		s.must(status, "PUT", path, body)
	}
	if r := s.do("", "POST", "/v1/login", big+`{"token": "hg_x"}`); r.status != 413 {
		t.Errorf("login with a large body: %d %s", r.status, r.text)
	}

	bad := map[int]int{}
	for n := range 160 {
		r := s.do("hg_guess"+fmt.Sprint(n), "GET", "/v1/hosts", "")
		if n%2 == 0 {
			r = s.do("", "POST", "/v1/login", fmt.Sprintf(`{"token": "hg_guess%d"}`, n))
		}
		bad[r.status]++
		if r.status == 429 && r.header.Get("Retry-After") == "" {
			t.Error("status 429 without Retry-After")
		}
	}
	if bad[401] < 60 || bad[429] < 20 || bad[401]+bad[429] != 160 {
		t.Errorf("statuses of requests with invalid tokens: %v", bad)
	}
	s.must(200, "GET", "/v1/hosts", "") // the operator's token was accepted a moment ago
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

// Health checks need no token, and many concurrent ones query the store once, also while the store is
// disconnected and each answer takes long.
func TestHealthOfMany(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.must(200, "GET", "/v1/health", "")
	s.member.Stop()
	time.Sleep(time.Second) // the cached answer has expired
	began := time.Now()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if r := s.do("", "GET", "/v1/health", ""); r.status != 503 || r.header.Get("Retry-After") == "" {
				t.Errorf("without a store: %d %s", r.status, r.text)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("50 answers took %v", took)
	}
}

// slowly sends half a request, and returns an error unless the server times out in time.
func (s *service) slowly() error {
	c, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), pki.Pinned("127.0.0.1", s.pin))
	if err != nil {
		return err
	}
	defer c.Close()
	began := time.Now()
	fmt.Fprint(c, "POST /v1/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{\"token\"")
	c.SetReadDeadline(began.Add(20 * time.Second))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return fmt.Errorf("half a request: %w", err)
	}
	defer r.Body.Close()
	if took := time.Since(began); r.StatusCode != http.StatusRequestTimeout || took > 13*time.Second {
		return fmt.Errorf("half a request: %s after %v", r.Status, took)
	}
	return nil
}
