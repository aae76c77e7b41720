package nft

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// Rules that nft creates are read back from the kernel, in a network namespace of the test.
func TestSources(t *testing.T) {
	l := labtest.Up(t, &lab.Topology{Nodes: []lab.NodeSpec{{Name: "host"}}})
	host := l.Node("host")
	read := func() (out []SourceNAT) {
		t.Helper()
		if err := host.Do(func() (err error) { out, err = SourceNATRules(); return err }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := read(); len(got) > 0 {
		t.Errorf("without rules: %+v", got)
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed")
	}
	for rule, want := range map[string]SourceNAT{
		`ip  nat postrouting oifname "eth0" masquerade`:                     {Family: unix.AF_INET, Dev: "eth0"},
		`ip  nat postrouting oifname "ppp*" ip saddr 10.0.0.0/8 masquerade`: {Family: unix.AF_INET, Dev: "ppp", Begins: true},
		`ip6 nat postrouting oifname != "lo" snat to fd00::1`:               {Family: unix.AF_INET6, Dev: "lo", Except: true},
		`inet nat postrouting masquerade`:                                   {},
	} {
		words := strings.Fields(rule)
		labtest.Run(t, host, "nft", "add", "table", words[0], "nat")
		labtest.Run(t, host, "nft", "add chain "+strings.Join(words[:3], " ")+" { type nat hook postrouting priority srcnat; }")
		labtest.Run(t, host, "nft", "add rule "+rule)
		if got := read(); !slices.Equal(got, []SourceNAT{want}) {
			t.Errorf("%s: %+v, want %+v", rule, got, want)
		}
		labtest.Run(t, host, "nft", "flush", "ruleset")
	}
	labtest.Run(t, host, "nft", "add table ip nat")
	labtest.Run(t, host, "nft", "add chain ip nat prerouting { type nat hook prerouting priority dstnat; }")
	labtest.Run(t, host, "nft", `add rule ip nat prerouting iifname "eth0" dnat to 10.0.0.1`)
	if got := read(); len(got) > 0 {
		t.Errorf("a DNAT rule is reported as SNAT: %+v", got)
	}
}

func TestOn(t *testing.T) {
	for _, c := range []struct {
		s    SourceNAT
		dev  string
		want bool
	}{
		{SourceNAT{}, "eth0", true}, {SourceNAT{Dev: "eth0"}, "eth0", true}, {SourceNAT{Dev: "eth0"}, "eth01", false}, {SourceNAT{Dev: "ppp", Begins: true}, "ppp7", true},
		{SourceNAT{Dev: "lo", Except: true}, "eth0", true}, {SourceNAT{Dev: "lo", Except: true}, "lo", false},
	} {
		if c.s.Matches(c.dev) != c.want {
			t.Errorf("%+v applies to %s: %v", c.s, c.dev, !c.want)
		}
	}
}
