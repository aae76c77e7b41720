package controller_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/store"
)

// both is an interface with groups of several tenants: a and b own a group in each direction, c one for
// a VLAN, d one for a port of this host, and e the default group. The group web in direction in is the
// operator's.
const both = `{"out": {"limit": "100Mbit", "groups": [
		{"name": "files", "guarantee": "1%", "match": [{"dst": ["10.9.0.0/16"]}]},
		{"name": "a", "guarantee": "40%", "tenant": "a", "match": [{"dst": ["10.1.0.0/16", "fd00:1::/32"]}], "groups": [
			{"name": "tcp", "match": [{"proto": ["tcp"], "dport": ["873"]}]}, {"name": "backup"}]},
		{"name": "b", "guarantee": "20%", "tenant": "b", "match": [{"dst": ["10.2.0.0/16"]}], "groups": [{"name": "web"}]},
		{"name": "web", "guarantee": "1%", "tenant": "a", "match": [{"dst": ["10.1.0.0/16"], "dport": ["80"]}]},
		{"name": "c", "tenant": "c", "match": [{"vlan": [7]}], "groups": [{"name": "x"}]},
		{"name": "d", "tenant": "d", "match": [{"sport": ["443"]}], "groups": [{"name": "x"}]},
		{"name": "rest", "tenant": "e", "default": true},
		{"name": "e", "tenant": "e", "match": [{"dst": ["10.5.0.0/16"]}]}]},
	"in": {"limit": "100Mbit", "groups": [
		{"name": "a", "guarantee": "40%", "tenant": "a", "match": [{"src": ["10.1.0.0/16", "fd00:1::/32"]}], "groups": [{"name": "backup"}]},
		{"name": "b", "tenant": "b", "match": [{"src": ["10.2.0.0/16"]}], "groups": [{"name": "web"}]},
		{"name": "web", "match": [{"sport": ["80"]}]},
		{"name": "rest", "default": true}]}}`

func (s *service) divided(t *testing.T) (tokens map[string]string) {
	t.Helper()
	a, b := s.twoTenants()
	tokens = map[string]string{"a": a, "b": b, "": s.operator}
	for _, name := range []string{"c", "d", "e"} {
		s.must(200, "PUT", "/v1/tenants/"+name, `{}`)
		tokens[name] = s.token(`{"name": "p", "role": "tenant", "tenant": "` + name + `"}`)
	}
	s.must(200, "PUT", "/v1/hosts/h1/interfaces/eth0", both)
	return tokens
}

func at(conn string) string {
	return "/v1/hosts/h1/interfaces/eth0/connections/" + url.PathEscape(conn)
}

