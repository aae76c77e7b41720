package controller_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/controller"
)

// beside runs another controller on the same store. It knows the first controller and an unreachable
// one.
func (s *service) beside(t *testing.T) *service {
	t.Helper()
	c, err := controller.New(t.Context(), s.store, controller.Config{
		Name: "c2", API: "127.0.0.1:0", Agents: "127.0.0.1:0", Peers: []string{"127.0.0.1:1", strings.TrimPrefix(s.url, "https://")}, Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	out := *s
	at, _ := c.Addresses()
	out.url = "https://" + at
	return &out
}

// Every controller returns the data that only the controller of a host's agent has, to the clients that
// may see it.
func TestForward(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	h := s.connect(t.TempDir())
	h.Wait(t)
	other := s.beside(t)
	for n := 0; !strings.Contains(other.do(s.operator, "GET", "/v1/hosts/h1/rates", "").text, `"group":"a"`); n++ {
		if time.Sleep(50 * time.Millisecond); n > 100 {
			t.Fatalf("the rates are %+v", other.do(s.operator, "GET", "/v1/hosts/h1/rates", ""))
		}
	}
	if r := other.mustAs(a, 200, "GET", "/v1/hosts/h1/rates", ""); strings.Contains(r.text, `"group":"b"`) {
		t.Errorf("a tenant sees a group of another tenant: %s", r.text)
	}
	if r := other.must(200, "GET", "/v1/hosts/h1", ""); !strings.Contains(r.text, `"connected":true`) || r.tag != s.must(200, "GET", "/v1/hosts/h1", "").tag {
		t.Errorf("the host is %+v", r)
	}
	var p struct{ ID string }
	other.must(202, "POST", "/v1/hosts/h1/probes", `{"measure": "path", "peer": "10.0.0.9:4950"}`).into(t, &p)
	for n := 0; !strings.Contains(other.do(s.operator, "GET", "/v1/hosts/h1/probes/"+p.ID, "").text, "10.0.0.9"); n++ {
		if time.Sleep(50 * time.Millisecond); n > 100 {
			t.Fatalf("the measurement is %+v", other.do(s.operator, "GET", "/v1/hosts/h1/probes/"+p.ID, ""))
		}
	}
	s.must(200, "PUT", "/v1/hosts/h1/collectives/db", `{"document": "kind: Collective\nname: db\njoin: root\n"}`)
	if r := other.must(200, "GET", "/v1/hosts/h1/collective-states", ""); !strings.Contains(r.text, `"controlling":true`) {
		t.Errorf("the connection sets are %s", r.text)
	}
	if r := other.must(200, "GET", "/v1/hosts/h1/relays", ""); !strings.Contains(r.text, `"agent":"east"`) || !strings.Contains(r.text, `"omitted":{"connections":6}`) || !strings.Contains(r.text, `"error":"relay agent west: no answer"`) {
		t.Errorf("the relay agents are %s", r.text)
	}
	if r := other.must(200, "GET", "/v1/hosts/h1/relays/east/ended", ""); !strings.Contains(r.text, `"state":"ended"`) {
		t.Errorf("the ended connections are %s", r.text)
	}
	if r := s.must(409, "GET", "/v1/hosts/h1/relays/west/ended", ""); !strings.Contains(r.text, "relay agent west is not running on this host") {
		t.Errorf("the ended connections of another relay agent are %s", r.text)
	}
	other.must(404, "GET", "/v1/hosts/h9/relays", "")
	other.mustAs(a, 403, "POST", "/v1/hosts/h1/probes", `{"measure": "path", "peer": "10.0.0.9:4950"}`)
	other.must(400, "POST", "/v1/hosts/h1/probes", `{"measure": "path"}`)
	other.mustAs("", 401, "GET", "/v1/hosts/h1/rates", "")

	s.must(200, "PUT", "/v1/hosts/h2", `{}`)
	s.must(200, "PUT", "/v1/hosts/h2/interfaces/eth0", `{"out": {"limit": "1Mbit", "groups": [{"name": "all", "default": true}]}}`)
	if r := other.must(200, "GET", "/v1/usage?since=2026-01-01T00:00:00Z", ""); !strings.Contains(r.text, `"delivered_bytes":7`) || !strings.Contains(r.text, `"missing":["h2"]`) {
		t.Errorf("the usage records are %s", r.text)
	}
	var hosts struct {
		Items []struct {
			Name      string
			Connected bool
		}
	}
	if other.must(200, "GET", "/v1/hosts", "").into(t, &hosts); len(hosts.Items) != 2 || !hosts.Items[0].Connected || hosts.Items[1].Connected {
		t.Errorf("the hosts are %+v", hosts)
	}
	other.must(400, "GET", "/v1/usage", "")

	h.Stop()
	for n := 0; other.do(s.operator, "GET", "/v1/hosts/h1/rates", "").status != 404; n++ {
		if time.Sleep(50 * time.Millisecond); n > 100 {
			t.Fatal("a disconnected agent has rates")
		}
	}
	for _, path := range []string{"/v1/hosts/h1", "/v1/hosts/h1/relays"} {
		if r := other.must(200, "GET", path, ""); !strings.Contains(r.text, `"connected":false`) {
			t.Errorf("%s is %+v", path, r)
		}
	}
	other.must(409, "GET", "/v1/hosts/h1/relays/east/ended", "")
}
