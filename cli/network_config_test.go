package cli

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/api/login"
	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/controller/controllertest"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/store/storetest"
)

// loggedIn returns a fake world whose newest login is a new service.
func loggedIn(t *testing.T, change func(*controller.Config)) (testEnv, *controllertest.Service) {
	config := controllertest.Config()
	if change != nil {
		change(&config)
	}
	s := controllertest.Run(t, storetest.Open(t, storetest.Start(t)), config, nil)
	w := newWorld(t)
	logins, err := json.Marshal(login.Logins{Newest: "default", Profiles: map[string]login.Credentials{"default": {URL: s.URL, Token: s.Operator, Pin: s.Pin}}})
	if err != nil {
		t.Fatal(err)
	}
	w.write("headgate/logins.json", string(logins))
	t.Setenv("XDG_CONFIG_HOME", w.dir)
	return w, s
}

// The configuration of a network is set, compared, printed and deleted by commands.
func TestNetworkApply(t *testing.T) {
	w, _ := loggedIn(t, nil)
	document := fmt.Sprintf(`kind: Network
name: campus
switches:
  # the north one
  - {id: 1, name: north}
  - {id: 2, name: south}
listen: [{address: "127.0.0.1:%d", tls: false}]
`, storetest.Ports(t, 1)[0])
	file := w.write("network.yaml", document)
	if r := w.run("network", "config"); r.code != exitFailed || !strings.Contains(r.err, "no configuration") {
		t.Errorf("%+v", r)
	}
	if r := w.must("network", "apply", "-f", file, "--dry-run"); !strings.HasSuffix(r.out, "network: would be created\n") {
		t.Errorf("%s", r.out)
	}
	if r := w.must("network", "apply", "-f", file); !strings.Contains(r.out, `+ {id: "00:00:00:00:00:00:00:01", name: north}`) || !strings.HasSuffix(r.out, "network: created\n") {
		t.Errorf("%s", r.out)
	}
	if r := w.must("network", "show"); !strings.Contains(r.err, "not connected: north 0000000000000001, south 0000000000000002 (") {
		t.Errorf("%+v", r)
	}
	if r := w.must("__complete", "network", "certificate", ""); !strings.HasPrefix(r.out, "0000000000000001\nnorth\n0000000000000002\nsouth\n:") {
		t.Errorf("%s", r.out)
	}
	if r := w.run("network", "apply"); r.code != exitUsage || !strings.Contains(r.err, "set -f to a file with a document of kind: Network") {
		t.Errorf("%+v", r)
	}
	if r := w.must("network", "apply", "-f", file); r.out != "network: unchanged\n" {
		t.Errorf("%s", r.out)
	}
	w.write("network.yaml", strings.Replace(document, "south", "east", 1))
	want := "- {id: \"00:00:00:00:00:00:00:02\", name: south}\n+ {id: \"00:00:00:00:00:00:00:02\", name: east}\nnetwork: changed\n"
	if r := w.must("network", "apply", "-f", file); r.out != want {
		t.Errorf("%s, want %s", r.out, want)
	}
	if r := w.must("network", "apply", "-f", file, "-o", "json"); strings.TrimSpace(r.out) != "{\n  \"added\": [],\n  \"removed\": []\n}" {
		t.Errorf("%s", r.out)
	}
	printed := w.must("network", "config").out
	if r := w.must("check", "--offline", "-f", w.write("printed.yaml", printed)); !strings.Contains(r.out, "east") {
		t.Errorf("%s", r.out)
	}
	if r := w.run("network", "apply", "-f", w.write("bad.yaml", "kind: Network\nname: n\nswitches: [{id: 1}, {id: 1}]\n")); r.code != exitUsage || !strings.Contains(r.err, "bad.yaml:3") {
		t.Errorf("%+v", r)
	}
	if r := w.run("network", "apply", "-f", w.write("other.yaml", "kind: Servers\nservers: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]\n")); r.code != exitUsage || !strings.Contains(r.err, "no document of kind: Network") {
		t.Errorf("%+v", r)
	}
	w.must("network", "clear")
	if r := w.run("network", "clear"); r.code != exitFailed {
		t.Errorf("%+v", r)
	}
}

// A network of routers is stored as one with switches is. Nothing of it is found, and no switch is missed.
func TestNetworkApplyRouters(t *testing.T) {
	w, _ := loggedIn(t, nil)
	w.must("network", "apply", "-f", "../examples/routers.yaml")
	if r := w.must("network", "config"); !strings.Contains(r.out, "- {name: r3, host: gateway3}") || strings.Contains(r.out, "listen") {
		t.Errorf("%s", r.out)
	}
	if r := w.must("network", "show"); !strings.Contains(r.err, "the network has routers alone") || strings.Contains(r.err, "not connected") || strings.Contains(r.out, "fffe") {
		t.Errorf("%+v", r)
	}
}

// The certificate of a switch is made for a key that stays when it is renewed.
func TestNetworkCertificate(t *testing.T) {
	w, _ := loggedIn(t, nil)
	w.must("network", "apply", "-f", w.write("network.yaml", fmt.Sprintf("kind: Network\nname: campus\nswitches: [{id: 1, name: north}]\nlisten: [{address: \"127.0.0.1:%d\"}]\n", storetest.Ports(t, 1)[0])))
	dir := filepath.Join(w.dir, "pki")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	r := w.must("network", "certificate", "north", "--to", dir)
	if !regexp.MustCompile(`^switch 0000000000000001: certificate valid until \d{4}-\d\d-\d\d in .*/cert\.pem\non its machine: headgate network connect BRIDGE --controller ssl:ADDRESS --ca .*/ca\.pem --cert .*/cert\.pem --key .*/key\.pem\n$`).MatchString(r.out) {
		t.Errorf("%s", r.out)
	}
	key, cert := read("key.pem"), read("cert.pem")
	if info, err := os.Stat(filepath.Join(dir, "key.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v, %v", info.Mode(), err)
	}
	w.must("network", "certificate", "0000000000000001", "--to", dir, "--days", "30")
	if read("key.pem") != key || read("cert.pem") == cert {
		t.Error("the renewal has another key, or no other certificate")
	}
	if _, err := tls.X509KeyPair([]byte(read("cert.pem")), []byte(read("key.pem"))); err != nil {
		t.Error(err)
	}
	if c, err := pki.Certificate([]byte(read("cert.pem"))); err != nil || !slices.Equal(c.DNSNames, []string{"0000000000000001"}) {
		t.Errorf("the certificate is of %v, %v", c.DNSNames, err)
	}
	for _, days := range []string{"0", "3651"} {
		if r := w.run("network", "certificate", "north", "--to", dir, "--days", days); r.code != exitUsage || !strings.Contains(r.err, "--days is "+days+": set it to 1 to 3650") {
			t.Errorf("%+v", r)
		}
	}
	if r := w.run("network", "certificate", "north"); r.code != exitUsage || strings.Contains(r.err, "`") {
		t.Errorf("%+v", r)
	}
	w.write("pki/key.pem", "no key")
	if r := w.run("network", "certificate", "north", "--to", dir); r.code != exitFailed || !strings.Contains(r.err, "key.pem") || !strings.Contains(r.err, "set --to to another directory") {
		t.Errorf("%+v", r)
	}
	if r := w.run("network", "certificate", "west", "--to", filepath.Join(w.dir, "other")); r.code == 0 || !strings.Contains(r.err, "neither the name of a switch") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "other")); err == nil {
		t.Error("a directory was made for a switch that does not exist")
	}
}