// A tenant assigns only its own connections, as far as their addresses and ports show this, and only to
// its own groups in both directions.
func TestConnectionPermissions(t *testing.T) {
	t.Parallel()
	s := start(t)
	tokens := s.divided(t)
	for _, c := range []struct {
		by, conn, group, want string
		status                int
	}{
		{"a", "tcp 10.0.0.1:5000 10.1.0.9:873", "a/backup", `"group":"a/backup"`, 200},
		{"a", "tcp 10.1.0.9:874 10.0.0.1:5000", "a/backup", "", 200},          // no rule inside a, ends swapped
		{"a", "udp [fd00::1]:53 [fd00:1::2]:53", "a/backup", "", 200},         // IPv6
		{"a", "tcp 10.0.0.1:5001 10.1.0.9:80", "a/tcp", "", 200},              // web is a's, too
		{"a", "tcp 10.0.0.1:5000 10.2.0.9:873", "a/backup", "not match", 422}, // matches a group of b
		{"a", "tcp 10.0.0.1:5000 10.9.0.9:873", "a/backup", "not match", 422}, // matches a group of the operator
		{"a", "tcp 10.0.0.1:5000 10.8.0.9:873", "a/backup", "not match", 422}, // matches only the default group
		{"a", "udp [fd00::1]:53 [fd00:2::2]:53", "a/backup", "not match", 422},
		{"a", "tcp 10.0.0.1:5001 10.1.0.9:80", "web", "no leaf group", 422}, // in direction in the operator owns web
		{"a", "tcp 10.0.0.1:5001 10.1.0.9:80", "a", "no leaf group", 422},
		{"a", "tcp 10.0.0.1:5001 10.1.0.9:80", "b/web", "no leaf group", 422},
		{"b", "tcp 10.0.0.1:5000 10.2.0.9:81", "b/web", "", 200},          // matches b, but no rule inside b
		{"b", "tcp 10.0.0.1:5000 10.2.0.9:80", "b/web", "not match", 422}, // matches the operator's web in direction in
		{"c", "tcp 10.0.0.1:5000 10.3.0.9:80", "c/x", "at the socket of the host's agent", 422},
		{"d", "tcp 10.0.0.1:443 10.3.0.9:5000", "d/x", "", 200},
		{"d", "tcp 10.0.0.1:5000 10.2.0.9:443", "d/x", "not match", 422}, // matches d with ends swapped, and b
		{"d", "tcp 10.0.0.1:443 10.2.0.9:5000", "d/x", "not match", 422},
		{"e", "tcp 10.0.0.1:5000 10.8.0.9:80", "e", "", 200}, // matches e's default group
		{"e", "tcp 10.0.0.1:5000 10.2.0.8:80", "e", "not match", 422},
		{"", "tcp 10.0.0.1:5000 10.8.0.7:80", "a/backup", "", 200},
		{"", "tcp 10.0.0.1:5000 10.8.0.7:80", "a", "no leaf group", 422},
	} {
		r := s.do(tokens[c.by], "PUT", at(c.conn), `{"group": "`+c.group+`"}`)
		if r.status != c.status || !strings.Contains(r.text, c.want) {
			t.Errorf("%q assigns %s to %s: %d %s, want %d with %q", c.by, c.conn, c.group, r.status, r.text, c.status, c.want)
		}
	}
	// A connection that another caller assigned does not exist for a tenant.
	s.must(200, "PUT", at("tcp 10.0.0.1:6000 10.1.0.9:81"), `{"group": "a/backup"}`)
	none := s.mustAs(tokens["b"], 404, "DELETE", at("tcp 10.0.0.1:7000 10.1.0.9:81"), "")
	for _, by := range []string{"a", "b"} {
		is := s.mustAs(tokens[by], 404, "DELETE", at("tcp 10.0.0.1:6000 10.1.0.9:81"), "")
		if strings.ReplaceAll(is.text, "6000", "7000") != none.text {
			t.Errorf("the error is %s, want %s as for a missing connection", is.text, none.text)
		}
	}
	s.mustAs(tokens["a"], 404, "PUT", at("tcp 10.0.0.1:6000 10.1.0.9:81"), `{"group": "a/backup"}`)
	s.mustAs(tokens["a"], 412, "PUT", at("tcp 10.0.0.1:6000 10.1.0.9:81"), `{"group": "a/backup"}`, "If-Match", "*")
	s.must(200, "PUT", at("tcp 10.0.0.1:6000 10.1.0.9:81"), `{"group": "a/tcp"}`)
}

// Only a leaf group keeps its connections, and only while the tenant that assigned them owns it.
func TestConnectionsStay(t *testing.T) {
	t.Parallel()
	s := start(t)
	tokens := s.divided(t)
	patch := []string{"Content-Type", "application/merge-patch+json"}
	are := func(want ...string) {
		t.Helper()
		got := s.must(200, "GET", "/v1/hosts/h1/interfaces/eth0/connections", "").text
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("the connections are %s, want %v", got, want)
			}
		}
		if strings.Count(got, `"group"`) != len(want) {
			t.Errorf("the connections are %s, want %v", got, want)
		}
	}
	s.mustAs(tokens["a"], 200, "PUT", at("tcp 10.0.0.1:5000 10.1.0.9:873"), `{"group": "a/backup"}`)
	s.mustAs(tokens["a"], 200, "PUT", at("tcp 10.0.0.1:5001 10.1.0.9:873"), `{"group": "a/tcp"}`)
	s.mustAs(tokens["b"], 200, "PUT", at("tcp 10.0.0.1:5002 10.2.0.9:873"), `{"group": "b/web"}`)
	s.mustAs(tokens["a"], 200, "PUT", group("a/tcp/x"), `{}`)
	are("5000", "5002")
	s.mustAs(tokens["a"], 200, "PUT", group("a/backup/x"), `{}`)
	are("5000", "5002") // a/backup is still a leaf in the other direction
	for _, direction := range []string{"out", "in"} {
		s.must(200, "PATCH", strings.Replace(group("b"), "/out/", "/"+direction+"/", 1), `{"tenant": "c"}`, patch...)
	}
	are("5000")
}

