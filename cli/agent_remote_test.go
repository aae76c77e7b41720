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

// ofService is the part of an agent that says what is wanted, with a file of its host.
type ofService struct {
	*testing.T
	*remoteAgent
	file     string
	revision int64
}

func newOfService(t *testing.T) *ofService {
	t.Helper()
	intent, err := remote.OpenIntent(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &ofService{T: t, file: filepath.Join(t.TempDir(), "own.yaml")}
	s.remoteAgent = &remoteAgent{kernel: devices{}, intent: intent, sets: sets.New(), files: func() (config.Set, error) { return read([]string{s.file}, nil) }}
	return s
}

// write has the host's file say something.
func (s *ofService) write(text string) {
	s.Helper()
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// wants has a controller say which limits devices are to have.
func (s *ofService) wants(limits ...string) {
	s.Helper()
	s.revision++
	d := &agents.Desired{Fence: &agents.Fence{Epoch: 1, Revision: s.revision}}
	for _, l := range limits {
		dev, limit, _ := strings.Cut(l, " ")
		d.Interfaces = append(d.Interfaces, &agents.Interface{Dev: dev, Revision: s.revision,
			Document: fmt.Appendf(nil, `{"dev": %q, "out": {"limit": %q, "groups": [{"name": "rest", "default": true}]}}`, dev, limit)})
	}
	if _, err := s.intent.Obey(d); err != nil {
		s.Fatal(err)
	}
}

// gives: a device is to have that limit, and is somebody's.
func (s *ofService) gives(set config.Set, dev, limit, owner string) {
	s.Helper()
	i, ok := set.For(dev)
	if got := i.OutTree; !ok || got.Limit.String() != limit {
		s.Errorf("%s is to have %+v, want %s", dev, got, limit)
	}
	if got := s.owners[s.of(dev, nil)]; got != owner {
		s.Errorf("%s is of %q, want %s", dev, got, owner)
	}
}

const own = "kind: Interface\ndev: %q\nout: {limit: %s, groups: [{name: rest, default: true}]}\n"

// What somebody writes in the host's files is in force when the agent is told to read them, and not
// when a controller wants something else; mistakes in them keep nothing back.
func TestFilesAreReadWhenToldSo(t *testing.T) {
	s := newOfService(t)
	s.write(fmt.Sprintf(own, "eth0", "10Mbit"))
	s.wants("eth1 1Mbit")
	set, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	s.gives(set, "eth0", "10Mbit", "local")
	s.gives(set, "eth1", "1Mbit", "controller")
	for _, edited := range []string{fmt.Sprintf(own, "eth0", "20Mbit"), "kind: Inter"} {
		s.write(edited)
		s.wants("eth1 2Mbit")
		set = s.latest()
		s.gives(set, "eth0", "10Mbit", "local")
		s.gives(set, "eth1", "2Mbit", "controller")
	}
	if _, err := s.load(); err == nil {
		t.Error("the mistake is not told of")
	}
	s.gives(s.latest(), "eth0", "10Mbit", "local")
	s.write(fmt.Sprintf(own, "eth0", "30Mbit"))
	if set, err = s.load(); err != nil {
		t.Fatal(err)
	}
	s.gives(set, "eth0", "30Mbit", "local")
}

// What the host's files name is theirs, by a pattern as well, whatever the controllers name.
func TestFilesComeFirst(t *testing.T) {
	s := newOfService(t)
	s.write(fmt.Sprintf(own, "veth*", "10Mbit"))
	s.wants("veth0 1Mbit", "ve* 2Mbit", "eth0 3Mbit")
	set, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	s.gives(set, "veth0", "10Mbit", "local")
	s.gives(set, "veth1", "10Mbit", "local")
	s.gives(set, "ve1", "2Mbit", "controller")
	s.gives(set, "eth0", "3Mbit", "controller")
	if got := s.troubles["veth0"]; !strings.Contains(got, "a file of this host names it (veth*)") || len(s.troubles) != 1 {
		t.Errorf("the troubles are %v", s.troubles)
	}
}

// So they are by whichever of its names either names a device; of two of theirs for one the first holds.
func TestFilesComeFirstByAnyName(t *testing.T) {
	s := newOfService(t)
	s.kernel = devices{all: []agent.Device{{Name: "eth0", AltNames: []string{"enp0s3", "wan"}}, {Name: "eth1", AltNames: []string{"lan1"}}, {Name: "eth2", AltNames: []string{"wan5", "enp0s5"}}}}
	s.write(fmt.Sprintf(own, "wan", "10Mbit") + "---\n" + fmt.Sprintf(own, "lan*", "20Mbit"))
	s.wants("eth0 1Mbit", "eth1 2Mbit", "enp0s5 3Mbit", "wan5 4Mbit")
	set, err := s.load()
	if err == nil {
		set, err = set.Named(agent.Names(s.kernel.(devices).all))
	}
	if err != nil {
		t.Fatal(err)
	}
	for dev, limit := range map[string]string{"eth0": "10Mbit", "eth1": "20Mbit", "eth2": "3Mbit"} {
		if i, ok := set.For(dev); !ok || i.OutTree.Limit.String() != limit {
			t.Errorf("%s is to have %+v, want %s", dev, i.OutTree, limit)
		}
	}
	for dev, want := range map[string]string{
		"eth0": "a file of this host names it (wan)", "eth1": "a file of this host names it (lan*)",
		"wan5": "it is the device that is wanted otherwise as enp0s5",
	} {
		if got := s.troubles[dev]; !strings.Contains(got, want) || len(s.troubles) != 3 {
			t.Errorf("the trouble of %s is %q, want %q, of %v", dev, got, want, s.troubles)
		}
	}
}

// devices are all that there is on a host.
type devices struct {
	agent.Kernel
	all []agent.Device
}

func (d devices) Devices() ([]agent.Device, error) { return d.all, nil }

// A device's alternative names are told, and whose it is that is named by one of them.
func TestFactsHaveAlternativeNames(t *testing.T) {
	s := newOfService(t)
	s.app = &app{speed: func(string) (unit.Rate, bool) { return 0, false }}
	s.kernel = devices{all: []agent.Device{{Name: "eth0", AltNames: []string{"enp0s3", "wan"}}, {Name: "eth1", AltNames: []string{"lan1"}}, {Name: "eth2", AltNames: []string{"enp0s5"}}, {Name: "eth3"}}}
	s.write(fmt.Sprintf(own, "wan", "10Mbit"))
	s.wants("lan* 1Mbit", "eth3 1Mbit")
	if _, err := s.load(); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, d := range s.facts().Devices {
		got += fmt.Sprintln(d.Name, d.Altnames, d.Owner)
	}
	if want := "eth0 [enp0s3 wan] local\neth1 [lan1] controller\neth2 [enp0s5] nobody\neth3 [] controller\n"; got != want {
		t.Errorf("told is\n%s, want\n%s", got, want)
	}
}

// What a measurement passes is told by all names, so that a document by any of them is found.
func TestMeasuredByAllNames(t *testing.T) {
	s := newOfService(t)
	s.kernel = devices{all: []agent.Device{{Name: "lo", AltNames: []string{"enloop"}}, {Name: "eth0", AltNames: []string{"enp0s3"}}}}
	if got := s.endOf("127.0.0.1", 0, 0).GetDevices(); !slices.Equal(got, []string{"lo", "enloop"}) {
		t.Errorf("it passes %q", got)
	}
}

// A device is not understood if nothing of use was ever wanted of it.
func TestNotUnderstood(t *testing.T) {
	s := newOfService(t)
	s.write(fmt.Sprintf(own, "own0", "10Mbit"))
	s.wants("eth0 1Mbit")
	s.wants("eth0 1Moon", "veth* 1Moon")
	set, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	s.gives(set, "eth0", "1Mbit", "controller")
	if got := s.notUnderstood(); !slices.Equal(got, []string{"veth*"}) {
		t.Errorf("%q are not understood", got)
	}
	if s.troubles["eth0"] == "" || s.troubles["veth*"] == "" {
		t.Errorf("the troubles are %v", s.troubles)
	}
}
