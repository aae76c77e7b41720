package controller_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/controller/controllertest"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// A tenant divides its own groups and sees their unallocated bandwidth. It cannot change or see groups
// of other tenants.
func TestTenant(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.twoTenants()
	var g struct {
		Path           string
		GuaranteedBps  int `json:"guaranteed_bps"`
		CeilingBps     int `json:"ceiling_bps"`
		UnallocatedBps int `json:"unallocated_bps"`
	}
	s.mustAs(a, 200, "GET", group("a"), "").into(t, &g)
	if g.Path != "a" || g.GuaranteedBps != 40e6 || g.CeilingBps != 80e6 || g.UnallocatedBps != 40e6 {
		t.Errorf("the group a is %+v", g)
	}
	s.mustAs(a, 200, "PUT", group("a/web"), `{"guarantee": "30Mbit", "match": [{"proto": ["tcp"], "sport": ["443"]}]}`)
	s.mustAs(a, 200, "PUT", group("a/rest"), `{"default": true}`)
	s.mustAs(a, 200, "GET", group("a"), "").into(t, &g)
	if g.UnallocatedBps != 10e6 {
		t.Errorf("unallocated are %d bit/s, want 10 Mbit/s: 30 of 40 Mbit/s are guaranteed to a child group", g.UnallocatedBps)
	}
	over := s.mustAs(a, 422, "PUT", group("a/more"), `{"guarantee": "11Mbit", "match": [{"dst": ["10.1.1.0/24"]}]}`)
	if !strings.Contains(over.text, "41Mbit of group") || strings.Contains(over.text, `"b`) || strings.Contains(over.text, "groups[") {
		t.Errorf("the error of guarantees above the parent's is %s", over.text)
	}
	s.mustAs(a, 200, "PUT", group("a/more"), `{"guarantee": "10Mbit", "match": [{"dst": ["10.1.1.0/24"]}]}`)
	for _, path := range []string{"b", "rest", "b/x", "none"} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			body := ""
			if method == "PUT" {
				body = `{}`
			}
			if r := s.do(a, method, group(path), body); r.status != 404 {
				t.Errorf("%s %s: %d %s, want 404", method, path, r.status, r.text)
			}
		}
	}
	for what, r := range map[string]reply{
		"a change of its guarantee": s.do(a, "PATCH", group("a"), `{"guarantee": "60%"}`, "Content-Type", "application/merge-patch+json"),
		"a tenant of a child group": s.do(a, "PUT", group("a/x"), `{"tenant": "b"}`),
	} {
		if r.status != 403 {
			t.Errorf("%s: %d %s, want 403", what, r.status, r.text)
		}
	}
	if seen := s.mustAs(b, 200, "GET", "/v1/hosts/h1/interfaces/eth0", "").text; strings.Contains(seen, "web") || strings.Contains(seen, "rest") || !strings.Contains(seen, `"limit":"100Mbit"`) {
		t.Errorf("b sees %s", seen)
	}
	var list struct{ Items []struct{ Path string } }
	s.mustAs(a, 200, "GET", "/v1/hosts/h1/interfaces/eth0/out/groups", "").into(t, &list)
	if len(list.Items) != 4 || list.Items[0].Path != "a" {
		t.Errorf("a lists %+v", list)
	}

	// The list of a tenant's groups has those from the operator on all hosts, without their child groups.
	s.must(200, "PUT", "/v1/hosts/h0", `{}`)
	s.must(200, "PUT", "/v1/hosts/h0/interfaces/eth1", `{"in": {"limit": "10Mbit", "groups": [{"name": "rest", "default": true, "tenant": "a"}]}}`)
	for _, token := range []string{a, s.operator} {
		for query, want := range map[string]string{"": "[{h0 eth1 in rest 0 10000000 0} {h1 eth0 out a 40000000 80000000 0}]", "?limit=1": "[{h0 eth1 in rest 0 10000000 0}]"} {
			var given struct {
				Items []struct {
					Host, Dev, Direction, Group string
					GuaranteedBps               int `json:"guaranteed_bps"`
					CeilingBps                  int `json:"ceiling_bps"`
					UnallocatedBps              int `json:"unallocated_bps"`
				}
				Next string
			}
			s.mustAs(token, 200, "GET", "/v1/tenants/a/groups"+query, "").into(t, &given)
			if fmt.Sprint(given.Items) != want || (given.Next != "") != (query != "") {
				t.Errorf("%s: the groups of a are %+v", query, given)
			}
		}
	}
	s.mustAs(b, 404, "GET", "/v1/tenants/a/groups", "")
	s.must(404, "GET", "/v1/tenants/none/groups", "")
}

