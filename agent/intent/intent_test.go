package intent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// documents parses documents, each given as "DEV LIMIT".
func documents(t *testing.T, origin Origin, limits ...string) (out []Document) {
	t.Helper()
	for _, l := range limits {
		dev, limit, _ := strings.Cut(l, " ")
		set, err := config.Parse("test.yaml", fmt.Appendf(nil, "kind: Interface\ndev: %q\nout: {limit: %s, groups: [{name: rest, default: true}]}\n", dev, limit))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Document{Interface: set.Interfaces[0], Origin: origin})
	}
	return out
}

func TestMerge(t *testing.T) {
	names := group.AltNames{"eth0": {"enp0s3", "wan"}, "eth1": {"lan1"}, "eth2": {"wan5", "enp0s5"}}
	invalid := errors.New("cannot parse the document")
	for _, c := range []struct {
		name               string
		names              group.AltNames
		files, controllers []string
		errors             []string // documents of controllers that cannot be parsed
		// limits are the limit and the origin in force, by kernel name.
		limits     map[string]string
		problems   map[string]string
		unparsable []string
	}{
		{name: "nothing", limits: map[string]string{"eth0": ""}},
		{
			name: "one source each", files: []string{"eth0 10Mbit"}, controllers: []string{"eth1 1Mbit"},
			limits: map[string]string{"eth0": "10Mbit local", "eth1": "1Mbit controller", "eth2": ""},
		},
		{
			name: "files take precedence", files: []string{"eth0 10Mbit"}, controllers: []string{"eth0 1Mbit"},
			limits:   map[string]string{"eth0": "10Mbit local"},
			problems: map[string]string{"eth0": "a local file of the host configures the device (eth0) and takes precedence"},
		},
		{
			name: "a pattern of a file precedes a name", files: []string{"veth* 10Mbit"}, controllers: []string{"veth0 1Mbit", "ve* 2Mbit", "eth0 3Mbit"},
			limits:   map[string]string{"veth0": "10Mbit local", "veth1": "10Mbit local", "ve1": "2Mbit controller", "eth0": "3Mbit controller"},
			problems: map[string]string{"veth0": "a local file of the host configures the device (veth*)"},
		},
		{
			name: "the same pattern", files: []string{"veth* 10Mbit"}, controllers: []string{"veth* 1Mbit"},
			limits:   map[string]string{"veth0": "10Mbit local"},
			problems: map[string]string{"veth*": "a local file of the host configures the device (veth*)"},
		},
		{
			name: "a pattern that includes the other", files: []string{"ve* 10Mbit"}, controllers: []string{"veth* 1Mbit"},
			limits: map[string]string{"veth0": "10Mbit local", "ve0": "10Mbit local"},
		},
		{
			name: "a name precedes a pattern of its source", controllers: []string{"eth* 1Mbit", "eth1 2Mbit"},
			limits: map[string]string{"eth0": "1Mbit controller", "eth1": "2Mbit controller"},
		},
		{
			name: "files take precedence by any name", names: names,
			files: []string{"wan 10Mbit", "lan* 20Mbit"}, controllers: []string{"eth0 1Mbit", "eth1 2Mbit"},
			limits: map[string]string{"eth0": "10Mbit local", "eth1": "20Mbit local"},
			problems: map[string]string{
				"eth0": "a local file of the host configures the device (wan)", "eth1": "a local file of the host configures the device (lan*)",
			},
		},
		{
			name: "the same device, two alternative names", names: names, files: []string{"wan 10Mbit"}, controllers: []string{"enp0s3 1Mbit"},
			limits:   map[string]string{"eth0": "10Mbit local"},
			problems: map[string]string{"enp0s3": "a local file of the host configures the device (wan)"},
		},
		{
			name: "the first of two documents of controllers", names: names, controllers: []string{"enp0s5 3Mbit", "wan5 4Mbit"},
			limits:   map[string]string{"eth2": "3Mbit controller"},
			problems: map[string]string{"wan5": "the device has another document under the name enp0s5, which takes precedence"},
		},
		{
			name: "a kernel name precedes an alternative name", names: names, controllers: []string{"enp0s5 3Mbit", "eth2 4Mbit"},
			limits:   map[string]string{"eth2": "4Mbit controller"},
			problems: map[string]string{"enp0s5": "the device has another document under the name eth2, which takes precedence"},
		},
		{
			name: "two files with names of one device", names: names, files: []string{"wan 10Mbit", "enp0s3 20Mbit"},
			limits: map[string]string{"eth0": "10Mbit local"}, // the agent reports it
		},
		{
			name: "unparsable, with and without an earlier revision", files: []string{"own0 10Mbit"},
			controllers: []string{"eth0 1Mbit"}, errors: []string{"eth0", "veth*", "br0"},
			limits:     map[string]string{"eth0": "1Mbit controller", "veth0": ""},
			problems:   map[string]string{"eth0": invalid.Error(), "veth*": invalid.Error(), "br0": invalid.Error()},
			unparsable: []string{"br0", "veth*"},
		},
		{
			name: "unparsable, and a file takes precedence", files: []string{"eth0 10Mbit"}, controllers: []string{"eth0 1Mbit"}, errors: []string{"eth0"},
			limits:   map[string]string{"eth0": "10Mbit local"},
			problems: map[string]string{"eth0": "a local file of the host configures the device (eth0)"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := map[string]error{}
			for _, dev := range c.errors {
				wrong[dev] = invalid
			}
			m := Merge(c.names, Source{Documents: documents(t, Local, c.files...)}, Source{documents(t, Controller, c.controllers...), wrong})
			check(t, m, c.names, c.limits)
			for _, p := range m.Problems {
				want, ok := c.problems[p.Dev]
				if !ok || !strings.Contains(p.Err.Error(), want) {
					t.Errorf("problem of %s: %v, want %q", p.Dev, p.Err, want)
				}
			}
			if len(m.Problems) != len(c.problems) {
				t.Errorf("problems: %v, want %v", m.Problems, c.problems)
			}
			if !slices.Equal(m.Unparsable, c.unparsable) {
				t.Errorf("unparsable: %q, want %q", m.Unparsable, c.unparsable)
			}
		})
	}
}

