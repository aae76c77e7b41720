package cli

import (
	"strings"
	"testing"

	"headgate/cli/doctor"
	"headgate/config"
	"headgate/group"
	"headgate/unit"
)

func TestInitText(t *testing.T) {
	ifb := doctor.Check{About: doctor.Machine, Name: "IFB", State: doctor.Missing, Found: "operation not\nsupported", Means: "\"in\" cannot be shaped", Remedy: "CONFIG_IFB"}
	queues := doctor.Check{About: "eth0", Name: "transmit queues", State: doctor.Limited, Found: "8", Means: "all 8 share one lock", Remedy: "none is needed"}
	for _, c := range []struct {
		what    string
		devices []initDevice
		limits  string // out and in of each
	}{
		{"a link of known speed", []initDevice{{name: "eth0", about: "192.0.2.1/24", speed: unit.Gbit}}, "990Mbit 950Mbit"},
		{"an odd speed", []initDevice{{name: "eth0", about: "no address", speed: 2500 * unit.Mbit}}, "2.475Gbit 2.375Gbit"},
		{"a link of unknown speed", []initDevice{{name: "eth0", about: "default route"}}, "10Gbit 10Gbit"},
		{"a kernel without IFB", []initDevice{{name: "eth0", speed: unit.Gbit, findings: []doctor.Check{queues, ifb}}}, "990Mbit"},
		{"names that YAML might misread", []initDevice{{name: "null"}, {name: "123"}, {name: "a@b#c"}, {name: "-"}, {name: `"'`}}, strings.Repeat("10Gbit ", 10)},
	} {
		text := initText(c.devices)
		set, err := config.Parse("init.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: what init writes has mistakes: %v\n%s", c.what, err, text)
			continue
		}
		limits := ""
		for n, i := range set.Interfaces {
			if i.Dev != c.devices[n].name {
				t.Errorf("%s: %q became %q", c.what, c.devices[n].name, i.Dev)
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
	golden(t, "testdata/init.yaml", initText([]initDevice{
		{name: "eth0", about: "192.0.2.1/24, default route", speed: 10 * unit.Gbit, findings: []doctor.Check{queues}}, {name: "wg0", about: "wireguard"},
	}))
}

// TestInitIsReadyForCheckAndPlan takes what init writes through both.
func TestInitIsReadyForCheckAndPlan(t *testing.T) {
	w := newWorld(t, "eth0")
	file := w.write("init.yaml", initText([]initDevice{{name: "eth0", about: "192.0.2.1/24", speed: unit.Gbit}}))
	w.must("check", "-f", file)
	if r := w.must("plan", "-f", file); !strings.Contains(r.out, "990Mbit") {
		t.Errorf("plan of what init wrote:\n%s", r.out)
	}
}

func TestInitOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := writeNew(dir+"/a.yaml", "mine"); err != nil {
		t.Fatal(err)
	}
	if err := writeNew(dir+"/a.yaml", "yours"); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a file that exists: %v", err)
	}
	if got := readFile(dir + "/a.yaml"); got != "mine" {
		t.Errorf("the file was overwritten with %q", got)
	}
}
