package controller_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/controller/controllertest"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main()
	os.Exit(m.Run())
}

// service is a running controller with its store.
type service struct {
	t        testing.TB
	url, pin string
	agents   string
	openflow string
	operator string
	store    *store.Store
	member   *storetest.Member
	client   *http.Client
	stop     func()
}

func start(t testing.TB) *service {
	t.Helper()
	member := storetest.Start(t)
	s := storetest.Open(t, member)
	out := startOn(t, s, controllertest.Config(), nil)
	out.member = member
	return out
}

// startOn runs a controller on a store. before, if not nil, is called before the controller starts to serve.
func startOn(t testing.TB, s *store.Store, config controller.Config, before func()) *service {
	t.Helper()
	c := controllertest.Run(t, s, config, before)
	return &service{t: t, url: c.URL, pin: c.Pin, agents: c.Agents, openflow: c.OpenFlow, operator: c.Operator, store: c.Store, client: c.Client, stop: c.Stop}
}

// reply is the answer to a request.
type reply struct {
	status int
	tag    string
	header http.Header
	text   string
}

func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.text), v); err != nil {
		t.Fatalf("%q: %v", r.text, err)
	}
}

// do sends a request; headers are pairs of a name and a value.
func (s *service) do(token, method, path, body string, headers ...string) reply {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, bytes.NewBufferString(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{got.StatusCode, got.Header.Get("ETag"), got.Header, strings.TrimSpace(string(text))}
}

// must sends a request as the operator and requires a status.
func (s *service) must(status int, method, path, body string, headers ...string) reply {
	s.t.Helper()
	return s.mustAs(s.operator, status, method, path, body, headers...)
}

func (s *service) mustAs(token string, status int, method, path, body string, headers ...string) reply {
	s.t.Helper()
	r := s.do(token, method, path, body, headers...)
	if r.status != status {
		s.t.Fatalf("%s %s: %d %s, want %d", method, path, r.status, r.text, status)
	}
	return r
}

// token creates a token.
func (s *service) token(body string) string {
	s.t.Helper()
	var made struct{ Token string }
	s.must(http.StatusCreated, "POST", "/v1/tokens", body).into(s.t, &made)
	return made.Token
}

// shared is an interface with groups of two tenants: a is guaranteed 40 of 100 Mbit/s, b 20.
const shared = `{"out": {"limit": "100Mbit", "groups": [
	{"name": "a", "guarantee": "40%", "ceiling": "80%", "tenant": "a", "match": [{"dst": ["10.1.0.0/16"]}]},
	{"name": "b", "guarantee": "20%", "tenant": "b", "match": [{"dst": ["10.2.0.0/16"]}]},
	{"name": "rest", "guarantee": "10%", "default": true}]}}`

// twoTenants creates the tenants a and b with groups on the host h1, and returns a token of each.
func (s *service) twoTenants() (a, b string) {
	s.t.Helper()
	s.must(200, "PUT", "/v1/tenants/a", `{}`)
	s.must(200, "PUT", "/v1/tenants/b", `{"description": "the other"}`)
	s.must(200, "PUT", "/v1/hosts/h1", `{}`)
	s.must(200, "PUT", "/v1/hosts/h1/interfaces/eth0", shared)
	return s.token(`{"name": "pa", "role": "tenant", "tenant": "a"}`), s.token(`{"name": "pb", "role": "tenant", "tenant": "b"}`)
}

// group returns the path of a group of h1's eth0.
func group(path string) string {
	return "/v1/hosts/h1/interfaces/eth0/out/groups/" + url.PathEscape(path)
}
