package controller_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// A policy file that lists a tenant's group without child groups keeps the tenant's child groups; child
// groups in the file replace them. With If-Match the file changes only the state that its author has
// seen.
func TestPolicyKeepsTenants(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	s.mustAs(a, 200, "PUT", group("a/web"), `{"guarantee": "30Mbit", "match": [{"sport": ["443"]}]}`)
	s.mustAs(a, 200, "PUT", group("a/rest"), `{"default": true}`)
	const conn = "/v1/hosts/h1/interfaces/eth0/connections/tcp%2010.0.0.1:443%2010.1.0.2:55000"
	s.mustAs(a, 200, "PUT", conn, `{"group": "a/web"}`)
	const at = "/v1/hosts/h1/policy"
	put := func(status int, groupA string, headers ...string) reply {
		t.Helper()
		text, err := json.Marshal(map[string]string{"text": `kind: Interface
dev: eth0
out:
  limit: 100Mbit
  groups:
    - {name: a, ` + groupA + `, match: [{dst: [10.1.0.0/16]}]}
    - {name: b, guarantee: 20%, match: [{dst: [10.2.0.0/16]}]}
    - {name: rest, guarantee: 10%, default: true}
`})
		if err != nil {
			t.Fatal(err)
		}
		return s.must(status, "PUT", at, string(text), headers...)
	}
	seen := s.must(200, "GET", at, "")
	s.mustAs(a, 200, "PUT", group("a/more"), `{"match": [{"sport": ["80"]}]}`)
	put(412, "guarantee: 50%", "If-Match", seen.tag)
	r := put(200, "guarantee: 50%", "If-Match", s.must(200, "GET", at, "").tag)
	if r.tag != "" || !strings.Contains(r.text, "name: web") {
		t.Errorf("the resulting policy is %s, with the tag %s", r.text, r.tag)
	}
	for _, path := range []string{"a/web", "a/rest", "a/more"} {
		s.mustAs(a, 200, "GET", group(path), "")
	}
	if r := s.mustAs(a, 200, "GET", group("a"), ""); !strings.Contains(r.text, `"guaranteed_bps":50000000`) {
		t.Errorf("afterwards the group is %s", r.text)
	}
	if r := s.mustAs(a, 200, "GET", "/v1/hosts/h1/interfaces/eth0/connections", ""); !strings.Contains(r.text, `"a/web"`) {
		t.Errorf("afterwards the connections are %s", r.text)
	}
	if r := put(422, "guarantee: 20%"); !strings.Contains(r.text, `eth0: out group a: groups: guarantees total 30Mbit`) {
		t.Errorf("guarantee below that of the child groups: %s", r.text)
	}
	put(200, "guarantee: 50%, groups: [{name: only, default: true}]")
	s.mustAs(a, 404, "GET", group("a/web"), "")
	s.mustAs(a, 200, "GET", group("a/only"), "")
}

// A policy file gives groups to tenants, takes them away from none that it does not name, and is refused for a tenant that does not exist.
func TestPolicyTenants(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.must(200, "PUT", "/v1/hosts/h1", `{}`)
	s.must(200, "PUT", "/v1/tenants/shop", `{}`)
	const at = "/v1/hosts/h1/policy"
	file := func(tenant string) string {
		return `{"text": "kind: Interface\ndev: eth0\nout: {limit: 1Mbit, groups: [{name: a, guarantee: 10%, match: [{dport: 80}]` + tenant + `}, {name: rest, default: true}]}\n"}`
	}
	s.must(422, "PUT", at, file(", tenant: nobody"))
	if made := s.must(200, "PUT", at, file(", tenant: shop")); !strings.Contains(made.text, `tenant: shop`) {
		t.Errorf("the resulting policy is %s", made.text)
	}
	for range 2 {
		if g := s.must(200, "GET", group("a"), ""); !strings.Contains(g.text, `"tenant":"shop"`) {
			t.Errorf("the group is %s", g.text)
		}
		s.must(200, "PUT", at, file("")) // it keeps the tenant
	}
	s.must(200, "PUT", "/v1/tenants/other", `{}`)
	s.must(200, "PUT", at, file(", tenant: other"))
	if g := s.must(200, "GET", group("a"), ""); !strings.Contains(g.text, `"tenant":"other"`) {
		t.Errorf("the group is %s", g.text)
	}
}
