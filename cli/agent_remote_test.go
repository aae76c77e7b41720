package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate/agent"
	"headgate/agent/remote"
	"headgate/agent/sets"
	"headgate/api/agents"
	"headgate/config"
	"headgate/unit"
)

// remoteAgentTest is a remoteAgent with one local file and a stored intent of a controller.
type remoteAgentTest struct {
	*testing.T
	*remoteAgent
	file     string
	revision int64
}

func newOfService(t *testing.T) *remoteAgentTest {
	t.Helper()
	intent, err := remote.OpenIntent(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &remoteAgentTest{T: t, file: filepath.Join(t.TempDir(), "own.yaml")}
	s.remoteAgent = &remoteAgent{kernel: devices{}, intent: intent, waitSets: sets.New(), files: func() (config.Set, error) { return read([]string{s.file}, nil) }}
	return s
}

// write writes the local file.
func (s *remoteAgentTest) write(text string) {
	s.Helper()
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// wants receives desired state from a controller, given as "DEV LIMIT".
func (s *remoteAgentTest) wants(limits ...string) {
	s.Helper()
	s.revision++
	d := &agents.Desired{Fence: &agents.Fence{Epoch: 1, Revision: s.revision}}
	for _, l := range limits {
		dev, limit, _ := strings.Cut(l, " ")
		d.Interfaces = append(d.Interfaces, &agents.Interface{Dev: dev, Revision: s.revision,
			Document: fmt.Appendf(nil, `{"dev": %q, "out": {"limit": %q, "groups": [{"name": "rest", "default": true}]}}`, dev, limit)})
	}
	if _, err := s.intent.Store(d); err != nil {
		s.Fatal(err)
	}
}

// gives checks the limit and the owner of a device in the desired state.
func (s *remoteAgentTest) gives(set config.Set, dev, limit, owner string) {
	s.Helper()
	i, ok := set.For(dev)
	if got := i.OutTree; !ok || got.Limit.String() != limit {
		s.Errorf("%s: desired %+v, want limit %s", dev, got, limit)
	}
	if got := s.owners[s.documentOf(dev, nil)]; got != owner {
		s.Errorf("%s: owner %q, want %s", dev, got, owner)
	}
}

const inForce = "kind: Interface\ndev: %q\nout: {limit: %s, groups: [{name: rest, default: true}]}\n"

// An edited local file takes effect at a reload, not when a controller changes its desired state. An
// error in the file does not delay the controller's changes.
func TestFilesAreReadOnReload(t *testing.T) {
	s := newOfService(t)
	s.write(fmt.Sprintf(inForce, "eth0", "10Mbit"))
	s.wants("eth1 1Mbit")
	set, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	s.gives(set, "eth0", "10Mbit", "local")
	s.gives(set, "eth1", "1Mbit", "controller")
	for _, edited := range []string{fmt.Sprintf(inForce, "eth0", "20Mbit"), "kind: Inter"} {
		s.write(edited)
		s.wants("eth1 2Mbit")
		set = s.desiredState()
		s.gives(set, "eth0", "10Mbit", "local")
		s.gives(set, "eth1", "2Mbit", "controller")
	}
	if _, err := s.load(); err == nil {
		t.Error("load of an invalid file returned no error")
	}
	s.gives(s.desiredState(), "eth0", "10Mbit", "local")
	s.write(fmt.Sprintf(inForce, "eth0", "30Mbit"))
	if set, err = s.load(); err != nil {
		t.Fatal(err)
	}
	s.gives(set, "eth0", "30Mbit", "local")
}

// Local files take precedence over controllers' documents, also where the local file has a pattern.
func TestFilesComeFirst(t *testing.T) {
	s := newOfService(t)
	s.write(fmt.Sprintf(inForce, "veth*", "10Mbit"))
	s.wants("veth0 1Mbit", "ve* 2Mbit", "eth0 3Mbit")
	set, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	s.gives(set, "veth0", "10Mbit", "local")
	s.gives(set, "veth1", "10Mbit", "local")
	s.gives(set, "ve1", "2Mbit", "controller")
	s.gives(set, "eth0", "3Mbit", "controller")
	if got := s.troubles["veth0"]; !strings.Contains(got, "a local file of the host configures the device (veth*)") || len(s.troubles) != 1 {
		t.Errorf("troubles: %v", s.troubles)
	}
}

// Local files take precedence whichever of its names names a device. Of two documents of controllers
// for one device the first applies.
func TestFilesComeFirstByAnyName(t *testing.T) {
	s := newOfService(t)
	s.kernel = devices{all: []agent.Device{{Name: "eth0", AltNames: []string{"enp0s3", "wan"}}, {Name: "eth1", AltNames: []string{"lan1"}}, {Name: "eth2", AltNames: []string{"wan5", "enp0s5"}}}}
	s.write(fmt.Sprintf(inForce, "wan", "10Mbit") + "---\n" + fmt.Sprintf(inForce, "lan*", "20Mbit"))
	s.wants("eth0 1Mbit", "eth1 2Mbit", "enp0s5 3Mbit", "wan5 4Mbit")
	set, err := s.load()
	if err == nil {
		set, err = set.WithAltNames(agent.Names(s.kernel.(devices).all))
	}
	if err != nil {
		t.Fatal(err)
	}
	for dev, limit := range map[string]string{"eth0": "10Mbit", "eth1": "20Mbit", "eth2": "3Mbit"} {
		if i, ok := set.For(dev); !ok || i.OutTree.Limit.String() != limit {
			t.Errorf("%s: desired %+v, want limit %s", dev, i.OutTree, limit)
		}
	}
	for dev, want := range map[string]string{
		"eth0": "a local file of the host configures the device (wan)", "eth1": "a local file of the host configures the device (lan*)",
		"wan5": "the device has another document under the name enp0s5",
	} {
		if got := s.troubles[dev]; !strings.Contains(got, want) || len(s.troubles) != 3 {
			t.Errorf("trouble of %s: %q, want %q; all: %v", dev, got, want, s.troubles)
		}
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
	s := newOfService(t)
	s.app = &app{speed: func(string) (unit.Rate, bool) { return 0, false }}
	s.kernel = devices{all: []agent.Device{{Name: "eth0", AltNames: []string{"enp0s3", "wan"}}, {Name: "eth1", AltNames: []string{"lan1"}}, {Name: "eth2", AltNames: []string{"enp0s5"}}, {Name: "eth3"}}}
	s.write(fmt.Sprintf(inForce, "wan", "10Mbit"))
	s.wants("lan* 1Mbit", "eth3 1Mbit")
	if _, err := s.load(); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, d := range s.facts().Devices {
		got += fmt.Sprintln(d.Name, d.Altnames, d.Owner)
	}
	if want := "eth0 [enp0s3 wan] local\neth1 [lan1] controller\neth2 [enp0s5] nobody\neth3 [] controller\n"; got != want {
		t.Errorf("facts:\n%s, want\n%s", got, want)
	}
}

// The end of a measured path has all names of its devices, so that the controller finds a document by any of them.
func TestMeasuredByAllNames(t *testing.T) {
	s := newOfService(t)
	s.kernel = devices{all: []agent.Device{{Name: "lo", AltNames: []string{"enloop"}}, {Name: "eth0", AltNames: []string{"enp0s3"}}}}
	if got := s.endOf("127.0.0.1", 0, 0).GetDevices(); !slices.Equal(got, []string{"lo", "enloop"}) {
		t.Errorf("devices on the path: %q", got)
	}
}

// A document counts as not understood only if no earlier revision of it could be parsed.
func TestNotUnderstood(t *testing.T) {
	s := newOfService(t)
	s.write(fmt.Sprintf(inForce, "own0", "10Mbit"))
	s.wants("eth0 1Mbit")
	s.wants("eth0 1Moon", "veth* 1Moon")
	set, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	s.gives(set, "eth0", "1Mbit", "controller")
	if got := s.unparsableDocuments(); !slices.Equal(got, []string{"veth*"}) {
		t.Errorf("not understood: %q, want [veth*]", got)
	}
	if s.troubles["eth0"] == "" || s.troubles["veth*"] == "" {
		t.Errorf("troubles: %v", s.troubles)
	}
}
