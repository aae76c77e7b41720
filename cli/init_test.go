package cli

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"headgate/cli/doctor"
	"headgate/config"
	"headgate/group"
	"headgate/unit"
)

// machineForTest has one device of each kind, and eth0 with the default route.
func machineForTest() initLinks {
	lan := []netip.Prefix{netip.MustParsePrefix("192.0.2.7/24"), netip.MustParsePrefix("2001:db8::7/64")}
	alone := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	link := initLink{kind: "device", up: true, carrier: true, bus: true, metric: -1, mtu: 1500, speed: unit.Gbit}
	var all initLinks
	add := func(name string, change func(*initLink)) {
		l := link
		l.name, l.index = name, len(all)+1
		change(&l)
		all = append(all, l)
	}
	virtual := func(kind string, change func(*initLink)) func(*initLink) {
		return func(l *initLink) {
			l.kind, l.bus, l.speed = kind, false, 0
			change(l)
		}
	}
	as := func(*initLink) {}
	add("eth0", func(l *initLink) { l.metric, l.addrs = 100, lan })                             // 1
	add("br0", virtual("bridge", func(l *initLink) { l.addrs = lan }))                          // 2
	add("bond0", virtual("bond", as))                                                           // 3
	add("bond0.5", virtual("vlan", func(l *initLink) { l.lower, l.vlan, l.addrs = 3, 5, lan })) // 4
	add("cloud0", func(l *initLink) { l.speed, l.addrs = 0, lan })                              // 5
	add("down0", func(l *initLink) { l.up, l.carrier = false, false })                          // 6
	add("br0.6", virtual("vlan", func(l *initLink) { l.lower, l.vlan, l.addrs = 2, 6, lan }))   // 7
	add("dummy0", virtual("dummy", func(l *initLink) { l.addrs = lan }))                        // 8
	add("hgi4", virtual("ifb", as))                                                             // 9
	add("ifb0", virtual("ifb", as))                                                             // 10
	add("lo", virtual("device", func(l *initLink) { l.loopback = true }))                       // 11
	add("mac0", virtual("macvlan", func(l *initLink) { l.lower, l.addrs = 1, lan }))            // 12
	add("mac1", virtual("macvlan", func(l *initLink) { l.addrs = lan }))                        // 13
	add("member", func(l *initLink) { l.master = 3 })                                           // 14
	add("pulled", func(l *initLink) { l.carrier = false })                                      // 15
	add("port", func(l *initLink) { l.master = 2 })                                             // 16
	add("tap0", virtual("tap", func(l *initLink) { l.master = 2 }))                             // 17
	add("veth0", virtual("veth", func(l *initLink) { l.addrs = lan }))                          // 18
	add("veth1", virtual("veth", func(l *initLink) { l.addrs = alone }))                        // 19
	add("veth2", virtual("veth", as))                                                           // 20
	add("vrf0", virtual("vrf", as))                                                             // 21
	add("vxlan0", virtual("vxlan", func(l *initLink) { l.addrs = lan }))                        // 22
	add("wg0", virtual("wireguard", func(l *initLink) { l.metric, l.addrs = 50, lan }))         // 23
	add("eth0.7", virtual("vlan", func(l *initLink) { l.lower, l.vlan, l.addrs = 1, 7, lan }))  // 24
	return all
}

