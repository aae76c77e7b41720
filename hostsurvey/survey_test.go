package hostsurvey

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/doctor"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/internal/netdev"
	"headgate.dev/headgate/unit"
)

// machineForTest has one device of each kind, and eth0 with the default route.
func machineForTest() netdev.Devices {
	lan := []netip.Prefix{netip.MustParsePrefix("192.0.2.7/24"), netip.MustParsePrefix("2001:db8::7/64")}
	alone := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	link := netdev.Device{Kind: "device", Up: true, Carrier: true, Bus: true, Metric: -1, MTU: 1500, Speed: unit.Gbit}
	var all netdev.Devices
	add := func(name string, change func(*netdev.Device)) {
		l := link
		l.Name, l.Index = name, len(all)+1
		change(&l)
		all = append(all, l)
	}
	virtual := func(kind string, change func(*netdev.Device)) func(*netdev.Device) {
		return func(l *netdev.Device) {
			l.Kind, l.Bus, l.Speed = kind, false, 0
			change(l)
		}
	}
	as := func(*netdev.Device) {}
	add("eth0", func(l *netdev.Device) { l.Metric, l.Addrs = 100, lan })                             // 1
	add("br0", virtual("bridge", func(l *netdev.Device) { l.Addrs = lan }))                          // 2
	add("bond0", virtual("bond", as))                                                                // 3
	add("bond0.5", virtual("vlan", func(l *netdev.Device) { l.Lower, l.VLAN, l.Addrs = 3, 5, lan })) // 4
	add("cloud0", func(l *netdev.Device) { l.Speed, l.Addrs = 0, lan })                              // 5
	add("down0", func(l *netdev.Device) { l.Up, l.Carrier = false, false })                          // 6
	add("br0.6", virtual("vlan", func(l *netdev.Device) { l.Lower, l.VLAN, l.Addrs = 2, 6, lan }))   // 7
	add("dummy0", virtual("dummy", func(l *netdev.Device) { l.Addrs = lan }))                        // 8
	add("hgi4", virtual("ifb", as))                                                                  // 9
	add("ifb0", virtual("ifb", as))                                                                  // 10
	add("lo", virtual("device", func(l *netdev.Device) { l.Loopback = true }))                       // 11
	add("mac0", virtual("macvlan", func(l *netdev.Device) { l.Lower, l.Addrs = 1, lan }))            // 12
	add("mac1", virtual("macvlan", func(l *netdev.Device) { l.Addrs = lan }))                        // 13
	add("member", func(l *netdev.Device) { l.Master = 3 })                                           // 14
	add("pulled", func(l *netdev.Device) { l.Carrier = false })                                      // 15
	add("port", func(l *netdev.Device) { l.Master = 2 })                                             // 16
	add("tap0", virtual("tap", func(l *netdev.Device) { l.Master = 2 }))                             // 17
	add("veth0", virtual("veth", func(l *netdev.Device) { l.Addrs = lan }))                          // 18
	add("veth1", virtual("veth", func(l *netdev.Device) { l.Addrs = alone }))                        // 19
	add("veth2", virtual("veth", as))                                                                // 20
	add("vrf0", virtual("vrf", as))                                                                  // 21
	add("vxlan0", virtual("vxlan", func(l *netdev.Device) { l.Addrs = lan }))                        // 22
	add("wg0", virtual("wireguard", func(l *netdev.Device) { l.Metric, l.Addrs = 50, lan }))         // 23
	add("eth0.7", virtual("vlan", func(l *netdev.Device) { l.Lower, l.VLAN, l.Addrs = 1, 7, lan }))  // 24
	return all
}

