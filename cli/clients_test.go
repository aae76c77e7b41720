package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const eachFile = `kind: Interface
dev: eth0
out:
  limit: 400Mbit
  groups:
    - name: tenant
      guarantee: 50%
      groups:
        - {name: users, guarantee: 1Mbit, ceiling: 20Mbit, each: [src/24, src/64], clients: 500, default: true}
    - {name: voice, guarantee: 50%, match: [{dscp: ef}]}
`

// TestCheckClients: check notes how many clients' guarantees can be met at once, if not all can.
func TestCheckClients(t *testing.T) {
	file := filepath.Join(t.TempDir(), "eth0.yaml")
	if err := os.WriteFile(file, []byte(eachFile), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	a := fakeApp(t.TempDir())
	a.out, a.err = &out, &notes
	if code := a.run([]string{"check", "-f", file}); code != 0 {
		t.Fatalf("%d: %s", code, notes.String())
	}
	if want := "eth0.yaml:9: out.groups[0].groups[0]: note: of 500 clients, 200 at once can have their guarantee of 1Mbit: the clients together are guaranteed 200Mbit"; !strings.Contains(notes.String(), want) {
		t.Errorf("%s\nwant %s", notes.String(), want)
	}
	if want := "default; each src/24,src/64: 1Mbit to 20Mbit, 500 clients"; !strings.Contains(out.String(), want) {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}
