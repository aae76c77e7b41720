package rollout

import (
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/observe"
	"headgate.dev/headgate/shaper"
)

func parse(t *testing.T, text string) config.Set {
	t.Helper()
	set, err := config.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// idle is an engine on whose devices nothing is in force.
type idle struct{ shaper.Shaper }

func (idle) Observe(string) (shaper.State, error) { return shaper.State{}, shaper.ErrNotShaped }
func (idle) Diff(p shaper.Plan) ([]shaper.Change, error) {
	if p.Dev == "eth1" {
		return nil, shaper.ErrForeign
	}
	return []shaper.Change{{Verb: "add", Object: "groups"}}, nil
}

// A device that cannot be changed is an error, but does not hide those of other devices. A missing device is an
// error unless it may be missing, and a pattern may match none.
func TestSteps(t *testing.T) {
	var notes strings.Builder
	m := &Machine{
		Observer: observe.Observer{
			Engines: map[group.Engine]shaper.Shaper{group.HTB: idle{}},
			Devices: func() ([]string, error) { return []string{"eth0", "eth1"}, nil },
			Foreign: func(dev string) ([2][]string, error) { return [2][]string{{}, {"program x"}}, nil },
			State:   t.TempDir(),
		},
		Note: func(format string, args ...any) { notes.WriteString(format + "\n") },
	}
	document := func(dev string) string {
		return "---\nkind: Interface\ndev: \"" + dev + "\"\nout: {limit: 50Mbit, groups: [{name: rest, default: true}]}\n"
	}
	targets, err := m.Targets(parse(t, document("eth*")+document("wlan*")), false)
	if err != nil || len(targets) != 2 || !strings.Contains(notes.String(), "no device matches") {
		t.Fatalf("%+v, %v\n%s", targets, err, notes.String())
	}
	steps, err := m.Steps(targets)
	if len(steps) != 2 || len(steps[0].Changes) != 1 || err == nil || !strings.Contains(err.Error(), "f.yaml:2: "+shaper.ErrForeign.Error()) {
		t.Errorf("%+v, %v", steps, err)
	}
	if _, err := m.Targets(parse(t, document("eth7")), false); err == nil || !strings.Contains(err.Error(), "--ignore-missing") {
		t.Errorf("a missing device: %v", err)
	}
	if targets, err := m.Targets(parse(t, document("eth7")), true); err != nil || len(targets) != 0 {
		t.Errorf("a device that may be missing: %+v, %v", targets, err)
	}
}
