package service

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/store"
)

func options(listen string, hosts []string, members ...config.Member) Options {
	if members == nil {
		members = []config.Member{{Name: "c1", Address: listen}}
	}
	return Options{Name: "c1", Listen: listen, Hosts: hosts, Controllers: config.Controllers{Members: members, API: 1, Agents: 2}}
}

// Addresses that other controllers, the store or agents cannot use are rejected.
// advertised are options with --advertise.
func advertised(listen string, at ...string) Options {
	o := options(listen, nil)
	o.Advertise = at
	return o
}

func TestAdvertised(t *testing.T) {
	for at, want := range map[string]string{"gw": "", "gw:18421": "", "2001:db8::1": "", "[2001:db8::1]:5": "", ":5": "is not a name or an address", "gw:port": "is not a name or an address"} {
		err := advertised("10.0.0.1", at).CheckAdvertised()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if err := advertised("::", "gw").CheckNames(); err != nil {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	c1, c2, everywhere := config.Member{Name: "c1", Address: "10.0.0.1"}, config.Member{Name: "c2", Address: "10.0.0.2"}, config.Member{Name: "c2", Address: "::"}
	external := options("ctl.example.org", nil)
	external.External = &store.Endpoint{}
	for _, c := range []struct {
		Options
		addresses, names string // errors
	}{
		{options("10.0.0.1", nil), "", ""},
		{options("ctl.example.org", nil), "set one such as 10.0.0.1", ""},
		{external, "", ""},
		{options("::", nil), "", "--certificate-for is missing"},
		{options("::", []string{"localhost"}), "", ""},
		{options("10.0.0.1", nil, c1, c2), "", ""},
		{options("10.0.0.1", nil, c1, everywhere), "the address of c2", ""},
	} {
		for _, e := range []struct {
			got  error
			want string
		}{{c.CheckAddresses(), c.addresses}, {c.CheckNames(), c.names}} {
			if (e.got == nil) != (e.want == "") || e.got != nil && !strings.Contains(e.got.Error(), e.want) {
				t.Errorf("%+v: %v, want %q", c.Options, e.got, e.want)
			}
		}
	}
	for _, c := range []struct {
		Options
		want string
	}{
		{options("10.0.0.1", nil, c1, c2), "agents [10.0.0.1:2 10.0.0.2:2], peers [10.0.0.2:1], names []"},
		{options("::", []string{"localhost", "ctl"}), "agents [localhost:2 ctl:2], peers [], names [localhost ctl]"},
		{external, "agents [ctl.example.org:2], peers [], names [ctl.example.org]"},
		{advertised("10.0.0.1", "gw.example.org:18421", "192.0.2.1", "2001:db8::1"), "agents [gw.example.org:18421 192.0.2.1:2 [2001:db8::1]:2], peers [], names [gw.example.org 192.0.2.1 2001:db8::1]"},
	} {
		if got := fmt.Sprintf("agents %v, peers %v, names %v", c.agentAddresses(), c.peerAddresses(), c.certificateNames()); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