// Idempotency keys, preconditions and dry runs.
func TestOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	s.mustAs(a, 200, "PUT", group("a/rest"), `{"default": true}`)
	web := `{"guarantee": "5Mbit", "match": [{"sport": ["80"]}]}`
	if r := s.mustAs(a, 200, "PUT", group("a/web"), web, "Idempotency-Key", "k1"); r.tag == "" {
		t.Error("a group has no ETag")
	}
	s.mustAs(a, 204, "DELETE", group("a/web"), "")
	again := s.mustAs(a, 200, "PUT", group("a/web"), web, "Idempotency-Key", "k1")
	s.mustAs(a, 404, "GET", group("a/web"), "")
	s.mustAs(a, 422, "PUT", group("a/other"), web, "Idempotency-Key", "k1")
	s.mustAs(a, 200, "PUT", group("a/web"), web, "Idempotency-Key", "k2")

	patch := []string{"Content-Type", "application/merge-patch+json"}
	s.mustAs(a, 412, "PATCH", group("a/web"), `{"guarantee": "6Mbit"}`, append(patch, "If-Match", `"0"`)...)
	r := s.mustAs(a, 200, "PATCH", group("a/web"), `{"guarantee": "6Mbit"}`, append(patch, "If-Match", again.tag)...)
	if r.tag == again.tag || !strings.Contains(r.text, `"guaranteed_bps":6000000`) || !strings.Contains(r.text, `"sport":["80"]`) {
		t.Errorf("a patch returns %s %s", r.tag, r.text)
	}
	s.mustAs(a, 412, "PATCH", group("a/web"), `{"guarantee": "7Mbit"}`, append(patch, "If-Match", again.tag)...)
	s.mustAs(a, 412, "PUT", group("a/none"), web, "If-Match", "*")

	var now reply
	for _, yes := range []string{"true", "1", "t", "T", "TRUE", "True"} {
		dry := s.mustAs(a, 200, "PATCH", group("a/web")+"?dry_run="+yes, `{"guarantee": "8Mbit"}`, patch...)
		now = s.mustAs(a, 200, "GET", group("a/web"), "")
		if !strings.Contains(dry.text, `"guaranteed_bps":8000000`) || !strings.Contains(now.text, `"guaranteed_bps":6000000`) {
			t.Errorf("dry run (%s): the answer is %s, the group afterwards %s", yes, dry.text, now.text)
		}
	}
	for _, neither := range []string{"?dry_run=", "?dry_run", "?dry_run=yes", "?dry_run=0&dry_run=1"} {
		s.mustAs(a, 400, "PATCH", group("a/web")+neither, `{"guarantee": "8Mbit"}`, patch...)
	}
	if r := s.do(a, "GET", group("a/web"), "", "If-None-Match", now.tag); r.status != 304 {
		t.Errorf("If-None-Match without a change: %d", r.status)
	}
}

