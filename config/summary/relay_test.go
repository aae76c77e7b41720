package summary

import (
	"encoding/json"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/golden"
)

const agents = `kind: Relay
name: east
key: /etc/headgate/relay.key
exits:
  - address: 192.0.2.2:8424
    destinations: [10.2.0.0/16, "2001:db8:2::/48"]
    paths:
      - {name: fibre}
      - {name: radio, address: "198.51.100.2:8424", source: 198.51.100.1, device: wlan0, mark: 0x10, streams: 4}
  - {address: "192.0.2.3:8424", destinations: [10.3.0.0/16]}
  - {address: "192.0.2.4:8424", destinations: announced}
socks: {listen: "127.0.0.1:1080"}
http_proxy: {listen: "127.0.0.1:3128", users: /etc/headgate/users}
forward:
  - {listen: "127.0.0.1:8022", to: "10.2.0.5:22"}
take:
  - {src: 10.1.0.0/16, dst: [10.2.0.0/24, 10.3.0.0/24], dport: [22, 8000-8100]}
  - {cgroup: /system.slice/backup.service, min_rtt: 20ms}
  - {}
---
kind: Relay
name: west
key: /etc/headgate/relay.key
encrypt: false
accept: {listen: "0.0.0.0:8424", destinations: 10.2.0.0/16, keep_source: true}
`

// A description has how an agent accepts streams, its exits with their paths, and which connections it carries.
func TestRelays(t *testing.T) {
	set, err := config.Parse("relay.yaml", []byte(agents))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Of(set).Write(&b); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/relays.txt", b.String())
	text, err := json.Marshal(Of(set).Relays)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name":"radio","selection":"to 198.51.100.2:8424 from 198.51.100.1 by wlan0 mark 0x10","streams":4`, `"accept":{"listen":"0.0.0.0:8424","destinations":["10.2.0.0/16"],"keep_source":true}`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the description lacks %s:\n%s", want, text)
		}
	}
}