// check checks the limits and origins, in the merged documents and in the set that the agent applies.
func check(t *testing.T, m Merged, names group.AltNames, limits map[string]string) {
	t.Helper()
	set, _ := config.Set{Interfaces: m.Interfaces()}.WithAltNames(names)
	for dev, want := range limits {
		got := ""
		if d, ok := m.For(names, dev); ok {
			got = fmt.Sprint(d.OutTree.Limit, " ", d.Origin)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", dev, got, want)
		}
		limit, _, _ := strings.Cut(want, " ")
		if i, ok := set.For(dev); ok != (limit != "") || ok && i.OutTree.Limit.String() != limit {
			t.Errorf("the agent applies %+v to %s, want limit %q", i.OutTree, dev, limit)
		}
	}
}

// Any number of sources is merged, and each takes precedence over all that follow.
func TestMergeThreeSources(t *testing.T) {
	third := Origin("reservation")
	m := Merge(nil,
		Source{Documents: documents(t, Local, "eth0 10Mbit")},
		Source{Documents: documents(t, Controller, "eth1 1Mbit", "veth* 2Mbit")},
		Source{Documents: documents(t, third, "eth0 5Mbit", "eth1 6Mbit", "eth2 7Mbit", "veth3 8Mbit")},
	)
	check(t, m, nil, map[string]string{"eth0": "10Mbit local", "eth1": "1Mbit controller", "eth2": "7Mbit reservation", "veth3": "2Mbit controller"})
	got := ""
	for _, p := range m.Problems {
		got += fmt.Sprintln(p.Dev, p.Err)
	}
	const want = "eth0 a local file of the host configures the device (eth0) and takes precedence\n" +
		"eth1 the controller configures the device (eth1) and takes precedence\n" +
		"veth3 the controller configures the device (veth*) and takes precedence\n"
	if got != want {
		t.Errorf("problems:\n%swant\n%s", got, want)
	}
}

// Connections are found by the name in the document. Those of a document without effect are not assigned.
func TestConnections(t *testing.T) {
	d := documents(t, Controller, "eth0 1Mbit", "eth1 1Mbit")
	for n := range d {
		d[n].Connections = []shaper.Assignment{{Group: fmt.Sprint("group", n)}}
	}
	m := Merge(nil, Source{Documents: documents(t, Local, "eth0 10Mbit")}, Source{Documents: d})
	if got := m.Connections("eth1"); len(got) != 1 || got[0].Group != "group1" {
		t.Errorf("connections of eth1: %v", got)
	}
	for _, dev := range []string{"eth0", "eth2"} {
		if got := m.Connections(dev); got != nil {
			t.Errorf("connections of %s: %v, want none", dev, got)
		}
	}
}