// Only the operator changes join of a group that a tenant got from the operator; the tenant changes
// join of its child groups.
func TestJoin(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	patch := []string{"Content-Type", "application/merge-patch+json"}
	s.mustAs(a, 200, "PUT", group("a/rest"), `{"default": true, "join": ["shop", "1001"]}`)
	for _, c := range []struct {
		token, path, body, want string
		status                  int
	}{
		{a, "a/rest", `{"guarantee": "1Mbit"}`, `"join":["shop","1001"]`, 200},
		{a, "a/rest", `{"join": ["x"]}`, `"join":["x"]`, 200},
		{a, "a/rest", `{"join": ["two words"]}`, `"field":"join[0]"`, 422},
		{a, "a/rest", `{"join": null}`, `"default":true,"path"`, 200},
		{a, "a", `{"join": ["x"]}`, "can only be changed by an operator", 403},
		{s.operator, "a", `{"join": ["x"]}`, `"join":["x"]`, 200},
	} {
		if r := s.do(c.token, "PATCH", group(c.path), c.body, patch...); r.status != c.status || !strings.Contains(r.text, c.want) {
			t.Errorf("%s %s: %d %s, want %d with %q", c.path, c.body, r.status, r.text, c.status, c.want)
		}
	}
	policy := s.must(200, "GET", "/v1/hosts/h1/policy", "")
	if !strings.Contains(policy.text, "join: [x]") {
		t.Errorf("the policy is %s", policy.text)
	}
}

// Rules with ranges, masks and exclusions are returned unchanged, and an error in one names its cause.
func TestSelectors(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.must(200, "PUT", "/v1/hosts/h9", `{}`)
	rule := `{"dscp":["8-15","af11-af13"],"vlan":[5,"100-199"],"pcp":["5-7",0],"mark":[7,"0x4000/0xff00"],"smac":["aa:bb:cc:00:00:00/ff:ff:ff:00:00:00"],"not":{"dst":["10.0.0.0/8"],"vlan":[101]}}`
	body := func(rule string) string {
		return `{"out": {"limit": "10Mbit", "groups": [{"name": "web", "match": [` + rule + `]}, {"name": "rest", "default": true}]}}`
	}
	s.must(200, "PUT", "/v1/hosts/h9/interfaces/eth0", body(rule))
	if got := s.must(200, "GET", "/v1/hosts/h9/interfaces/eth0", "").text; !strings.Contains(got, rule) {
		t.Errorf("the rule %s is returned as %s", rule, got)
	}
	for rule, want := range map[string]string{
		`{"vlan": ["9-5"]}`: "9-5", `{"mark": ["0x4100/0xf000"]}`: "0x4000/0xf000", `{"pcp": [8]}`: "802.1p", `{"smac": ["x"]}`: "MAC address",
		`{"not": {}}`: "not", `{"not": {"not": {"vlan": [5]}}}`: "not", `{"proto": ["tcp"], "not": {"proto": ["tcp"]}}`: "never match",
	} {
		r := s.do(s.operator, "PUT", "/v1/hosts/h9/interfaces/eth1", body(rule))
		if r.status != 422 && r.status != 400 || !strings.Contains(r.text, want) {
			t.Errorf("%s: %d %s; want %q", rule, r.status, r.text, want)
		}
	}
}

// Errors name the invalid fields of a request.
func TestInvalid(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.twoTenants()
	for _, c := range []struct {
		method, path, body, want string
		status                   int
	}{
		{"PUT", group("x"), `{"guarantee": 5}`, `"field":"guarantee"`, 400},
		{"PUT", group("x"), `{"guaranty": "5Mbit"}`, "guaranty", 400},
		{"PUT", group("x"), `{`, "errors", 400},
		{"PUT", group("a/b/c/d"), `{}`, `"field":"group"`, 400},
		{"PUT", "/v1/hosts/h1/interfaces/eth0/up/groups/x", `{}`, "direction", 400},
		{"PUT", "/v1/hosts/h1/interfaces/eth1", `{"out": {"limit": "100", "groups": []}}`, "out.limit", 422},
		{"PUT", "/v1/hosts/h1/interfaces/eth1", `{"out": {"limit": "100Mbit", "groups": [{"name": "a", "guarantee": "110Mbit", "default": true}]}}`, "out.groups", 422},
		{"PUT", "/v1/hosts/h1/interfaces/eth1", strings.ReplaceAll(shared, `"tenant": "b"`, `"tenant": "c"`), "tenant c does not exist", 422},
		{"PUT", "/v1/hosts/h2/interfaces/eth0", shared, "not found", 404},
		{"GET", "/v1/nothing", "", "path /v1/nothing not found", 404},
		{"POST", "/v1/tokens", `{"name": "x", "role": "tenant"}`, "the role tenant requires a tenant", 422},
		{"POST", "/v1/tokens", `{"name": "x", "role": "king"}`, "role", 400},
		{"DELETE", "/v1/tenants/a", "", "owns groups on h1/eth0", 409},
		{"DELETE", "/v1/hosts/h1", "", "delete it first", 409},
		{"GET", "/v1/tenants?limit=0", "", "limit", 400},
		{"GET", "/v1/tenants?after=%21", "", "after", 400},
	} {
		r := s.do(s.operator, c.method, c.path, c.body)
		if r.status != c.status || !strings.Contains(r.text, c.want) || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s %s: %d %s, want %d with %q", c.method, c.path, c.body, r.status, r.text, c.status, c.want)
		}
	}
}

