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

	"headgate/internal/pki"
)

// servedHost is a service that takes everything, and tells of its one host what it is given; "" is
// that it may not be told.
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

// serveWith is a service that answers so, and for which there is a login.
func serveWith(t *testing.T, answer http.HandlerFunc) {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	text, err := json.Marshal(logins{Newest: "default", Profiles: map[string]login{"default": {URL: s.URL, Token: "t", Pin: pki.Hash(s.Certificate())}}})
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

// TestWarningsThere: what can be known here of a host of a service, check, plan and apply tell, and
// take devices by any of their names.
func TestWarningsThere(t *testing.T) {
	const groups = "out: {limit: 50Mbit, groups: [{name: all, default: true}]}\n"
	const marked = "in: {limit: 5Mbit, groups: [{name: web, match: [{mark: 7}]}, {name: all, default: true}]}\n"
	document := func(dev, what string) string { return "---\nkind: Interface\ndev: \"" + dev + "\"\n" + what }
	const devices = `{"name": "h1", "devices": [{"name": "eth0", "altnames": ["enp0s3", "wan"], "up": true, "speed": "10Mbit", "owner": "local"}, {"name": "eth1", "up": false, "speed": "1Gbit", "owner": "nobody"}, {"name": "eth6", "trouble": "no such device"}]}`
	const faster = "eth.yaml:4: out.limit: warning: 50Mbit is more than eth0's speed of 10Mbit: guarantees hold only up to what the link gives\n"
	const theirs = "headgate: warning: eth0: files of h1 divide it, or somebody did there by hand: that is in force\n"
	for _, c := range []struct{ name, host, config, want string }{
		{"nothing", devices, document("eth1", groups), ""},
		{"a rule by mark", devices, document("eth1", marked), "eth.yaml:4: in.groups[0].match[0].mark: warning: what comes in is looked at before the firewall (nftables, iptables, CONNMARK) marks it, so no mark is there yet, " +
			"unless an eBPF program on the tcx ingress hook sets it: match by addresses or ports, or write the rule where the packets go out\n"},
		{"no such device", devices, document("eth7", groups), "headgate: warning: eth7: h1 has no such device now\n"},
		{"no such device, and wanted", devices, document("eth6", groups), "headgate: warning: eth6: h1 has no such device now\n"},
		{"by its own name", devices, document("eth0", groups), faster + theirs},
		{"by another name", devices, document("enp0s3", groups), faster + theirs},
		{"by a pattern of other names", devices, document("wa*", groups), faster + theirs},
		{"by two names", devices, document("enp0s3", groups) + document("eth0", groups),
			"eth.yaml:3: dev: warning: on h1 \"enp0s3\" is another name of \"eth0\", which is divided in eth.yaml:6 already: write both directions in one document\n" + strings.Replace(faster, ":4:", ":8:", 1) + theirs},
		{"an agent that is away", `{"name": "h1"}`, document("eth7", groups), "headgate: warning: the agent of h1 is not connected: whether it has these devices is not known\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			servedHost(t, c.host)
			w := newWorld(t)
			f := w.write("eth.yaml", c.config)
			for _, verb := range []string{"check", "plan", "apply"} {
				if r := w.must(verb, "-f", f, "--server", "default", "--host", "h1"); r.err != c.want {
					t.Errorf("%s says\n%swant\n%s", verb, r.err, c.want)
				}
			}
		})
	}
	// What was done was done, whatever may be known of the host.
	servedHost(t, "")
	w := newWorld(t)
	if r := w.must("apply", "-f", w.write("eth.yaml", document("eth0", groups)), "--server", "default", "--host", "h1"); !strings.Contains(r.out, "add    out group all") || !strings.Contains(r.err, "warning: what the agent of h1 says against it is not known: ") {
		t.Errorf("apply says %q, %q", r.out, r.err)
	}
}
