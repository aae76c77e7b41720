package service

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/agent/intent"
	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
)

// desiredTest is a desiredState with one local file and a stored state of the controllers.
type desiredTest struct {
	*testing.T
	*desiredState
	file     string
	revision int64
	names    group.AltNames
}

func newDesired(t *testing.T) *desiredTest {
	t.Helper()
	stored, err := remote.OpenIntent(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &desiredTest{T: t, file: filepath.Join(t.TempDir(), "own.yaml")}
	s.desiredState = &desiredState{
		stored: stored, altNames: func() group.AltNames { return s.names }, sets: func([]collective.Policy, map[string]error) {},
		files: func() (config.Set, error) { return config.Load([]string{s.file}, nil) },
	}
	return s
}

// write writes the local file.
func (s *desiredTest) write(text string) {
	s.Helper()
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// receive receives desired state from a controller, given as "DEV LIMIT CONNECTIONS".
func (s *desiredTest) receive(documents ...string) {
	s.Helper()
	s.revision++
	d := &agents.Desired{Fence: &agents.Fence{Epoch: 1, Revision: s.revision}}
	for _, text := range documents {
		dev, rest, _ := strings.Cut(text, " ")
		limit, connections, _ := strings.Cut(rest, " ")
		d.Interfaces = append(d.Interfaces, &agents.Interface{Dev: dev, Revision: s.revision,
			Document: fmt.Appendf(nil, `{"dev": %q, "out": {"limit": %q, "groups": [{"name": "rest", "default": true}]}, "connections": {%s}}`, dev, limit, connections)})
	}
	if _, err := s.stored.Store(d); err != nil {
		s.Fatal(err)
	}
}

// check checks the limit and the origin of a device in the desired state.
func (s *desiredTest) check(set config.Set, dev, limit string, origin intent.Origin) {
	s.Helper()
	i, ok := set.For(dev)
	if got := i.OutTree; !ok || got.Limit.String() != limit {
		s.Errorf("%s: desired %+v, want limit %s", dev, got, limit)
	}
	if got := s.origin(s.names, dev); got != origin {
		s.Errorf("%s: origin %q, want %s", dev, got, origin)
	}
}

const document = "kind: Interface\ndev: %q\nout: {limit: %s, groups: [{name: rest, default: true}]}\n"

// An edited local file takes effect at a reload, not when a controller changes its desired state. An
// error in the file does not delay the controller's changes.
func TestFilesAreReadOnReload(t *testing.T) {
	s := newDesired(t)
	s.write(fmt.Sprintf(document, "eth0", "10Mbit"))
	s.receive("eth1 1Mbit")
	set, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	s.check(set, "eth0", "10Mbit", intent.Local)
	s.check(set, "eth1", "1Mbit", intent.Controller)
	for _, edited := range []string{fmt.Sprintf(document, "eth0", "20Mbit"), "kind: Inter"} {
		s.write(edited)
		s.receive("eth1 2Mbit")
		set = s.latest()
		s.check(set, "eth0", "10Mbit", intent.Local)
		s.check(set, "eth1", "2Mbit", intent.Controller)
	}
	if _, err := s.load(); err == nil {
		t.Error("load of an invalid file returned no error")
	}
	s.check(s.latest(), "eth0", "10Mbit", intent.Local)
	s.write(fmt.Sprintf(document, "eth0", "30Mbit"))
	if set, err = s.load(); err != nil {
		t.Fatal(err)
	}
	s.check(set, "eth0", "30Mbit", intent.Local)
}

// The problems of documents are added to those of devices. A document counts as unparsable only if no
// earlier revision of it could be parsed.
func TestProblems(t *testing.T) {
	s := newDesired(t)
	s.write(fmt.Sprintf(document, "own0", "10Mbit"))
	s.receive("eth0 1Mbit")
	s.receive("eth0 1Moon", "veth* 1Moon", "own0 2Mbit")
	set, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	s.check(set, "eth0", "1Mbit", intent.Controller)
	if got := s.unparsable(); !slices.Equal(got, []string{"veth*"}) {
		t.Errorf("unparsable: %q, want [veth*]", got)
	}
	errs := map[string]string{"eth0": "the kernel denies it", "eth9": "no"}
	if fence := s.addProblems(errs); fence.Revision != 2 {
		t.Errorf("fence: %v, want revision 2", fence)
	}
	for dev, want := range map[string]string{
		"eth0": "the kernel denies it; this version of the agent cannot parse the new document", "veth*": "cannot parse the document",
		"own0": "a local file of the host configures the device", "eth9": "no",
	} {
		if got := errs[dev]; !strings.Contains(got, want) || len(errs) != 4 {
			t.Errorf("problem of %s: %q, want %q; all: %v", dev, got, want, errs)
		}
	}
}

// The connections of a document are assigned in a fixed order.
func TestConnectionsOfDocument(t *testing.T) {
	s := newDesired(t)
	s.write(fmt.Sprintf(document, "own0", "10Mbit"))
	s.receive(`eth0 1Mbit "tcp 10.0.0.2:2 10.0.0.3:3": {"group": "b"}, "tcp 10.0.0.1:1 10.0.0.3:3": {"group": "a"}`)
	if _, err := s.load(); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range s.connections("eth0") {
		got += fmt.Sprintln(c.Conn, c.Group)
	}
	if want := "tcp 10.0.0.1:1 10.0.0.3:3 a\ntcp 10.0.0.2:2 10.0.0.3:3 b\n"; got != want {
		t.Errorf("connections:\n%swant\n%s", got, want)
	}
}

// devices is a kernel that has only a list of devices.
type devices struct {
	agent.Kernel
	all []agent.Device
}

func (d devices) Devices() ([]agent.Device, error) { return d.all, nil }

// Facts have the alternative names of a device, and its owner also if a document has an alternative name.
func TestFactsHaveAlternativeNames(t *testing.T) {
	kernel := devices{all: []agent.Device{{Name: "eth0", AltNames: []string{"enp0s3", "wan"}}, {Name: "eth1", AltNames: []string{"lan1"}}, {Name: "eth2", AltNames: []string{"enp0s5"}}, {Name: "eth3"}, {Name: "eth4"}}}
	s := newDesired(t)
	s.names = agent.Names(kernel.all)
	s.write(fmt.Sprintf(document, "wan", "10Mbit"))
	s.receive("lan* 1Mbit", "eth3 1Mbit", "eth4 1Mbit")
	if _, err := s.load(); err != nil {
		t.Fatal(err)
	}
	h := &host{kernel: kernel, speed: func(string) (unit.Rate, bool) { return 0, false }, origin: s.origin}
	h.setManuallyChanged([]string{"eth4"})
	got := ""
	for _, d := range h.facts().Devices {
		got += fmt.Sprintln(d.Name, d.Altnames, d.Owner)
	}
	if want := "eth0 [enp0s3 wan] local\neth1 [lan1] controller\neth2 [enp0s5] none\neth3 [] controller\neth4 [] local\n"; got != want {
		t.Errorf("facts:\n%s, want\n%s", got, want)
	}
}