// An interface can be rolled back to an earlier revision, and its history has the author of each
// change.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	first := s.must(200, "GET", "/v1/hosts/h1/interfaces/eth0", "")
	s.mustAs(a, 200, "PUT", group("a/rest"), `{"default": true}`)
	s.must(204, "DELETE", group("b"), "")
	var h struct {
		Items []struct {
			Request, Principal string
			Revision           int64
			Differences        []struct{ Field, Before, After string }
		}
	}
	s.must(200, "GET", "/v1/hosts/h1/interfaces/eth0/history", "").into(t, &h)
	if len(h.Items) != 3 || h.Items[0].Principal != "first" || h.Items[1].Principal != "pa" || !strings.HasPrefix(h.Items[2].Request, "PUT ") {
		t.Fatalf("the history is %+v", h)
	}
	if d := h.Items[1].Differences; len(d) != 2 || d[0].Field != "out.groups.a.groups.rest.default" || d[0].Before != "" || d[0].After != "true" {
		t.Errorf("a tenant's change has changed %+v", d)
	}
	was := s.must(200, "GET", "/v1/hosts/h1/interfaces/eth0?revision="+itoa(h.Items[2].Revision), "")
	if was.text != first.text {
		t.Errorf("at the first revision the interface is %s", was.text)
	}
	s.must(200, "POST", "/v1/hosts/h1/interfaces/eth0/rollback", `{"revision": `+itoa(h.Items[2].Revision)+`}`)
	if now := s.must(200, "GET", "/v1/hosts/h1/interfaces/eth0", ""); now.text != first.text {
		t.Errorf("after the rollback the interface is %s", now.text)
	}
	s.mustAs(a, 404, "GET", group("a/rest"), "")

	// A rollback keeps the current connections.
	conn := func(port string) string {
		return "/v1/hosts/h1/interfaces/eth0/connections/tcp%2010.0.0.1:" + port + "%2010.1.0.2:55000"
	}
	s.mustAs(a, 200, "PUT", conn("443"), `{"group": "a"}`)
	s.must(200, "GET", "/v1/hosts/h1/interfaces/eth0/history?limit=1", "").into(t, &h)
	s.mustAs(a, 204, "DELETE", conn("443"), "")
	s.mustAs(a, 200, "PUT", conn("444"), `{"group": "a"}`)
	s.must(200, "POST", "/v1/hosts/h1/interfaces/eth0/rollback", `{"revision": `+itoa(h.Items[0].Revision)+`}`)
	if now := s.must(200, "GET", "/v1/hosts/h1/interfaces/eth0/connections", ""); strings.Contains(now.text, ":443") || !strings.Contains(now.text, ":444") {
		t.Errorf("after the rollback the connections are %s", now.text)
	}

	// A policy file changes only the devices that it names.
	s.must(200, "PUT", "/v1/hosts/h1/policy", `{"text": "kind: Interface\ndev: eth1\nout: {limit: 1Mbit, groups: [{name: all, default: true}]}\n"}`)
	count := func(dev string, want int) {
		t.Helper()
		s.must(200, "GET", "/v1/hosts/h1/interfaces/"+dev+"/history", "").into(t, &h)
		if len(h.Items) != want {
			t.Errorf("the history of %s is %+v", dev, h)
		}
	}
	count("eth0", 8)
	count("eth1", 1)
	// A rollback restores a deleted interface.
	made := h.Items[0].Revision
	s.must(204, "DELETE", "/v1/hosts/h1/interfaces/eth1", "")
	count("eth1", 2)
	s.must(200, "POST", "/v1/hosts/h1/interfaces/eth1/rollback", `{"revision": `+itoa(made)+`}`)
	s.must(200, "GET", "/v1/hosts/h1/interfaces/eth1", "")
	s.must(404, "GET", "/v1/hosts/h1/interfaces/eth2/history", "")
	// A rollback fails after the host was deleted.
	s.must(204, "DELETE", "/v1/hosts/h1/interfaces/eth0", "")
	s.must(204, "DELETE", "/v1/hosts/h1/interfaces/eth1", "")
	s.must(204, "DELETE", "/v1/hosts/h1", "")
	s.must(404, "POST", "/v1/hosts/h1/interfaces/eth1/rollback", `{"revision": `+itoa(made)+`}`)
}

