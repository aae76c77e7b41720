package explain

import (
	"bytes"
	"net/netip"
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
	s := Source{File: &set.Interfaces[0], Clients: []shaper.Client{
		{Direction: "out", Group: "tenant/users", Client: netip.MustParsePrefix("10.0.3.0/24"), Class: "8011:4007"},
	}}
	var b bytes.Buffer
	for _, text := range []string{"udp 10.0.3.4:1 192.0.2.1:2", "udp 10.0.4.4:1 192.0.2.1:2", "udp [fd00::5]:1 [fd00:1::1]:2", "udp 10.0.3.4:1 192.0.2.1:2 dscp ef"} {
		p, err := group.ParsePacket(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Explain("eth0", p, "out").Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	golden.Compare(t, "testdata/explain_clients.txt", b.String())
}
