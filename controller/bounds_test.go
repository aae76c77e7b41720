package controller_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/controller/controllertest"
	grouped "headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
)

// joins returns a group of a tenant with a list of program names, of so many bytes.
func joins(bytes int) string {
	type one struct {
		Name    string                `json:"name"`
		Default bool                  `json:"default,omitempty"`
		Match   []map[string][]string `json:"match,omitempty"`
		Join    []string              `json:"join,omitempty"`
	}
	all := []one{{Name: "rest", Default: true}}
	for n := range bytes / (50 << 10) {
		g := one{Name: fmt.Sprint("g", n), Match: []map[string][]string{{"dst": {fmt.Sprintf("10.1.0.%d/32", n)}}}}
		for k := range 1024 {
			g.Join = append(g.Join, fmt.Sprintf("u%046d", k))
		}
		all = append(all, g)
	}
	text, _ := json.Marshal(map[string]any{"guarantee": "1%", "groups": all})
	return string(text)
}

// What a tenant has on a device is bounded in bytes: no list of it is free. Another tenant is not concerned, and an operator may give more.
func TestTenantBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector, at low priority, a change of megabytes takes longer than its timeout")
	}
	t.Parallel()
	s := start(t)
	a, b := s.twoTenants()
	s.must(200, "PUT", "/v1/tenants/a", `{"requests_per_second": 1000}`)
	s.mustAs(a, 200, "PUT", group("a/x"), joins(200<<10))
	r := s.mustAs(a, 422, "PUT", group("a/x"), joins(600<<10))
	for _, has := range []string{"quota exceeded", "tenant a", "on eth0", "524288", "use fewer"} {
		if !strings.Contains(r.text, has) {
			t.Errorf("the refusal lacks %q: %s", has, r.text)
		}
	}
	s.mustAs(a, 413, "PUT", group("a/x"), joins(2<<20))
	s.mustAs(b, 200, "PUT", group("b/x"), `{"default": true}`)
	// An operator may give more. The tenant keeps or reduces it.
	s.must(200, "PUT", group("a/x"), joins(600<<10))
	s.mustAs(a, 422, "PUT", group("a/y"), `{"match": [{"sport": ["5"]}]}`)
	s.mustAs(a, 200, "PUT", group("a/x"), joins(550<<10))
	s.must(413, "PUT", group("a/x"), joins(store.MaxDocument+1<<20))
}

// Bytes count for the rate limit: a tenant that has much on a device changes it less often.
func TestBytesOfRateLimit(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	s.must(200, "PUT", "/v1/tenants/a", `{"requests_per_second": 1}`)
	s.mustAs(a, 200, "PUT", group("a/x"), joins(400<<10)) // as 50 requests, of which the bucket has two
	if r := s.mustAs(a, 429, "GET", group("a/x"), ""); r.header.Get("Retry-After") == "" {
		t.Error("a refusal above the rate limit has no Retry-After")
	}
}

// A repeat of a request with a large response gets the resource, which is not stored a second time.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.twoTenants()
	body := joins(100 << 10)
	first := s.must(200, "PUT", group("a/x"), body, "Idempotency-Key", "k")
	s.must(200, "PATCH", group("a/x"), `{"ceiling": "50%"}`, "Content-Type", "application/merge-patch+json")
	again := s.must(200, "PUT", group("a/x"), body, "Idempotency-Key", "k")
	if first.text == again.text || !strings.Contains(again.text, "50%") {
		t.Error("the repeat has not got the resource as it is now")
	}
	docs, _, err := s.store.All(t.Context(), store.Prefix(store.IdempotentAnswers), 0)
	if err != nil || len(docs) != 1 || len(docs[0].Value) > 1000 {
		t.Errorf("%d answers are stored, %v", len(docs), err)
	}
}

// An agent gets documents that are together larger than a message, and only then what is desired.
func TestDocumentsBeforeDesired(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector, at low priority, a change of megabytes takes longer than its timeout")
	}
	t.Parallel()
	s := start(t)
	s.twoTenants()
	want := map[string]bool{"eth0": true}
	// Past the bound of a host, as a controller of an earlier version stored them.
	for n := range 8 {
		dev := fmt.Sprint("eth", n+1)
		var i store.Interface
		if err := json.Unmarshal([]byte(`{"dev": "`+dev+`", "out": {"limit": "1Gbit", "groups": [{"name": "a", "default": true}]}}`), &i); err != nil {
			t.Fatal(err)
		}
		i.Out.Groups[0].Default = false
		var of struct{ Groups []grouped.Group }
		if err := json.Unmarshal([]byte(joins(5<<20)), &of); err != nil {
			t.Fatal(err)
		}
		i.Out.Groups = of.Groups
		if _, err := s.store.Do(t.Context(), dev, func(tx *store.Tx) error { return tx.Put(store.Key(store.Interfaces, "h1", dev), i) }); err != nil {
			t.Fatal(err)
		}
		want[dev] = true
	}
	s.must(413, "PUT", group("a/x"), `{"default": true}`)
	h := s.connect(t.TempDir())
	h.Wait(t)
	all, errs := h.DesiredState.Interfaces()
	if len(errs) != 0 || len(all) != len(want) {
		t.Errorf("the agent has %d of %d interfaces, errors %v", len(all), len(want), errs)
	}
}

// An agent that sends more than it may is delayed or disconnected, and named in an event. Others go on.
func TestHostileAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.twoTenants()
	large := strings.Repeat("x", 5<<20)
	h := s.connect(t.TempDir(), func(h *host) {
		h.Facts = func() *agents.Facts { return &agents.Facts{Kernel: large} }
	})
	_ = h
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if r := s.must(200, "GET", "/v1/audit", ""); strings.Contains(r.text, "agent sends a message of 5242") && strings.Contains(r.text, `"principal":"h1"`) {
			break
		} else if time.Now().After(end) {
			t.Fatalf("no event names the agent: %s", r.text)
		}
	}
	if r := s.must(200, "GET", "/v1/hosts/h1", ""); len(r.text) > 10_000 {
		t.Errorf("the facts of the agent are kept: %d bytes", len(r.text))
	}
}

// Certificates are renewed at a bounded rate.
func TestRenewals(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.must(200, "PUT", "/v1/hosts/h1", `{}`)
	dir := t.TempDir()
	token := s.token(`{"name": "join", "role": "agent", "host": "h1"}`)
	if err := remote.Join(t.Context(), dir, remote.Controller{URL: s.url, Host: "h1", Token: token, Pin: s.pin}); err != nil {
		t.Fatal(err)
	}
	renewed := 0
	for range 20 {
		switch err := controllertest.Renew(t.Context(), dir); {
		case err == nil:
			renewed++
		case !strings.Contains(err.Error(), "too many requests for certificates"):
			t.Fatal(errors.Unwrap(err), err)
		}
	}
	if renewed == 0 || renewed > 6 {
		t.Errorf("%d of 20 renewals", renewed)
	}
}
