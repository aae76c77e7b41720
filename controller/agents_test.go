package controller_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/controller/controllertest"
)

// host is an agent that enforces nothing.
type host = controllertest.Agent

// connect joins as h1, unless dir already has an identity, and runs an agent. others change the agent
// before it connects.
func (s *service) connect(dir string, others ...func(*host)) *host {
	s.t.Helper()
	if _, err := remote.ReadIdentity(dir); errors.Is(err, remote.ErrNotJoined) {
		token := s.token(`{"name": "join", "role": "agent", "host": "h1"}`)
		if err := remote.Join(s.t.Context(), dir, remote.Controller{URL: s.url, Host: "h1", Token: token, Pin: s.pin}); err != nil {
			s.t.Fatal(err)
		}
		if err := remote.Join(s.t.Context(), s.t.TempDir(), remote.Controller{URL: s.url, Host: "h1", Token: token, Pin: s.pin}); err == nil {
			s.t.Error("a join token is accepted twice")
		}
	}
	return controllertest.Connect(s.t, dir, others...)
}

// A document for an alternative name or a pattern applies to the device that the agent reports by the
// kernel's name: its limits, group owners, usage records and errors.
func TestAgentByAnotherName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", 31) + "est" // the kernel's maximum length
	for _, name := range []string{"enp0s3", "en*", long} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			a, _ := s.twoTenants()
			s.must(204, "DELETE", "/v1/hosts/h1/interfaces/eth0", "")
			s.must(200, "PUT", "/v1/hosts/h1/interfaces/"+name, shared)
			h := s.connect(t.TempDir(), func(h *host) {
				h.Facts = func() *agents.Facts {
					return &agents.Facts{Devices: []*agents.Device{{Name: "eth0", Up: true, Altnames: []string{"enp0s3", long}}}}
				}
			})
			h.Wait(t)
			h.SetApplied(h.DesiredState.Fence(), map[string]string{name: "an error"})
			for n := 0; n < 200 && !strings.Contains(s.do(s.operator, "GET", "/v1/hosts/h1/rates", "").text, `"group":"a"`); n++ {
				time.Sleep(50 * time.Millisecond)
			}
			for _, c := range []struct{ token, path, has string }{
				{s.operator, "/v1/overview?host=h1", `"limit_bps":100000000`},
				{s.operator, "/v1/hosts/h1/rates?dev=enp0s3", `"group":"b"`},
				{a, "/v1/hosts/h1/rates", `"group":"a"`},
				{a, "/v1/hosts/h1/rates?group=-", `"altnames":["enp0s3",`},
				{a, "/v1/usage?since=2026-01-01T00:00:00Z", `"delivered_bytes":7`},
			} {
				if r := s.mustAs(c.token, 200, "GET", c.path, ""); !strings.Contains(r.text, c.has) {
					t.Errorf("%s returns %s, want %s", c.path, r.text, c.has)
				}
			}
			if r := s.mustAs(a, 200, "GET", "/v1/hosts/h1/rates", ""); strings.Contains(r.text, `"group":"b"`) {
				t.Errorf("a tenant sees a group of another tenant: %s", r.text)
			}
			errs := map[string]string{"enp0s3": "eth0 true", long: "eth0 true", "en*": "en* false"} // a pattern's error is not shown at a device
			var is api.HostState
			s.must(200, "GET", "/v1/hosts/h1", "").into(t, &is)
			for _, d := range *is.Devices {
				if d.Error != nil {
					if got := fmt.Sprint(d.Name, " ", d.Up != nil); got != errs[name] {
						t.Errorf("the error is shown at %s, want %s", got, errs[name])
					}
					delete(errs, name)
				}
			}
			if len(errs) != 2 {
				t.Errorf("the error is missing: %+v", is.Devices)
			}
		})
	}
}

