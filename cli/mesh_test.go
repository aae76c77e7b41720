package cli

import (
	"strings"
	"testing"
)

func TestMeshUsage(t *testing.T) {
	w := newWorld(t, "eth0")
	servers := w.write("servers.yaml", strings.ReplaceAll(meshExample, "\n  ", "\n")[2:])
	for _, c := range []struct {
		args string
		code int
		err  string
	}{
		{"probe mesh", exitUsage, "write -f FILE"},
		{"probe mesh -f /no/such", exitUsage, "cannot read file"},
		{"probe mesh -f " + w.config("eth0", "1Gbit"), exitUsage, "kind: Servers"},
		{"probe mesh -o yaml -f " + servers, exitUsage, "write table, json or prometheus"},
		{"probe serve --open --peer x", exitUsage, "open"},
		{"probe serve --peer :1", exitUsage, "--peer: "},
		{"check -f " + servers, exitOK, ""},
		{"apply -f " + servers, exitUsage, "kind: Interface"},
	} {
		if r := w.run(strings.Fields(c.args)...); r.code != c.code || !strings.Contains(r.err, c.err) {
			t.Errorf("headgate %s: exit %d, want %d with %q\n%s", c.args, r.code, c.code, c.err, r.err)
		}
	}
	if r := w.must("check", "-f", servers); !strings.Contains(r.out, "ams at [2001:db8::7]:5000") {
		t.Errorf("check prints\n%s", r.out)
	}
}
