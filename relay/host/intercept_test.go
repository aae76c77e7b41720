package host

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/relay"
)

func prefixes(all ...string) (out []netip.Prefix) {
	for _, one := range all {
		out = append(out, netip.MustParsePrefix(one))
	}
	return out
}

func TestRuleset(t *testing.T) {
	destinations := prefixes("10.2.0.0/16", "2001:db8:2::/48")
	i := interception{port: 8425, exit: true, rules: []takeRule{
		{Rule: relay.Rule{Ports: []relay.Ports{{From: 443, To: 443}, {From: 8000, To: 8100}}}, destinations: destinations},
		{Rule: relay.Rule{Src: prefixes("10.1.0.0/16"), Dst: prefixes("10.2.3.0/24")}, destinations: destinations},
		{Rule: relay.Rule{Cgroup: "/none"}, destinations: destinations},
		{Rule: relay.Rule{Cgroup: "/"}, destinations: destinations, cgroup: &cgroup{path: ".", level: 1, id: 1}},
		{Rule: relay.Rule{}, foreign: true, destinations: prefixes("10.3.0.0/16")},
		{Rule: relay.Rule{}},
	}}
	golden.Compare(t, "testdata/ruleset.txt", i.ruleset())
	if _, err := exec.LookPath("nft"); err == nil {
		c := exec.Command("nft", "--check", "-f", "-")
		c.Stdin = strings.NewReader(i.ruleset())
		if out, err := c.CombinedOutput(); err != nil && !strings.Contains(string(out), "Operation not permitted") {
			t.Errorf("%v: %s", err, out)
		}
	}
}