// A host's ETag is that of its configuration, which If-Match compares.
func TestHostTag(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.must(200, "PUT", "/v1/hosts/h1", `{"description": "one"}`)
	seen := s.must(200, "GET", "/v1/hosts/h1", "")
	s.must(200, "PUT", "/v1/hosts/h1", `{"description": "two"}`, "If-Match", seen.tag)
	s.must(412, "PUT", "/v1/hosts/h1", `{"description": "three"}`, "If-Match", seen.tag)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Groups leave what reservations have of an interface.
func TestGroupsLeaveReserved(t *testing.T) {
	t.Parallel()
	before := storetest.Open(t, storetest.Start(t))
	reserve := func(host string, outBps uint64, until int64) {
		t.Helper()
		if _, err := before.Do(t.Context(), "x", func(tx *store.Tx) error {
			return tx.Put(store.ReservedKey(host, "eth0"), store.Reserved{OutBps: outBps, Until: until})
		}); err != nil {
			t.Fatal(err)
		}
	}
	// The leader reads what is reserved once, and deletes what no reservation has: what is written after that stays.
	reserve("gone", 1, 1<<40)
	s := startOn(t, before, controllertest.Config(), nil)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, there, err := before.Get(t.Context(), store.ReservedKey("gone", "eth0"), 0); err != nil || time.Now().After(end) {
			t.Fatalf("what is reserved of a host without reservations is not deleted within 20 s: %v", err)
		} else if !there {
			break
		}
	}
	s.must(200, "PUT", "/v1/hosts/h1", `{}`)
	eth0 := func(limit, guarantee string) string {
		return fmt.Sprintf(`{"out": {"limit": %q, "groups": [{"name": "a", "guarantee": %q}, {"name": "rest", "default": true}]}}`, limit, guarantee)
	}
	const at = "/v1/hosts/h1/interfaces/eth0"
	s.must(200, "PUT", at, eth0("100Mbit", "50Mbit"))
	reserve("h1", 40e6, 1<<40)
	if r := s.must(422, "PUT", at, eth0("100Mbit", "70Mbit")); !strings.Contains(r.text, "out.groups: guarantees total 70Mbit of 100Mbit, of which reservations have 40Mbit: lower them to 60Mbit or less") {
		t.Errorf("%s", r.text)
	}
	s.must(422, "PUT", at, eth0("80Mbit", "50Mbit"))
	s.must(422, "PATCH", at+"/out/groups/a", `{"guarantee": "61Mbit"}`, "Content-Type", "application/merge-patch+json")
	s.must(200, "PUT", at, eth0("100Mbit", "60Mbit"))
	// What is too much already can be reduced.
	reserve("h1", 70e6, 1<<40)
	s.must(200, "PUT", at, eth0("100Mbit", "50Mbit"))
	s.must(422, "PUT", at, eth0("100Mbit", "55Mbit"))
	// What has ended is not counted, whoever forgot it.
	reserve("h1", 70e6, 1)
	s.must(200, "PUT", at, eth0("100Mbit", "90Mbit"))
}
