package controller_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"headgate.dev/headgate/api"
	"headgate.dev/headgate/internal/pki"
)

// Every operation of the specification, without a token, with an unknown token, with each role and as
// another tenant. Without a valid token only health and login work. A role without permission gets
// 403. Resources of other tenants do not exist for a tenant.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.twoTenants()
	s.mustAs(a, 200, "PUT", group("a/rest"), `{"default": true}`)
	s.must(200, "PUT", "/v1/hosts/h1/collectives/db", `{"document": "kind: Collective\nname: db\njoin: root\n"}`)
	s.mustAs(a, 200, "PUT", "/v1/hosts/h1/interfaces/eth0/connections/tcp%2010.0.0.1:443%2010.1.0.2:55000", `{"group": "a/rest"}`)
	callers := map[string]string{
		"no token": "", "unknown token": "hg_stranger", "operator": s.operator, "tenant": a, "other tenant": b,
		"viewer": s.token(`{"name": "v", "role": "viewer"}`),
		"agent":  s.token(`{"name": "h1", "role": "agent", "host": "h1"}`),
	}
	spec, err := openapi3.NewLoader().LoadFromData(api.Specification())
	if err != nil {
		t.Fatal(err)
	}
	// The permissions of each role, by operation id and method: the test's own table, independent of the
	// implementation.
	change := map[string]bool{"POST": true, "PUT": true, "PATCH": true, "DELETE": true}
	operatorsOnly := []string{"Tenant", "Host", "Interface", "rollBack", "Collective", "Policy", "startProbe", "ProbeSchedule", "NetworkConfig", "signSwitchCertificate", "Restore", "takeBack"}
	may := func(role, method, id string) bool {
		operators := false
		for _, o := range operatorsOnly {
			operators = operators || strings.HasSuffix(id, o)
		}
		switch {
		case id == "getHealth" || id == "login":
			return true
		case id == "getSession" || id == "deleteSession":
			return role != "no token"
		case id == "signCertificate":
			return role == "agent"
		case role == "operator":
			return true
		case id == "getRestore":
			return false // it names tokens of all
		case role == "viewer":
			return !change[method]
		case role == "tenant" || role == "other tenant":
			switch id {
			case "listTenants", "getHost", "listHistory", "listCollectives", "listCollectiveStates", "listRelays", "listRelayEnded", "getNetwork", "listNetworkEvents", "getNetworkPath", "getNetworkLinkHistory", "getNetworkConfig", "getNetworkTrace", "listSwitchFlows", "getCollective", "getPolicy", "getProbe", "getOverview",
				"getProbeSchedule", "getProbeState", "listProbeResults", "listProposals", "getReservationCalendar":
				return false
			case "getTenant", "getInterface", "listTenantGroups":
				return true
			}
			return !operators
		}
		return false
	}
	fill := strings.NewReplacer("{tenant}", "a", "{host}", "h1", "{dev}", "eth0", "{direction}", "out", "{group}", "a%2Frest", "{token}", "000000000000",
		"{connection}", "tcp%2010.0.0.1:443%2010.1.0.2:55000", "{collective}", "db", "{relay}", "east", "{dpid}", "0000000000000001", "{port}", "1", "{owner}", "a", "{reservation}", "x", "{probe}", "0000000000000000")
	n := 0
	for path, item := range spec.Paths.Map() {
		for method, o := range item.Operations() {
			for role, token := range callers {
				if strings.HasPrefix(o.OperationID, "watch") && may(role, method, o.OperationID) {
					continue // the answer does not end
				}
				n++
				target := fill.Replace(path)
				if o.OperationID == "getUsage" {
					target += "?since=2026-01-01T00:00:00Z"
				}
				if o.OperationID == "getNetworkPath" {
					target += "?from=10.0.0.1&to=10.0.0.2"
				}
				if o.OperationID == "getNetworkTrace" {
					target += "?packet=broadcast&from=10.0.0.1"
				}
				if o.OperationID == "getReservationCalendar" {
					target += "?link=0000000000000001/1"
				}
				if o.OperationID == "watchLive" {
					target += "?see=/v1/session"
				}
				// The body is invalid, so that nothing is changed: a permitted caller gets 400 or another error
				// such as 404, but never 401 or 403.
				body := ""
				if o.RequestBody != nil {
					body = `{"none": 1}`
				}
				if method == "DELETE" {
					target += "?dry_run=true"
				}
				r := s.do(token, method, target, body)
				switch {
				case o.OperationID == "login" && r.status == 400: // for the invalid body
				case token == "" || token == "hg_stranger":
					if want := may("no token", method, o.OperationID); (r.status == 401) == want {
						t.Errorf("%s %s as %s: %d", method, target, role, r.status)
					}
				case !may(role, method, o.OperationID):
					if r.status != 403 {
						t.Errorf("%s %s (%s) as %s: %d %s, want 403", method, target, o.OperationID, role, r.status, r.text)
					}
				case role == "other tenant" && (strings.HasPrefix(target, "/v1/hosts/h1/interfaces/eth0/out/groups/") || strings.HasPrefix(target, "/v1/tenants/a") || strings.HasPrefix(target, "/v1/reservations/a")):
					if r.status != 404 && r.status != 400 {
						t.Errorf("%s %s as another tenant: %d %s, want 404", method, target, r.status, r.text)
					}
				case r.status == 401 || r.status == 403 || r.status >= 500:
					t.Errorf("%s %s (%s) as %s: %d %s", method, target, o.OperationID, role, r.status, r.text)
				}
				if r.status == 200 && strings.Contains(r.text, "rest") && role == "other tenant" {
					t.Errorf("%s %s shows another tenant %s", method, target, r.text)
				}
			}
		}
	}
	if n < 40*6 {
		t.Errorf("only %d requests were made", n)
	}
}