// A tenant's quotas for connections, groups, rules, classifier entries, combinations and tokens.
func TestCaps(t *testing.T) {
	if testing.Short() {
		t.Skip("its clients wait seconds, and the race detector makes them wait longer")
	}
	t.Parallel()
	s := start(t)
	tokens := s.divided(t)
	a := tokens["a"]
	s.must(200, "PUT", "/v1/tenants/a", `{"requests_per_second": 10000}`)
	key := store.Key(store.Interfaces, "h1", "eth0")
	if _, err := s.store.Do(t.Context(), key, func(tx *store.Tx) error {
		var i store.Interface
		if _, _, err := tx.Get(key, &i); err != nil {
			return err
		}
		i.Connections = map[string]store.Connection{}
		for n := range 1024 {
			i.Connections["tcp 10.0.0.1:"+itoa(int64(n+1))+" 10.1.0.9:81"] = store.Connection{Group: "a/backup", Tenant: "a"}
		}
		return tx.Put(key, i)
	}); err != nil {
		t.Fatal(err)
	}
	tooMany := s.mustAs(a, 422, "PUT", at("tcp 10.0.0.1:5000 10.1.0.9:81"), `{"group": "a/backup"}`)
	if !strings.Contains(tooMany.text, "1024 assigned connections on eth0") {
		t.Errorf("connections above the quota: %s", tooMany.text)
	}
	s.mustAs(a, 200, "PUT", at("tcp 10.0.0.1:7 10.1.0.9:81"), `{"group": "a/tcp"}`) // already counted
	s.mustAs(tokens["b"], 200, "PUT", at("tcp 10.0.0.1:5000 10.2.0.9:81"), `{"group": "b/web"}`)
	s.mustAs(a, 204, "DELETE", at("tcp 10.0.0.1:8 10.1.0.9:81"), "")
	s.mustAs(a, 200, "PUT", at("tcp 10.0.0.1:5000 10.1.0.9:81"), `{"group": "a/backup"}`)

	many := func(n int, each string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(each+",", n), ",") + "]"
	}
	groups := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`,{"name": "g` + itoa(int64(i)) + `"}`)
		}
		return `{"groups": [` + b.String()[1:] + `]}`
	}
	// The tenant has a, a/tcp, a/backup and web.
	if r := s.mustAs(a, 422, "PUT", group("a/x"), groups(1020)); !strings.Contains(r.text, "more than 1024 groups on eth0 out") {
		t.Errorf("groups above the quota: %s", r.text)
	}
	s.mustAs(a, 200, "PUT", group("a/x"), groups(1019))
	s.mustAs(a, 422, "PUT", group("a/y"), `{}`)
	rule := `{"proto": ["tcp"], "dport": ["81"]}`
	if r := s.mustAs(a, 422, "PUT", group("a/x"), `{"match": `+many(2049, rule)+`}`); !strings.Contains(r.text, "more than 2048 rules") {
		t.Errorf("rules above the quota: %s", r.text)
	}
	s.mustAs(a, 200, "PUT", group("a/x"), `{"match": `+many(1000, rule)+`}`)
	var ports, lengths []string
	for n := range 300 {
		ports = append(ports, `"`+itoa(int64(n+1))+`"`)
		lengths = append(lengths, `"10.1.0.0/`+itoa(int64(16+n%17))+`"`)
	}
	all := strings.Join(ports, ",")
	if r := s.mustAs(a, 422, "PUT", group("a/x"), `{"match": [{"sport": [`+all+`], "dport": [`+all+`]}]}`); !strings.Contains(r.text, "more than 65536 classifier entries") {
		t.Errorf("classifier entries above the quota: %s", r.text)
	}
	if r := s.mustAs(a, 422, "PUT", group("a/x"), `{"match": [{"dst": [`+strings.Join(lengths[:17], ",")+`]}, {"dst": [`+strings.Join(lengths[:17], ",")+`], "proto": ["tcp"]}]}`); !strings.Contains(r.text, "more than 32 combinations") {
		t.Errorf("combinations above the quota: %s", r.text)
	}
	// Above the quota, which an operator may exceed, a tenant may only reduce the number.
	s.must(200, "PUT", group("a/x"), groups(1500))
	s.mustAs(a, 200, "PUT", group("a/x"), groups(1400))
	s.mustAs(a, 422, "PUT", group("a/x"), groups(1401))

	if _, err := s.store.Do(t.Context(), "tokens", func(tx *store.Tx) error {
		for n := range 79 {
			name := fmt.Sprint("more", n)
			if err := tx.Put(store.Key(store.Tokens, name), store.Token{ID: name, Name: "more", Role: store.TenantRole, Tenant: "a", Expires: time.Now().Add(time.Hour)}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	made := make(chan reply)
	for range 30 {
		go func() { made <- s.do(a, "POST", "/v1/tokens", `{"name": "more", "role": "tenant"}`) }()
	}
	got := map[int]int{}
	for range 30 {
		r := <-made
		got[r.status]++
		if r.status == 409 && !strings.Contains(r.text, "has 100 tokens") {
			t.Errorf("tokens above the quota: %s", r.text)
		}
	}
	if got[201] != 20 || got[409] != 10 {
		t.Errorf("statuses of 30 tokens in addition to 80: %v", got)
	}
	s.token(`{"name": "one", "role": "tenant", "tenant": "a"}`) // the quota does not apply to operators
}

// Which tenant may own a group.
func TestOwners(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.divided(t)
	for _, c := range []struct {
		method, path, body, want string
		status                   int
	}{
		{"PUT", group("x"), `{"tenant": "c"}`, "without match", 422},
		{"PUT", group("x"), `{"tenant": "c", "groups": [{"name": "y", "match": [{"dport": ["1"]}]}]}`, "without match", 422},
		{"PATCH", group("b"), `{"match": null}`, "without match", 422},
		{"PATCH", group("a/tcp"), `{"tenant": "b"}`, "its parent group belongs to tenant a", 422},
		{"PUT", group("a/y"), `{"tenant": "b", "match": [{"dport": ["1"]}]}`, "its parent group belongs to tenant a", 422},
		{"PUT", group("y"), `{"groups": [{"name": "z", "tenant": "b", "match": [{"dport": ["1"]}]}]}`, `"tenant":"b"`, 200},
		{"PATCH", group("y"), `{"tenant": "c", "match": [{"dport": ["1"]}]}`, "out/y/z cannot belong to tenant b", 422},
		{"PATCH", group("a/tcp"), `{"tenant": "a"}`, "", 200},
		{"PUT", "/v1/hosts/h1/interfaces/eth1", `{"out": {"limit": "1Mbit", "groups": [{"name": "x", "tenant": "c"}, {"name": "rest", "default": true}]}}`, "without match", 422},
		{"PUT", "/v1/hosts/h1/policy", `{"text": "kind: Interface\ndev: eth0\nout: {limit: 1Mbit, groups: [{name: b}, {name: rest, default: true}]}\n"}`, `"field":"text"`, 422},
	} {
		as := "application/json"
		if c.method == "PATCH" {
			as = "application/merge-patch+json"
		}
		r := s.do(s.operator, c.method, c.path, c.body, "Content-Type", as)
		if r.status != c.status || !strings.Contains(r.text, c.want) {
			t.Errorf("%s %s %s: %d %s, want %d with %q", c.method, c.path, c.body, r.status, r.text, c.status, c.want)
		}
	}
}
