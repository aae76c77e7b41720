package controller_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// origins returns the origins of eth0's groups as a caller sees them.
func (s *service) origins(token string) map[string]string {
	s.t.Helper()
	var list struct {
		Items []struct{ Path, Origin string }
	}
	s.mustAs(token, 200, "GET", "/v1/hosts/h1/interfaces/eth0/out/groups", "").into(s.t, &list)
	out := map[string]string{}
	for _, g := range list.Items {
		out[g.Path] = g.Origin
	}
	return out
}

// A tenant's group has the origin tenant for the tenant, the operator and the agent, whoever changes it
// later. The other groups have the origin file.
func TestOrigins(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	patch := []string{"Content-Type", "application/merge-patch+json"}
	s.mustAs(a, 200, "PUT", group("a/web"), `{"guarantee": "10Mbit", "match": [{"sport": ["443"]}]}`)
	s.mustAs(a, 200, "PUT", group("a/rest"), `{"default": true}`)
	s.must(200, "PUT", group("a/ops"), `{"guarantee": "5Mbit", "match": [{"sport": ["22"]}]}`)
	want := map[string]string{"a": "file", "a/web": "tenant", "a/rest": "tenant", "a/ops": "file", "b": "file", "rest": "file"}
	check := func(after string) {
		t.Helper()
		if got := s.origins(s.operator); !maps.Equal(got, want) {
			t.Errorf("after %s the origins are %v, want %v", after, got, want)
		}
	}
	check("the creation")
	if got := s.origins(a); len(got) != 4 || got["a"] != "file" || got["a/web"] != "tenant" {
		t.Errorf("the tenant sees the origins %v", got)
	}
	s.must(200, "PATCH", group("a/web"), `{"guarantee": "9Mbit"}`, patch...)
	s.mustAs(a, 200, "PATCH", group("a/ops"), `{"guarantee": "4Mbit"}`, patch...)
	whole := s.must(200, "GET", "/v1/hosts/h1/interfaces/eth0", "")
	if strings.Contains(whole.text, "origin") {
		t.Errorf("the interface has origins, which a request cannot set: %s", whole.text)
	}
	s.must(200, "PUT", "/v1/hosts/h1/interfaces/eth0", whole.text, "If-Match", whole.tag)
	policy := s.must(200, "GET", "/v1/hosts/h1/policy", "")
	s.must(200, "PUT", "/v1/hosts/h1/policy", policy.text)
	check("changes by others")
	if r := s.do(a, "PUT", group("a/x"), `{"origin": "file", "match": [{"sport": ["1"]}]}`); r.status != 400 {
		t.Errorf("a request with an origin: %d %s, want 400", r.status, r.text)
	}

	h := s.connect(t.TempDir())
	h.Wait(t)
	documents, _ := h.DesiredState.Interfaces()
	if len(documents) != 1 {
		t.Fatalf("the agent has %d documents", len(documents))
	}
	if got, want := fmt.Sprint(documents[0].Origins()), "map[out/a/rest:tenant out/a/web:tenant]"; got != want {
		t.Errorf("the agent has the origins %v, want %v", got, want)
	}

	s.must(204, "DELETE", group("a/web"), "")
	s.must(200, "PUT", group("a/web"), `{"match": [{"sport": ["443"]}]}`)
	want["a/web"] = "file"
	check("the operator replaced a group")
}
