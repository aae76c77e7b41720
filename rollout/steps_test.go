package rollout

import (
	"strings"
	"testing"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
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

// Differences are those of each interface and set, also of an interface that is gone.
func TestCompare(t *testing.T) {
	before := parse(t, "kind: Interface\ndev: eth0\nout: {limit: 50Mbit, groups: [{name: rest, default: true}]}\n---\nkind: Interface\ndev: eth1\nout: {limit: 50Mbit, groups: [{name: rest, default: true}]}\n"+
		"---\nkind: Collective\nname: db\ncgroup: /db\n---\nkind: Collective\nname: web\ncgroup: /web\n")
	after := parse(t, "kind: Interface\ndev: eth0\nout: {limit: 40Mbit, groups: [{name: rest, default: true}]}\n"+
		"---\nkind: Collective\nname: db\ncgroup: /db\n---\nkind: Collective\nname: web\ncgroup: /w\n---\nkind: Collective\nname: new\ncgroup: /new\n")
	var b strings.Builder
	if err := Write(&b, Compare(before, after)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"eth0: 2 changes\n  change out limit: 50Mbit -> 40Mbit\n", "eth1: ", "  remove out group rest\n", "set db: up to date\n", "set web: 1 change\n  change set web\n", "set new: 1 change\n  add    set new\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the differences lack %q:\n%s", want, b.String())
		}
	}
	if steps := CompareInterfaces(before, before); len(steps) != 2 || len(steps[0].Changes)+len(steps[1].Changes) > 0 {
		t.Errorf("of equal states: %+v", steps)
	}
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
		Engines: map[group.Engine]shaper.Shaper{group.HTB: idle{}},
		Devices: func() ([]string, error) { return []string{"eth0", "eth1"}, nil },
		Foreign: func(dev string) ([2][]string, error) { return [2][]string{{}, {"program x"}}, nil },
		State:   t.TempDir(), Note: func(format string, args ...any) { notes.WriteString(format + "\n") },
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