// A tenant creates tokens with no more permissions than its own, and a deleted token is invalid at
// once. The store contains no secrets of tokens.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.twoTenants()
	for _, body := range []string{`{"name": "x", "role": "operator"}`, `{"name": "x", "role": "tenant", "tenant": "b"}`, `{"name": "x", "role": "agent", "host": "h1"}`} {
		if r := s.do(a, "POST", "/v1/tokens", body); r.status != 403 {
			t.Errorf("a tenant creates %s: %d %s", body, r.status, r.text)
		}
	}
	var made struct{ ID, Token string }
	s.mustAs(a, http.StatusCreated, "POST", "/v1/tokens", `{"name": "child", "role": "viewer", "lifetime": "1h"}`).into(t, &made)
	s.mustAs(made.Token, 200, "GET", group("a"), "")
	s.mustAs(made.Token, 403, "PUT", group("a/x"), `{}`)
	// Resources of a whole host are not visible to a tenant's viewers.
	s.mustAs(made.Token, 403, "GET", "/v1/hosts/h1/policy", "")
	s.mustAs(made.Token, 403, "GET", "/v1/hosts/h1/collective-states", "")
	s.mustAs(made.Token, 403, "GET", "/v1/hosts/h1/relays", "")
	s.mustAs(b, 404, "DELETE", "/v1/tokens/"+made.ID, "")
	s.mustAs(a, 204, "DELETE", "/v1/tokens/"+made.ID, "")
	s.mustAs(made.Token, 401, "GET", group("a"), "")
	// With an Idempotency-Key a token is created once, and its secret is returned once.
	var keyed struct{ ID, Token string }
	child := `{"name": "keyed", "role": "viewer", "lifetime": "1h"}`
	s.mustAs(a, http.StatusCreated, "POST", "/v1/tokens", child, "Idempotency-Key", "k1").into(t, &keyed)
	if r := s.mustAs(a, http.StatusConflict, "POST", "/v1/tokens", child, "Idempotency-Key", "k1"); !strings.Contains(r.text, "DELETE /v1/tokens/"+keyed.ID) {
		t.Errorf("the repeated request: %s", r.text)
	}
	s.mustAs(a, http.StatusUnprocessableEntity, "POST", "/v1/tokens", `{"name": "other", "role": "viewer"}`, "Idempotency-Key", "k1")
	s.mustAs(keyed.Token, 200, "GET", group("a"), "")
	docs, _, err := s.store.All(t.Context(), "/", 0)
	if err != nil || len(docs) < 8 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	for _, d := range docs {
		for _, secret := range []string{a, b, s.operator, made.Token, keyed.Token} {
			if strings.Contains(string(d.Value), secret) || strings.Contains(d.Key, secret) {
				t.Errorf("a token is in %s", d.Key)
			}
		}
	}
}