// TestInitDecisions checks the decision and the reason for each kind of device.
func TestInitDecisions(t *testing.T) {
	all := machineForTest()
	want := map[string]struct {
		decision initDecision
		why      string
	}{
		"eth0":    {written, ""},
		"br0":     {leftOut, "leaves through its ports (port, tap0)"},
		"bond0":   {commented, ""},
		"bond0.5": {leftOut, "leaves through bond0, where rules can match it (vlan: 5)"},
		"cloud0":  {commented, ""},
		"down0":   {leftOut, "\"ip link set down0 up\""},
		"br0.6":   {leftOut, "its traffic leaves through br0"},
		"dummy0":  {leftOut, "discards"},
		"hgi4":    {leftOut, "created by Headgate"},
		"ifb0":    {leftOut, "an IFB"},
		"lo":      {leftOut, "loopback"},
		"mac0":    {leftOut, "leaves through eth0"},
		"mac1":    {commented, ""},
		"member":  {leftOut, "a port of bond0"},
		"pulled":  {leftOut, "no carrier"},
		"port":    {written, ""},
		"tap0":    {leftOut, "perspective: guest"},
		"veth0":   {commented, ""},
		"veth1":   {leftOut, "perspective: guest"},
		"veth2":   {leftOut, "perspective: guest"},
		"vrf0":    {leftOut, "a VRF"},
		"vxlan0":  {leftOut, "a vxlan: its packets leave through another device"},
		"wg0":     {commented, ""},
		"eth0.7":  {leftOut, "vlan: 7"},
	}
	choices := all.choose(nil, nil)
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
		given speedFlag
		want  map[string]initDecision
	}{
		{"devices selected with --dev", []string{"lo", "eth0.7"}, nil, map[string]initDecision{"lo": commented, "eth0.7": written}},
		{"a device with --speed", []string{"tap0"}, speedFlag{"tap0": unit.Gbit}, map[string]initDecision{"tap0": written}},
	} {
		got := map[string]initDecision{}
		for _, choice := range all.choose(c.asked, c.given) {
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
	i := slices.IndexFunc(all, func(l initLink) bool { return l.name == "cloud0" })
	if c := all.choose(nil, speedFlag{"cloud0": 200 * unit.Mbit})[i]; c.Decision != written || c.Speed != 200*unit.Mbit {
		t.Errorf("a device with --speed is %+v", c)
	}
}

// TestInitDoctorFindings checks the effect of doctor's findings: foreign traffic control, groups in
// force, and missing features.
func TestInitDoctorFindings(t *testing.T) {
	check := func(about, name string, state doctor.State, found string) doctor.Check {
		return doctor.Check{About: about, Name: name, State: state, Found: found, Needed: name == "IFB"}
	}
	for _, c := range []struct {
		what    string
		found   doctor.Check
		asked   []string
		want    initDecision
		why     string
		in      bool
		finding bool
	}{
		{"nothing", doctor.Check{}, nil, written, "", true, false},
		{"a foreign qdisc", check("eth0", `room for "out"`, doctor.Missing, "root qdisc tbf"), nil, leftOut, "tbf", false, false},
		{"the same, selected with --dev", check("eth0", `room for "out"`, doctor.Missing, "root qdisc tbf"), []string{"eth0"}, commented, "tbf", true, false},
		{"a foreign filter at ingress", check("eth0", `room for "in"`, doctor.Missing, "a filter"), nil, written, "", false, false},
		{"a kernel without IFB", check(doctor.Machine, "IFB", doctor.Missing, ""), nil, written, "", false, false},
		{"groups", check("eth0", "groups", doctor.OK, "in force"), nil, leftOut, "headgate show --dev eth0", false, false},
		{"groups, selected with --dev", check("eth0", "groups", doctor.OK, "in force"), []string{"eth0"}, written, "this document replaces them", true, false},
		{"no permission", check("eth0", `room for "out"`, doctor.Unknown, ""), nil, written, "", true, false},
		{"one lock", check("eth0", "transmit queues", doctor.Limited, "8"), nil, written, "", true, true},
		{"an unknown speed", check("eth0", "speed", doctor.Limited, "unknown"), nil, written, "", true, false},
	} {
		r := &initReport{Interfaces: machineForTest()[:1].choose(c.asked, nil)}
		r.addFindings(doctor.Report{Checks: []doctor.Check{c.found}})
		got := r.Interfaces[0]
		if got.Decision != c.want || !strings.Contains(got.Why, c.why) || got.In > 0 != c.in || len(got.Findings) > 0 != c.finding {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
	r := &initReport{Interfaces: machineForTest()[:1].choose(nil, nil)}
	r.addFindings(doctor.Report{NotPermitted: true, Checks: []doctor.Check{
		check(doctor.Machine, "fq_codel", doctor.Limited, ""), check(doctor.Machine, "netem", doctor.Limited, ""), check(doctor.Machine, "timers", doctor.OK, ""),
	}})
	if len(r.Findings) != 1 || r.Findings[0].Name != "fq_codel" {
		t.Errorf("findings about the machine are %v", r.Findings)
	}
	if text := r.text(); !strings.Contains(text, "was not run as root") || !strings.Contains(text, "#   limited: fq_codel") {
		t.Errorf("the text does not mention the missing permission:\n%s", text)
	}
}

// initForTest returns a report on devices with the given doctor findings.
func initForTest(links initLinks, given speedFlag, found ...doctor.Check) *initReport {
	r := &initReport{Interfaces: links.choose(nil, given)}
	r.addFindings(doctor.Report{Checks: found})
	return r
}

// namedForTest returns copies of eth0 with other names.
func namedForTest(names ...string) (out initLinks) {
	for i, name := range names {
		l := machineForTest()[0]
		l.name, l.index = name, i+1
		out = append(out, l)
	}
	return out
}

func TestInitText(t *testing.T) {
	ifb := doctor.Check{About: doctor.Machine, Name: "IFB", State: doctor.Missing, Found: "operation not\nsupported", Meaning: "\"in\" cannot be shaped", Remedy: "CONFIG_IFB", Needed: true}
	queues := doctor.Check{About: "eth0", Name: "transmit queues", State: doctor.Limited, Found: "8", Meaning: "all 8 share one lock", Remedy: "none is needed"}
	fast := namedForTest("eth0")
	fast[0].speed, fast[0].mtu = 10*unit.Gbit, 9000
	odd := namedForTest("null", "123", "a@b#c", "-", `"'`)
	for _, c := range []struct {
		what   string
		report *initReport
		limits string // out and in of each
	}{
		{"a link of known speed", initForTest(machineForTest()[:1], nil), "974.5Mbit 935.1Mbit"},
		{"a fast one with large frames", initForTest(fast, nil), "9.873Gbit 9.474Gbit"},
		{"a rate set with --speed", initForTest(machineForTest()[:1], speedFlag{"eth0": 200 * unit.Mbit}), "198Mbit 190Mbit"},
		{"a kernel without IFB", initForTest(machineForTest()[:1], nil, queues, ifb), "974.5Mbit"},
		{"names that YAML might misread", initForTest(odd, nil), strings.Repeat("974.5Mbit 935.1Mbit ", 5)},
		{"a whole machine", initForTest(machineForTest(), nil), "974.5Mbit 935.1Mbit 974.5Mbit 935.1Mbit"},
	} {
		text := c.report.text()
		set, err := config.Parse("init.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: the written configuration has mistakes: %v\n%s", c.what, err, text)
			continue
		}
		names := c.report.names(written)
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
	wire := doctor.Check{About: "veth0", Name: `room for "in"`, State: doctor.Missing, Found: "a filter of others"}
	shown := machineForTest()
	golden(t, "testdata/init.yaml", initForTest(initLinks{shown[0], shown[10], shown[5], shown[17]}, nil, fq, queues, wire).text())
}

// TestInitExamples checks that the commented-out examples are valid once uncommented.
func TestInitExamples(t *testing.T) {
	text := initForTest(machineForTest()[:1], nil).text()
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
	_, text, _ = strings.Cut(initForTest(veth, nil).text(), "# kind")
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

// TestInitPassesCheckAndPlan runs check and plan with the configuration that init writes.
func TestInitPassesCheckAndPlan(t *testing.T) {
	w := newWorld(t, "eth0")
	file := w.write("init.yaml", initForTest(machineForTest()[:1], nil).text())
	w.must("check", "-f", file)
	if r := w.must("plan", "-f", file); !strings.Contains(r.out, "974.5Mbit") {
		t.Errorf("plan of the written configuration:\n%s", r.out)
	}
	file = w.write("comments.yaml", initForTest(machineForTest()[17:18], nil).text())
	if r := w.run("check", "-f", file); r.code != exitUsage || !strings.Contains(r.err, "every line is a comment") {
		t.Errorf("check of a file with only comments: exit %d: %s", r.code, r.err)
	}
}

func TestInitSummary(t *testing.T) {
	r := initForTest(machineForTest()[:2], nil)
	r.File = "groups.yaml"
	if got, want := r.next(), "wrote groups.yaml\n  written: eth0\n  left out: br0\nNext: edit it, and\n  headgate check -f groups.yaml\n  headgate plan -f groups.yaml"; got != want {
		t.Errorf("init prints\n%s\nwant\n%s", got, want)
	}
	r = initForTest(machineForTest()[17:18], nil)
	if got := r.next(); !strings.Contains(got, "commented: veth0\nNext: set the rate of the link") {
		t.Errorf("without a known speed init prints\n%s", got)
	}
	err := initForTest(machineForTest()[10:11], nil).errNoDevice()
	if got := err.Error(); !strings.Contains(got, "\n  lo: loopback") || !strings.Contains(got, "--dev") {
		t.Errorf("without a device to shape init prints\n%s", got)
	}
	text, err := json.Marshal(initForTest(machineForTest()[:1], nil))
	if want := `"dev":"eth0","about":"192.0.2.7/24, 2001:db8::7/64, default route","decision":"written","speed":"1Gbit","out_limit":"974.5Mbit","in_limit":"935.1Mbit"`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("JSON is %s, %v", text, err)
	}
}

func TestInitUsage(t *testing.T) {
	w := newWorld(t)
	for args, want := range map[string]string{
		"--speed eth0":          "eth0=1Gbit",
		"--speed eth0=1000":     "100Mbit",
		"--speed eth0=0bit":     "rate is 0",
		"--output frob":         "table, json or yaml",
		"--dev x -f /dev/null/": "no such device",
	} {
		if r := w.run(append([]string{"init"}, strings.Fields(args)...)...); r.code == exitOK || !strings.Contains(r.err, want) {
			t.Errorf("init %s: exit %d: %s", args, r.code, r.err)
		}
	}
}

func TestInitDoesNotOverwrite(t *testing.T) {
	dir := t.TempDir()
	if err := writeNew(dir+"/a.yaml", "mine"); err != nil {
		t.Fatal(err)
	}
	if err := writeNew(dir+"/a.yaml", "yours"); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a file that exists: %v", err)
	}
	if got := readFile(dir + "/a.yaml"); got != "mine" {
		t.Errorf("the file was overwritten with %q", got)
	}
}
