package host

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
)

// serve returns the host h1 of a service that answers with handle.
func serve(t *testing.T, handle http.HandlerFunc) Host {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	c, err := api.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return Host{Name: "h1", Client: c}
}

// Apply reads the state and tries again when another client has changed it in between, a bounded number of times.
func TestApplyRetries(t *testing.T) {
	set, err := config.Parse("eth0.yaml", []byte("kind: Interface\ndev: eth0\nout: {limit: 40Mbit, groups: [{name: rest, default: true}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for refusals, want := range map[int]string{0: "", 3: "", applyTries: "cannot apply to h1: other clients keep changing its configuration"} {
		reads, writes := 0, 0
		h := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				reads++
				w.Header().Set("ETag", `"7"`)
				io.WriteString(w, `{"text": "kind: Interface\ndev: eth0\nout: {limit: 50Mbit, groups: [{name: rest, default: true}]}\n"}`)
				return
			}
			if writes++; writes <= refusals || r.Header.Get("If-Match") != `"7"` {
				w.WriteHeader(http.StatusPreconditionFailed)
				io.WriteString(w, `{"title": "changed"}`)
				return
			}
			io.Copy(w, r.Body)
		})
		before, after, err := h.Apply(t.Context(), set, false)
		if want != "" {
			if !errors.Is(err, api.ErrPreconditionFailed) || !strings.Contains(err.Error(), want) || writes != applyTries {
				t.Errorf("%d refusals: %v after %d tries", refusals, err, writes)
			}
			continue
		}
		if err != nil || reads != refusals+1 || before.Interfaces[0].Out.Limit.String() != "50Mbit" || after.Interfaces[0].Out.Limit.String() != "40Mbit" {
			t.Errorf("%d refusals: %v after %d reads, from %+v to %+v", refusals, err, reads, before, after)
		}
	}
}

// A device is selected by its name at the service, or by any name of it.
func TestResolve(t *testing.T) {
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/hosts/h1/interfaces":
			io.WriteString(w, `{"items": [{"dev": "enp0s3"}, {"dev": "w*"}]}`)
		case "/v1/hosts/h1":
			io.WriteString(w, `{"name": "h1", "devices": [{"name": "eth0", "altnames": ["enp0s3", "wan"], "up": true}, {"name": "eth1", "altnames": ["lan1"], "up": true}]}`)
		}
	})
	for dev, want := range map[string]string{"enp0s3": "enp0s3", "eth0": "enp0s3", "wan": "enp0s3", "w*": "w*", "lan1": "eth1", "none": "none"} {
		if got, err := h.Resolve(t.Context(), dev); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", dev, got, err, want)
		}
	}
	if all, err := h.Interfaces(t.Context()); err != nil || !slices.Equal(all, []string{"enp0s3", "w*"}) {
		t.Errorf("%v, %v", all, err)
	}
}

// A configuration is compared with the devices that the agent reported, which have alternative names. A device that
// the service lists without its state does not exist on the host.
func TestConflicts(t *testing.T) {
	document := func(dev string) string {
		return "---\nkind: Interface\ndev: \"" + dev + "\"\nout: {limit: 2Gbit, groups: [{name: rest, default: true}]}\n"
	}
	set, err := config.Parse("f.yaml", []byte(document("eth0")+document("wan")+document("eth1")+document("eth7")+document("eth9")+document("tap*")))
	if err != nil {
		t.Fatal(err)
	}
	devices := `[{"name": "eth0", "altnames": ["wan"], "up": true, "speed_bps": 1000000000}, {"name": "eth1", "up": true, "owner": "local"}, {"name": "eth9"}]`
	state := `{"name": "h1"}`
	h := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, state) })
	if c, err := h.Conflicts(t.Context(), set); err != nil || !c.Disconnected {
		t.Errorf("without a report of the agent: %+v, %v", c, err)
	}
	state = `{"name": "h1", "devices": ` + devices + `}`
	c, err := h.Conflicts(t.Context(), set)
	if err != nil || c.Disconnected {
		t.Fatalf("%+v, %v", c, err)
	}
	if len(c.Duplicate) != 1 || c.Duplicate[0].Key != "dev" || c.Duplicate[0].Line != 7 {
		t.Errorf("duplicate: %+v", c.Duplicate)
	}
	if !slices.Equal(c.Missing, []string{"eth7", "eth9"}) || !slices.Equal(c.Local, []string{"eth1"}) {
		t.Errorf("missing %v, local %v", c.Missing, c.Local)
	}
	if len(c.Speeds) != 1 || c.Speeds[0].Line != 4 || c.Speeds[0].Key != "out.limit" {
		t.Errorf("speeds: %+v", c.Speeds)
	}
}
