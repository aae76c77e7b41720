package observe

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// one is an engine that shapes eth0 only, and cannot list assignments.
type one struct{ shaper.Shaper }

func (one) Observe(dev string) (shaper.State, error) {
	if dev != "eth0" {
		return shaper.State{}, shaper.ErrNotShaped
	}
	return shaper.State{Dev: dev, Engine: group.HTB}, nil
}

// All devices with bandwidth groups are observed, each with the programs that run before its classifier.
func TestObserveAll(t *testing.T) {
	o := &Observer{
		Engines: map[group.Engine]shaper.Shaper{group.HTB: one{}},
		Devices: func() ([]string, error) { return []string{"eth0", "eth1"}, nil },
		Foreign: func(string) ([2][]string, error) { return [2][]string{{}, {"program x"}}, nil },
		State:   t.TempDir(),
	}
	all, err := o.ObserveAll()
	if err != nil || len(all) != 1 || all[0].Dev != "eth0" || !slices.Equal(all[0].Foreign, []string{"program x, which runs before Headgate's classifier"}) {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := o.Observe("eth1"); !errors.Is(err, shaper.ErrNotShaped) || !strings.HasPrefix(err.Error(), "eth1 ") {
		t.Errorf("a device without groups: %v", err)
	}
	if _, err := o.Assignments(group.HTB, "eth0"); err == nil {
		t.Error("an engine that cannot list assignments has listed them")
	}
	if clients, err := o.Clients(group.HTB, "eth0"); clients != nil || err != nil {
		t.Errorf("clients of an engine without clients: %v, %v", clients, err)
	}
}

// Each group of a state has its origin, and control traffic has none.
func TestAddOrigins(t *testing.T) {
	direction := func() *shaper.DirectionState {
		return &shaper.DirectionState{Groups: []shaper.GroupState{{Path: "a"}, {Path: "a/web"}}}
	}
	s := shaper.State{Out: direction(), In: direction()}
	addOrigins(&s, map[string]group.Origin{"out/a/web": group.OriginTenant, "in/none": group.OriginRelay})
	for _, c := range []struct {
		d    *shaper.DirectionState
		want []string
	}{{s.Out, []string{"file", "tenant"}}, {s.In, []string{"file", "file"}}} {
		if got := []string{c.d.Groups[0].Origin, c.d.Groups[1].Origin}; !slices.Equal(got, c.want) || c.d.Control.Origin != "" {
			t.Errorf("the origins are %v and %q, want %v", got, c.d.Control.Origin, c.want)
		}
	}
}