// TestDecisions checks the decision and the reason for each kind of device.
func TestDecisions(t *testing.T) {
	all := machineForTest()
	want := map[string]struct {
		decision Decision
		why      string
	}{
		"eth0":    {Written, ""},
		"br0":     {LeftOut, "leaves through its ports (port, tap0)"},
		"bond0":   {Commented, ""},
		"bond0.5": {LeftOut, "leaves through bond0, where rules can match it (vlan: 5)"},
		"cloud0":  {Commented, ""},
		"down0":   {LeftOut, "\"ip link set down0 up\""},
		"br0.6":   {LeftOut, "its traffic leaves through br0"},
		"dummy0":  {LeftOut, "discards"},
		"hgi4":    {LeftOut, "created by Headgate"},
		"ifb0":    {LeftOut, "an IFB"},
		"lo":      {LeftOut, "loopback"},
		"mac0":    {LeftOut, "leaves through eth0"},
		"mac1":    {Commented, ""},
		"member":  {LeftOut, "a port of bond0"},
		"pulled":  {LeftOut, "no carrier"},
		"port":    {Written, ""},
		"tap0":    {LeftOut, "perspective: guest"},
		"veth0":   {Commented, ""},
		"veth1":   {LeftOut, "perspective: guest"},
		"veth2":   {LeftOut, "perspective: guest"},
		"vrf0":    {LeftOut, "a VRF"},
		"vxlan0":  {LeftOut, "a vxlan: its packets leave through another device"},
		"wg0":     {Commented, ""},
		"eth0.7":  {LeftOut, "vlan: 7"},
	}
	choices := choose(all, nil, nil)
	if len(choices) != len(want) {
		t.Errorf("%d decisions, want %d", len(choices), len(want))
	}
	for _, c := range choices {
		w := want[c.Dev]
		if c.Decision != w.decision || !strings.Contains(c.Why, w.why) || c.Why != "" && w.why == "" {
			t.Errorf("%s is %s (%s), want %s (%s)", c.Dev, c.Decision, c.Why, w.decision, w.why)
		}
	}
	for _, c := range []struct {
		what  string
		asked []string
		given map[string]unit.Rate
		want  map[string]Decision
	}{
		{"devices selected with --dev", []string{"lo", "eth0.7"}, nil, map[string]Decision{"lo": Commented, "eth0.7": Written}},
		{"a device with --speed", []string{"tap0"}, map[string]unit.Rate{"tap0": unit.Gbit}, map[string]Decision{"tap0": Written}},
	} {
		got := map[string]Decision{}
		for _, choice := range choose(all, c.asked, c.given) {
			got[choice.Dev] = choice.Decision
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", c.what, got)
		}
		for dev, decision := range c.want {
			if got[dev] != decision {
				t.Errorf("%s: %s is %s, want %s", c.what, dev, got[dev], decision)
			}
		}
	}
	i := slices.IndexFunc(all, func(l netdev.Device) bool { return l.Name == "cloud0" })
	if c := choose(all, nil, map[string]unit.Rate{"cloud0": 200 * unit.Mbit})[i]; c.Decision != Written || c.Speed != 200*unit.Mbit {
		t.Errorf("a device with --speed is %+v", c)
	}
}

