package placement

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/netdev"
	"headgate.dev/headgate/internal/nft"
	"headgate.dev/headgate/unit"
)

func parse(t *testing.T, dev, direction, rule string) config.Set {
	t.Helper()
	set, err := config.Parse("f.yaml", []byte(fmt.Sprintf("kind: Interface\ndev: %s\n%s:\n  limit: 100Mbit\n  groups:\n    - {name: web, match: [%s]}\n    - {name: rest, default: true}\n", dev, direction, rule)))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestRules checks which rules are warned of on a machine with a device behind NAT and bridges, and
// that on an unknown machine only rules by marks are. cli's TestPlacementWarnings reads a real machine.
func TestRules(t *testing.T) {
	lan := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}
	machine := &Machine{
		devices: netdev.Devices{
			{Name: "wan", Kind: "device", Index: 1, Addrs: lan}, {Name: "br0", Kind: "bridge", Index: 2}, {Name: "port", Kind: "veth", Index: 3, Master: 2},
			{Name: "br1", Kind: "bridge", Index: 4, Addrs: lan}, {Name: "port1", Kind: "veth", Index: 5, Master: 4}, {Name: "lo", Kind: "device", Index: 6, Loopback: true},
		},
		sources: []nft.SourceNAT{{Family: unix.AF_INET, Dev: "wan"}},
	}
	for _, c := range []struct {
		machine              *Machine
		dev, direction, rule string
		want                 string // of the only warning; "" for none
	}{
		{machine, "wan", "in", "{mark: 7}, {mark: 8}", "f.yaml:6: in.groups[0].match[0].mark: warning: received packets are classified before the firewall"},
		{machine, "br1", "in", "{mark: 7}", "f.yaml:2: dev: warning: br1 is a bridge: traffic between its ports (port1)"},
		{machine, "br0", "out", "{proto: tcp}", "f.yaml:2: dev: warning: br0 is a bridge on which this machine has no address"},
		{machine, "wan", "out", "{src: 192.168.7.0/24}", "f.yaml:6: out.groups[0].match[0].src: warning: egress packets of wan already have its address 10.0.0.1"},
		{machine, "wan", "in", "{dst: 192.168.7.0/24}", "f.yaml:6: in.groups[0].match[0].dst: warning: ingress packets of wan still have its address 10.0.0.1"},
		{machine, "wan", "out", "{src: 10.0.0.1}, {src: fd00::/8}, {mark: 7}", ""},
		{machine, "lo", "in", "{mark: 7}", ""},
		{nil, "wan", "in", "{mark: 7}", "f.yaml:6: in.groups[0].match[0].mark: warning: received packets"},
		{nil, "wan", "out", "{src: 192.168.7.0/24}", ""},
	} {
		got := c.machine.Rules(parse(t, c.dev, c.direction, c.rule))
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) == 0 || !strings.HasPrefix(got[len(got)-1].String(), c.want)) {
			t.Errorf("%s %s %s: %v, want %q", c.dev, c.direction, c.rule, got, c.want)
		}
	}
	if got := machine.Bypassed("br0"); !strings.Contains(got, "(port)") {
		t.Errorf("br0 is bypassed: %q", got)
	}
	if got := machine.Bypassed("wan") + (*Machine)(nil).Bypassed("br0"); got != "" {
		t.Errorf("wan, or a device of an unknown machine, is bypassed: %q", got)
	}
}

func TestSpeeds(t *testing.T) {
	speed := func(dev string) (unit.Rate, bool) {
		if dev == "tap0" {
			return 0, false
		}
		return map[string]unit.Rate{"slow": 10 * unit.Mbit, "same": 100 * unit.Mbit}[dev], true
	}
	for _, c := range []struct{ dev, direction, want string }{
		{"slow", "out", "f.yaml:4: out.limit: warning: 100Mbit is more than slow's speed of 10Mbit"},
		{"same", "out", ""},
		{"same", "in", "f.yaml:4: in.limit: warning: 100Mbit is not below same's speed of 100Mbit"},
		{"tap0", "out", ""},
	} {
		got := Speeds(parse(t, c.dev, c.direction, "{proto: tcp}"), []string{"slow", "same", "tap0"}, speed)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].String(), c.want)) {
			t.Errorf("%s %s: %v, want %q", c.dev, c.direction, got, c.want)
		}
	}
}
