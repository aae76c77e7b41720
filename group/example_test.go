package group_test

import (
	"fmt"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// amount parses a guarantee or a ceiling that is known to be correct.
func amount(text string) group.Amount {
	a, err := group.ParseAmount(text)
	if err != nil {
		panic(err)
	}
	return a
}

// uplink returns the groups of a link of 1 Gbit/s.
func uplink(guaranteeOfWeb string) group.Interface {
	https := group.Selector{Proto: []uint8{group.TCP}, DPort: []group.PortRange{group.SingleRange(443)}}
	return group.Interface{Dev: "eth0", Out: &group.Direction{Limit: unit.Gbit, Groups: []group.Group{
		{Name: "web", Guarantee: amount(guaranteeOfWeb), Match: []group.Selector{https}},
		{Name: "backup", Guarantee: amount("100Mbit"), Ceiling: amount("30%"), Match: []group.Selector{{DSCP: []group.Range{group.SingleRange(8)}}}},
		{Name: "rest", Default: true},
	}}}
}

// A configuration is validated and resolved: shares become rates, and rules become one list.
func Example() {
	eth0, problems := uplink("40%").Resolve()
	fmt.Println("problems:", len(problems))
	for _, n := range eth0.OutTree.Nodes {
		fmt.Println(n.Path, "has a guarantee of", n.Guarantee, "and a ceiling of", n.Ceiling)
	}
	for _, text := range []string{"tcp 10.0.0.1:50000 192.0.2.1:443", "udp 10.0.0.1:50000 192.0.2.1:53"} {
		packet, err := group.ParsePacket(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, leaf := eth0.OutTree.Classify(packet)
		fmt.Println(packet, "is in", eth0.OutTree.Nodes[leaf].Path)
	}
	// Output:
	// problems: 0
	// web has a guarantee of 400Mbit and a ceiling of 1Gbit
	// backup has a guarantee of 100Mbit and a ceiling of 300Mbit
	// rest has a guarantee of 0bit and a ceiling of 1Gbit
	// tcp 10.0.0.1:50000 192.0.2.1:443 is in web
	// udp 10.0.0.1:50000 192.0.2.1:53 is in rest
}

// Each problem names the user's key and a remedy.
func ExampleInterface_Resolve() {
	_, problems := uplink("950Mbit").Resolve()
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output: out.groups: guarantees total 1.05Gbit of the limit, which has 1Gbit: lower them to 1Gbit or less
}

func ExampleDiff() {
	before, _ := uplink("40%").Resolve()
	after, _ := uplink("50%").Resolve()
	for _, change := range group.Diff("out", before.OutTree, after.OutTree) {
		fmt.Println(change)
	}
	// Output: change out group web: guarantee 400Mbit -> 500Mbit
}

// A selector matches a packet if every field that is set has one of its values.
func ExampleSelector_Matches() {
	var s group.Selector
	for _, f := range [][2]string{{"proto", "tcp"}, {"dst", "10.0.0.0/8"}, {"dport", "8000-8099"}} {
		if err := group.FieldNamed(f[0]).Parse(&s, f[1]); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(s)
	for _, text := range []string{"tcp 192.0.2.1:50000 10.1.2.3:8080", "tcp 192.0.2.1:50000 10.1.2.3:22"} {
		packet, err := group.ParsePacket(text)
		fmt.Println(s.Matches(packet), err)
	}
	// Output:
	// proto tcp dst 10.0.0.0/8 dport 8000-8099
	// true <nil>
	// false <nil>
}

// The name of a device precedes its alternative names, which precede patterns.
func ExampleAltNames_Of() {
	names := group.AltNames{"eth0": {"wan"}}
	documents := []string{"eth*", "wan"}
	for _, dev := range []string{"eth0", "eth1"} {
		fmt.Println(dev, "is configured by", documents[names.Of(dev, documents)])
	}
	// Output:
	// eth0 is configured by wan
	// eth1 is configured by eth*
}