// TestDoctorFindings checks the effect of doctor's findings: foreign traffic control, groups in
// force, and missing features.
func TestDoctorFindings(t *testing.T) {
	check := func(about, name string, state doctor.State, found string) doctor.Check {
		return doctor.Check{About: about, Name: name, State: state, Found: found, Needed: name == "IFB"}
	}
	for _, c := range []struct {
		what    string
		found   doctor.Check
		asked   []string
		want    Decision
		why     string
		in      bool
		finding bool
	}{
		{"nothing", doctor.Check{}, nil, Written, "", true, false},
		{"a foreign qdisc", check("eth0", `traffic control "out"`, doctor.Missing, "root qdisc tbf"), nil, LeftOut, "tbf", false, false},
		{"the same, selected with --dev", check("eth0", `traffic control "out"`, doctor.Missing, "root qdisc tbf"), []string{"eth0"}, Commented, "tbf", true, false},
		{"a foreign filter at ingress", check("eth0", `traffic control "in"`, doctor.Missing, "a filter"), nil, Written, "", false, false},
		{"a kernel without IFB", check(doctor.Machine, "IFB", doctor.Missing, ""), nil, Written, "", false, false},
		{"groups", check("eth0", "groups", doctor.OK, "in force"), nil, LeftOut, "headgate show --dev eth0", false, false},
		{"groups, selected with --dev", check("eth0", "groups", doctor.OK, "in force"), []string{"eth0"}, Written, "this document replaces them", true, false},
		{"no permission", check("eth0", `traffic control "out"`, doctor.Unknown, ""), nil, Written, "", true, false},
		{"one lock", check("eth0", "transmit queues", doctor.Limited, "8"), nil, Written, "", true, true},
		{"an unknown speed", check("eth0", "speed", doctor.Limited, "unknown"), nil, Written, "", true, false},
	} {
		r := &Report{Interfaces: choose(machineForTest()[:1], c.asked, nil)}
		r.addFindings(doctor.Report{Checks: []doctor.Check{c.found}})
		got := r.Interfaces[0]
		if got.Decision != c.want || !strings.Contains(got.Why, c.why) || got.In > 0 != c.in || len(got.Findings) > 0 != c.finding {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
	r := &Report{Interfaces: choose(machineForTest()[:1], nil, nil)}
	r.addFindings(doctor.Report{NotPermitted: true, Checks: []doctor.Check{
		check(doctor.Machine, "fq_codel", doctor.Limited, ""), check(doctor.Machine, "netem", doctor.Limited, ""), check(doctor.Machine, "timers", doctor.OK, ""),
	}})
	if len(r.Findings) != 1 || r.Findings[0].Name != "fq_codel" {
		t.Errorf("findings about the machine are %v", r.Findings)
	}
	if text := r.Text(); !strings.Contains(text, "was not run as root") || !strings.Contains(text, "#   limited: fq_codel") {
		t.Errorf("the text does not mention the missing permission:\n%s", text)
	}
}

// reportForTest returns a report on devices with the given doctor findings.
func reportForTest(links netdev.Devices, given map[string]unit.Rate, found ...doctor.Check) *Report {
	r := &Report{Interfaces: choose(links, nil, given)}
	r.addFindings(doctor.Report{Checks: found})
	return r
}

// namedForTest returns copies of eth0 with other names.
func namedForTest(names ...string) (out netdev.Devices) {
	for i, name := range names {
		l := machineForTest()[0]
		l.Name, l.Index = name, i+1
		out = append(out, l)
	}
	return out
}

func TestText(t *testing.T) {
	ifb := doctor.Check{About: doctor.Machine, Name: "IFB", State: doctor.Missing, Found: "operation not\nsupported", Meaning: "\"in\" cannot be shaped", Remedy: "CONFIG_IFB", Needed: true}
	queues := doctor.Check{About: "eth0", Name: "transmit queues", State: doctor.Limited, Found: "8", Meaning: "all 8 share one lock", Remedy: "none is needed"}
	fast := namedForTest("eth0")
	fast[0].Speed, fast[0].MTU = 10*unit.Gbit, 9000
	odd := namedForTest("null", "123", "a@b#c", "-", `"'`)
	for _, c := range []struct {
		what   string
		report *Report
		limits string // out and in of each
	}{
		{"a link of known speed", reportForTest(machineForTest()[:1], nil), "974.5Mbit 935.1Mbit"},
		{"a fast one with large frames", reportForTest(fast, nil), "9.873Gbit 9.474Gbit"},
		{"a rate set with --speed", reportForTest(machineForTest()[:1], map[string]unit.Rate{"eth0": 200 * unit.Mbit}), "198Mbit 190Mbit"},
		{"a kernel without IFB", reportForTest(machineForTest()[:1], nil, queues, ifb), "974.5Mbit"},
		{"names that YAML might misread", reportForTest(odd, nil), strings.Repeat("974.5Mbit 935.1Mbit ", 5)},
		{"a whole machine", reportForTest(machineForTest(), nil), "974.5Mbit 935.1Mbit 974.5Mbit 935.1Mbit"},
	} {
		text := c.report.Text()
		set, err := config.Parse("init.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: the written configuration has mistakes: %v\n%s", c.what, err, text)
			continue
		}
		names := c.report.Names(Written)
		limits := ""
		for n, i := range set.Interfaces {
			if i.Dev != names[n] {
				t.Errorf("%s: %q became %q", c.what, names[n], i.Dev)
			}
			for _, tree := range []*group.Tree{i.OutTree, i.InTree} {
				if tree != nil {
					limits += tree.Limit.String() + " "
				}
			}
		}
		if strings.TrimSpace(limits) != strings.TrimSpace(c.limits) {
			t.Errorf("%s: limits %s, want %s", c.what, limits, c.limits)
		}
		for line := range strings.Lines(text) {
			if len(strings.TrimSpace(line)) > 82 {
				t.Errorf("%s: a line is too long: %s", c.what, line)
			}
		}
	}
	fq := doctor.Check{About: doctor.Machine, Name: "fq_codel", State: doctor.Limited, Meaning: "flows of one group share one queue", Remedy: "CONFIG_NET_SCH_FQ_CODEL"}
	wire := doctor.Check{About: "veth0", Name: `traffic control "in"`, State: doctor.Missing, Found: "a filter of others"}
	shown := machineForTest()
	golden.Compare(t, "testdata/init.yaml", reportForTest(netdev.Devices{shown[0], shown[10], shown[5], shown[17]}, nil, fq, queues, wire).Text())
}

// TestExamples checks that the commented-out examples are valid once uncommented.
func TestExamples(t *testing.T) {
	text := reportForTest(machineForTest()[:1], nil).Text()
	for _, mark := range []string{"      # ceiling", "      # match", "      #   - "} {
		text = strings.ReplaceAll(text, mark, strings.Replace(mark, "# ", "", 1))
	}
	set, err := config.Parse("init.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if rules := len(set.Interfaces[0].OutTree.Rules) + len(set.Interfaces[0].InTree.Rules); rules != 10 {
		t.Errorf("%d rules, want 10", rules)
	}
	veth := machineForTest()[17:18]
	_, text, _ = strings.Cut(reportForTest(veth, nil).Text(), "# kind")
	var bare strings.Builder
	for line := range strings.Lines("# kind" + text) {
		bare.WriteString(strings.TrimPrefix(line, "# "))
	}
	if _, err := config.Parse("init.yaml", []byte(bare.String())); err == nil || strings.Count(err.Error(), "RATE") != 2 {
		t.Errorf("a document without a speed: %v", err)
	}
	given := strings.ReplaceAll(bare.String(), "limit: RATE", "limit: 100Mbit")
	if _, err := config.Parse("init.yaml", []byte(given)); err != nil {
		t.Errorf("%v\n%s", err, given)
	}
}

func TestSummary(t *testing.T) {
	r := reportForTest(machineForTest()[:2], nil)
	r.File = "groups.yaml"
	if got, want := r.Summary(), "wrote groups.yaml\n  written: eth0\n  left out: br0\nNext: edit it, and\n  headgate check -f groups.yaml\n  headgate plan -f groups.yaml"; got != want {
		t.Errorf("init prints\n%s\nwant\n%s", got, want)
	}
	r = reportForTest(machineForTest()[17:18], nil)
	if got := r.Summary(); !strings.Contains(got, "commented: veth0\nNext: set the rate of the link") {
		t.Errorf("without a known speed init prints\n%s", got)
	}
	err := reportForTest(machineForTest()[10:11], nil).errNoDevice()
	if got := err.Error(); !strings.Contains(got, "\n  lo: loopback") || !strings.Contains(got, "--dev") {
		t.Errorf("without a device to shape init prints\n%s", got)
	}
	text, err := json.Marshal(reportForTest(machineForTest()[:1], nil))
	if want := `"dev":"eth0","about":"192.0.2.7/24, 2001:db8::7/64, default route","decision":"written","speed":"1Gbit","out_limit":"974.5Mbit","in_limit":"935.1Mbit"`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("JSON is %s, %v", text, err)
	}
}
