package relay

import (
	"net/netip"
	"testing"
)

func TestExitFor(t *testing.T) {
	prefixes := func(all ...string) (out []netip.Prefix) {
		for _, one := range all {
			out = append(out, netip.MustParsePrefix(one))
		}
		return out
	}
	p := Policy{Exits: []Exit{{Destinations: prefixes("10.0.0.0/8", "2001:db8::/32")}, {Destinations: prefixes("10.2.0.0/16")}}}
	for to, want := range map[string]int{"10.1.0.1": 0, "10.2.0.1": 1, "::ffff:10.2.0.1": 1, "2001:db8::1": 0, "192.0.2.1": -1} {
		if got := p.ExitFor(netip.MustParseAddr(to)); got != want {
			t.Errorf("%s: exit %d, want %d", to, got, want)
		}
	}
	if a := (Accept{Destinations: prefixes("10.0.0.0/8")}); !a.Allows(netip.MustParseAddr("::ffff:10.0.0.1")) || a.Allows(netip.MustParseAddr("11.0.0.1")) {
		t.Error("the exit's destinations")
	}
}
