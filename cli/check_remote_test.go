package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/api/login"
	"headgate.dev/headgate/internal/pki"
)

// servedHost starts a service that accepts every request and returns host as its host resource; ""
// answers 403.
func servedHost(t *testing.T, host string) {
	t.Helper()
	serveWith(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/hosts/h1" && host == "":
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/v1/hosts/h1":
			io.WriteString(w, host)
		case r.Method == http.MethodGet:
			io.WriteString(w, `{"text": ""}`)
		default:
			io.Copy(w, r.Body)
		}
	})
}

// serveWith starts a service with this handler, and stores a login for it.
func serveWith(t *testing.T, answer http.HandlerFunc) {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	text, err := json.Marshal(login.Logins{Newest: "default", Profiles: map[string]login.Credentials{"default": {URL: s.URL, Token: "t", Pin: pki.Hash(s.Certificate())}}})
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "headgate"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "headgate", "logins.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWarningsRemote: check, plan and apply with --server warn of conflicts with the reported state of
// the host, and accept any name of a device.
func TestWarningsRemote(t *testing.T) {
	const groups = "out: {limit: 50Mbit, groups: [{name: all, default: true}]}\n"
	const marked = "in: {limit: 5Mbit, groups: [{name: web, match: [{mark: 7}]}, {name: all, default: true}]}\n"
	document := func(dev, what string) string { return "---\nkind: Interface\ndev: \"" + dev + "\"\n" + what }
	const devices = `{"name": "h1", "devices": [{"name": "eth0", "altnames": ["enp0s3", "wan"], "up": true, "speed_bps": 10000000, "owner": "local"}, {"name": "eth1", "up": false, "speed_bps": 1000000000, "owner": "none"}, {"name": "eth6", "error": "no such device"}]}`
	const faster = "eth.yaml:4: out.limit: warning: 50Mbit is more than eth0's speed of 10Mbit: guarantees cannot be met above the link's speed\n"
	const theirs = "headgate: warning: eth0: configured locally on host h1, by a file or by hand, which takes precedence\n"
	for _, c := range []struct{ name, host, config, want string }{
		{"nothing", devices, document("eth1", groups), ""},
		{"a rule by mark", devices, document("eth1", marked), "eth.yaml:4: in.groups[0].match[0].mark: warning: received packets are classified before the firewall (nftables, iptables, CONNMARK) marks them, so they have no mark, " +
			"unless an eBPF program on the tcx ingress hook sets one: match by addresses or ports, or put the rule on the egress device\n"},
		{"no such device", devices, document("eth7", groups), "headgate: warning: eth7: no such device on host h1\n"},
		{"no such device, with a document", devices, document("eth6", groups), "headgate: warning: eth6: no such device on host h1\n"},
		{"by its own name", devices, document("eth0", groups), faster + theirs},
		{"by another name", devices, document("enp0s3", groups), faster + theirs},
		{"by a pattern of other names", devices, document("wa*", groups), faster + theirs},
		{"by two names", devices, document("enp0s3", groups) + document("eth0", groups),
			"eth.yaml:3: dev: warning: on h1 \"enp0s3\" is an alternative name of \"eth0\", which is already configured in eth.yaml:6: write both directions in one document\n" + strings.Replace(faster, ":4:", ":8:", 1) + theirs},
		{"a disconnected agent", `{"name": "h1"}`, document("eth7", groups), "headgate: warning: agent of h1 is disconnected: cannot check the devices\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			servedHost(t, c.host)
			w := newWorld(t)
			f := w.write("eth.yaml", c.config)
			for _, verb := range []string{"check", "plan", "apply"} {
				if r := w.must(verb, "-f", f, "--server", "default", "--host", "h1"); r.err != c.want {
					t.Errorf("%s:\n%swant\n%s", verb, r.err, c.want)
				}
			}
		})
	}
	// Apply succeeds also if the host resource is forbidden, with a warning.
	servedHost(t, "")
	w := newWorld(t)
	if r := w.must("apply", "-f", w.write("eth.yaml", document("eth0", groups)), "--server", "default", "--host", "h1"); !strings.Contains(r.out, "add    out group all") || !strings.Contains(r.err, "warning: cannot check the configuration with the agent of h1: ") {
		t.Errorf("apply: %q, %q", r.out, r.err)
	}
}