// The rate limit is per tenant, as configured by the operator.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	s.must(200, "PUT", "/v1/tenants/a", `{"requests_per_second": 2}`)
	refused, began := 0, time.Now()
	for range 8 {
		if r := s.do(a, "GET", group("a"), ""); r.status == 429 {
			refused++
			if r.header.Get("Retry-After") == "" {
				t.Error("status 429 without Retry-After")
			}
		}
	}
	// A slow machine gives more time.
	if took := time.Since(began); refused < 3-int(2*took.Seconds()) {
		t.Errorf("%d of 8 requests were rejected at 2 requests/s in %v", refused, took)
	}
	// The limit applies to all tokens of the tenant together.
	s.must(200, "PUT", "/v1/tenants/a", `{}`)
	var tokens []string
	for range 8 {
		tokens = append(tokens, s.token(`{"name": "pa", "role": "tenant", "tenant": "a"}`))
	}
	s.must(200, "PUT", "/v1/tenants/a", `{"requests_per_second": 2}`)
	refused = 0
	began = time.Now()
	for _, token := range tokens {
		if s.do(token, "GET", group("a"), "").status == 429 {
			refused++
		}
	}
	if took := time.Since(began); refused < 3-int(2*took.Seconds()) {
		t.Errorf("%d of 8 requests with as many tokens were rejected at 2 requests/s in %v", refused, took)
	}
}

// The API is served only by TLS with the service's certificate authority.
func TestPlain(t *testing.T) {
	t.Parallel()
	s := start(t)
	got, err := http.Get(strings.Replace(s.url, "https", "http", 1) + "/v1/health")
	if err == nil {
		got.Body.Close()
		if got.StatusCode == 200 {
			t.Error("the API answers without TLS")
		}
	}
	other, err := pki.NewAuthority("other")
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: pki.Pinned("127.0.0.1", other.Hash())}}
	if got, err := c.Get(s.url + "/v1/health"); err == nil {
		got.Body.Close()
		t.Error("the pin of another authority is accepted")
	}
	r := s.must(200, "GET", "/v1/health", "")
	if !strings.Contains(r.text, `"writable":true`) {
		t.Errorf("the health is %s", r.text)
	}
}

// Answers conform to the specification, and a revision in the future is not a server error.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	spec, err := openapi3.NewLoader().LoadFromData(api.Specification())
	if err != nil {
		t.Fatal(err)
	}
	for path, schema := range map[string]string{
		"/v1/hosts/h1": "HostState", "/v1/hosts": "HostList", group("a"): "GroupState", "/v1/hosts/h1/interfaces/eth0/out/groups": "GroupList",
		"/v1/tenants/a": "Tenant", "/v1/tokens": "TokenList", "/v1/hosts/h1/interfaces": "InterfaceList",
	} {
		var answer any
		s.must(200, "GET", path, "").into(t, &answer)
		if spec.Components.Schemas[schema] == nil {
			t.Fatalf("there is no schema %s", schema)
		}
		if err := spec.Components.Schemas[schema].Value.VisitJSON(answer); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	s.mustAs(a, 200, "GET", group("a"), "")
	s.must(404, "GET", "/v1/hosts/h1/interfaces/eth0?revision=1000000000", "")
}
