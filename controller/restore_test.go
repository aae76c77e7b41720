package controller_test

import (
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/controller/controllertest"
	"headgate.dev/headgate/store/storetest"
)

// What was revoked after a backup is not valid after its restore: tokens and hosts of the backup are refused until an operator confirms them.
func TestConfirmRestore(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.twoTenants()
	dir := t.TempDir()
	h := s.connect(dir)
	h.Wait(t)
	h.Stop()
	s.stop()
	if err := s.store.Restored(t.Context(), "backup", false); err != nil {
		t.Fatal(err)
	}
	again := startOn(t, storetest.Open(t, s.member), controllertest.Config(), nil)
	var r reply
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if r = again.do(a, "GET", "/v1/session", ""); r.status != 503 || time.Now().After(end) {
			break
		}
	}
	if r.status != 401 || !strings.Contains(r.text, "confirm-restore") {
		t.Errorf("a token of the backup: %d %s", r.status, r.text)
	}
	if r := again.do(s.operator, "GET", "/v1/session", ""); r.status != 401 {
		t.Errorf("the operator's token of the backup: %d", r.status)
	}
	// The token of the start is valid. It creates others.
	fresh := again.token(`{"name": "new", "role": "operator"}`)
	r = again.mustAs(fresh, 200, "GET", "/v1/restore", "")
	for _, has := range []string{`"name":"pa"`, `"name":"pb"`, `"hosts":[{"name":"h1"}]`, `"at":`} {
		if !strings.Contains(r.text, has) {
			t.Errorf("the restore lacks %s: %s", has, r.text)
		}
	}
	if strings.Contains(r.text, `"name":"new"`) {
		t.Errorf("a token of after the restore is listed: %s", r.text)
	}
	is := controllertest.Dial(t, dir, again.agents)
	if !strings.Contains(is, "confirm-restore") {
		t.Errorf("the agent of a host of the backup: %s", is)
	}
	if err := controllertest.RenewAt(t.Context(), dir, again.agents); err == nil || !strings.Contains(err.Error(), "confirm-restore") {
		t.Errorf("a host of the backup renews its certificate, which would permit it: %v", err)
	}
	if is := controllertest.Dial(t, dir, again.agents); !strings.Contains(is, "confirm-restore") {
		t.Errorf("the agent of a host of the backup that has tried to renew: %s", is)
	}
	var tokens struct{ Items []struct{ ID, Name string } }
	again.must(200, "GET", "/v1/tokens", "").into(t, &tokens)
	id := ""
	for _, one := range tokens.Items {
		if one.Name == "pb" {
			id = one.ID
		}
	}
	again.must(422, "POST", "/v1/restore/confirmation", `{"revoke_hosts": ["nowhere"]}`)
	again.must(422, "POST", "/v1/restore/confirmation", `{"revoke_tokens": ["000"]}`)
	again.must(204, "POST", "/v1/restore/confirmation?dry_run=true", `{}`)
	again.must(200, "GET", "/v1/restore", "")
	again.must(204, "POST", "/v1/restore/confirmation", `{"revoke_tokens": ["`+id+`"], "revoke_hosts": ["h1"]}`)
	for end := time.Now().Add(10 * time.Second); again.do(a, "GET", "/v1/session", "").status != 200; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a token of the backup is refused after the confirmation")
		}
	}
	again.mustAs(s.operator, 200, "GET", "/v1/session", "")
	again.mustAs(b, 401, "GET", "/v1/session", "")
	if is := controllertest.Dial(t, dir, again.agents); !strings.Contains(is, "was removed or revoked") {
		t.Errorf("the agent of a revoked host: %s", is)
	}
	again.must(404, "GET", "/v1/restore", "")
}

// An agent that is ahead of the service is shown as such, and taken back.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.twoTenants()
	dir := t.TempDir()
	h := s.connect(dir)
	h.Wait(t)
	h.Stop()
	later := h.DesiredState.Fence()
	later.Epoch = uint64(time.Now().Add(1000 * time.Hour).Unix())
	if _, err := h.DesiredState.Store(&agents.Desired{Fence: later}); err != nil {
		t.Fatal(err)
	}
	again := s.connect(dir)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		r := s.must(200, "GET", "/v1/hosts/h1", "")
		if strings.Contains(r.text, `"ahead":"`) && strings.Contains(r.text, `"connected":true`) && strings.Contains(r.text, "take-back") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the agent is not shown as ahead: %s", r.text)
		}
	}
	s.must(200, "POST", "/v1/epoch", "")
	again.Wait(t)
	if all, _ := again.DesiredState.Interfaces(); len(all) != 1 || again.DesiredState.Fence().Epoch <= later.Epoch {
		t.Errorf("the agent has %d interfaces, of %v", len(all), again.DesiredState.Fence())
	}
	if r := s.must(200, "GET", "/v1/hosts/h1", ""); strings.Contains(r.text, `"ahead"`) {
		t.Errorf("it is still shown as ahead: %s", r.text)
	}
}
