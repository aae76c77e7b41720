package config

import (
	"strings"
	"testing"
)

// A forwarded destination may have no configured exit if an exit announces its destinations.
func TestRelayAnnounced(t *testing.T) {
	const agent = "kind: Relay\nname: east\nkey: /k\nexits: [{address: \"192.0.2.1:8424\", destinations: announced}]\n" +
		"forward: [{listen: \"127.0.0.1:8022\", to: \"10.2.0.5:22\"}]\n"
	set, err := Parse("relay.yaml", []byte(agent))
	if err != nil {
		t.Fatal(err)
	}
	if e := set.Relays[0].Exits[0]; !e.Announced || len(e.Destinations) > 0 {
		t.Errorf("exit %+v", e)
	}
}

// A proxy without a host in its address is on the loopback; one that other hosts reach without authentication is noted.
func TestRelayProxies(t *testing.T) {
	const agent = "kind: Relay\nname: east\nkey: /k\nexits: [{address: \"192.0.2.1:8424\", destinations: [10.2.0.0/16]}]\n"
	for text, want := range map[string]struct {
		listen string
		noted  bool
	}{
		`socks: {listen: "1080"}`:                          {"127.0.0.1:1080", false},
		`socks: {listen: ":1080"}`:                         {"127.0.0.1:1080", false},
		`socks: {listen: "[::1]:1080"}`:                    {"[::1]:1080", false},
		`socks: {listen: "0.0.0.0:1080"}`:                  {"0.0.0.0:1080", true},
		`socks: {listen: "[::]:1080"}`:                     {"[::]:1080", true},
		`socks: {listen: "192.0.2.9:1080", users: /users}`: {"192.0.2.9:1080", false},
	} {
		for _, kind := range []string{"socks", "http_proxy"} {
			set, err := Parse("relay.yaml", []byte(agent+strings.Replace(text, "socks", kind, 1)))
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			r := set.Relays[0]
			if got := r.Socks.Listen + r.HTTPProxy.Listen; got != want.listen {
				t.Errorf("%s: listens on %q, want %q", text, got, want.listen)
			}
			if noted := len(r.Notes) == 1 && strings.HasPrefix(r.Notes[0].String(), "relay.yaml:5: "+kind+".listen: note: "+want.listen+" is an open proxy"); noted != want.noted {
				t.Errorf("%s: notes %v", text, r.Notes)
			}
		}
	}
}