// An agent receives the desired state of its host and its changes. Its reports are visible to the
// clients that may see them. The agent of a revoked host, or one that another agent has replaced,
// receives nothing.
func TestAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	dir := t.TempDir()
	h := s.connect(dir)
	h.Wait(t)
	all, errs := h.DesiredState.Interfaces()
	if len(all) != 1 || len(errs) != 0 || all[0].Dev != "eth0" || len(all[0].OutTree.Nodes) != 3 {
		t.Fatalf("the desired state is %+v, %v", all, errs)
	}
	before := h.DesiredState.Fence()
	s.mustAs(a, 200, "PUT", group("a/rest"), `{"default": true}`)
	h.Wait(t)
	all, _ = h.DesiredState.Interfaces()
	if len(all[0].OutTree.Nodes) != 4 || h.DesiredState.Fence().Revision <= before.Revision {
		t.Errorf("after the change the desired state is %+v", all[0].OutTree.Nodes)
	}
	s.mustAs(a, 200, "PUT", "/v1/hosts/h1/interfaces/eth0/connections/tcp%2010.1.0.2:55000%2010.0.0.1:443", `{"group": "a/rest"}`)
	h.Wait(t)
	if all, _ = h.DesiredState.Interfaces(); all[0].Connections["tcp 10.0.0.1:443 10.1.0.2:55000"].Group != "a/rest" {
		t.Errorf("the connections are %+v", all[0].Connections)
	}

	// An earlier revision is rejected.
	if _, err := h.DesiredState.Store(&agents.Desired{Fence: before}); !errors.Is(err, remote.ErrStale) {
		t.Errorf("an earlier revision: %v", err)
	}

	h.SetApplied(h.DesiredState.Fence(), map[string]string{"eth0": "an error"})
	toldAs := func(token, path, want string) {
		t.Helper()
		var r reply
		for range 100 {
			r = s.do(token, "GET", path, "")
			if strings.Contains(r.text, want) {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("%s returns %s, want %s", path, r.text, want)
	}
	told := func(path, want string) {
		t.Helper()
		toldAs(a, path, want)
	}
	toldAs(s.operator, "/v1/hosts/h1", `"error":"an error"`)
	toldAs(s.operator, "/v1/hosts/h1", `"altnames":["enp0s3"]`)
	told("/v1/hosts/h1/rates", `"group":"a"`)
	told("/v1/hosts/h1/rates", `"delivered_bytes":`)
	told("/v1/hosts/h1/rates", `"queue_delay_ns":240000`)
	if r := s.mustAs(a, 200, "GET", "/v1/hosts/h1/rates", ""); strings.Contains(r.text, `"group":"b"`) {
		t.Errorf("a tenant sees a group of another tenant: %s", r.text)
	}
	if r := s.must(200, "GET", "/v1/hosts/h1/rates?group=b", ""); strings.Contains(r.text, "queue_delay_ns") {
		t.Errorf("a group without traffic has a queue delay: %s", r.text)
	}
	told("/v1/usage?since=2026-01-01T00:00:00Z", `"delivered_bytes":7`)

	// A repeated request is measured once, and a dry run not at all.
	s.must(202, "POST", "/v1/hosts/h1/probes?dry_run=true", `{"measure": "path", "peer": "10.0.0.9:1"}`)
	var asked, repeat struct{ ID string }
	for _, p := range []*struct{ ID string }{&asked, &repeat} {
		s.must(202, "POST", "/v1/hosts/h1/probes", `{"measure": "path", "peer": "10.0.0.9:2"}`, "Idempotency-Key", "once").into(t, p)
	}
	s.must(202, "POST", "/v1/hosts/h1/probes", `{"measure": "path", "peer": "10.0.0.9:3"}`)
	if one, other := <-h.Probed, <-h.Probed; asked != repeat || one+other != "10.0.0.9:210.0.0.9:3" && one+other != "10.0.0.9:310.0.0.9:2" {
		t.Errorf("the measured peers are %s and %s", one, other)
	}

	// After a restart the agent has its stored state, and receives only changes.
	h.Stop()
	again := s.connect(dir)
	if all, _ = again.DesiredState.Interfaces(); len(all) != 1 {
		t.Fatalf("after a restart the desired state is %+v", all)
	}
	s.must(204, "DELETE", "/v1/hosts/h1/interfaces/eth0", "")
	again.Wait(t)
	if all, _ = again.DesiredState.Interfaces(); len(all) != 0 {
		t.Errorf("after the deletion the desired state is %+v", all)
	}

	// Another agent joins as the same host.
	other := s.connect(t.TempDir())
	s.must(200, "PUT", "/v1/hosts/h1/interfaces/eth0", shared)
	other.Wait(t)
	select {
	case <-again.Changes:
		t.Error("the replaced agent receives a change")
	case <-time.After(500 * time.Millisecond):
	}
	s.must(200, "PUT", "/v1/hosts/h1", `{"revoked": true}`)
	connected := func() bool { return strings.Contains(s.must(200, "GET", "/v1/hosts/h1", "").text, `"connected":true`) }
	for range 100 {
		if !connected() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("a revoked host is connected")
}
