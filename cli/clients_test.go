package cli

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/shaper"
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

// TestExplainClient: explain shows the client that a packet belongs to, by the key of each:, and the
// client's current class.
func TestExplainClient(t *testing.T) {
	set, err := config.Parse("eth0.yaml", []byte(eachFile))
	if err != nil {
		t.Fatal(err)
	}
	e := explainer{file: &set.Interfaces[0], clients: []shaper.Client{
		{Direction: "out", Group: "tenant/users", Client: netip.MustParsePrefix("10.0.3.0/24"), Class: "8011:4007"},
	}}
	var b bytes.Buffer
	for _, text := range []string{"udp 10.0.3.4:1 192.0.2.1:2", "udp 10.0.4.4:1 192.0.2.1:2", "udp [fd00::5]:1 [fd00:1::1]:2", "udp 10.0.3.4:1 192.0.2.1:2 dscp ef"} {
		p, err := group.ParsePacket(text)
		if err != nil {
			t.Fatal(err)
		}
		answer := explanation{Packet: text, Dev: "eth0", Directions: []directionExplanation{e.explain("out", p)}}
		if err := answer.table(&b); err != nil {
			t.Fatal(err)
		}
	}
	golden.Compare(t, "testdata/explain_clients.txt", b.String())
}

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
