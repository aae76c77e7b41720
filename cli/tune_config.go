package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"headgate/config"
	"headgate/group"
	"headgate/probe"
	"headgate/shaper"
	"headgate/unit"
)

// tuneTarget is the configuration of the device to tune.
type tuneTarget struct {
	dev  string
	file string // "" without a file
	group.Interface
	// inForce is the limits in force, by direction.
	inForce map[probe.Direction]unit.Rate
}

// loadTuneTarget reads the configuration of a device, if there is one, and the limits in force.
func (a *app) loadTuneTarget(c *cobra.Command, dev string, files []string) (*tuneTarget, error) {
	t := &tuneTarget{dev: dev, Interface: group.Interface{Dev: dev}, inForce: map[probe.Direction]unit.Rate{}}
	if len(files) > 0 {
		set, err := a.loadInterfaces(c, files, true)
		if err != nil {
			return nil, err
		}
		i, ok := set.For(dev)
		switch {
		case !ok:
			return nil, usageError{fmt.Errorf("%s has no document for %s: select another file, or remove -f", strings.Join(files, ", "), dev), c.CommandPath()}
		case i.Perspective == group.Guest:
			return nil, usageError{fmt.Errorf("%s: %s carries a guest's traffic, and measurements from this host do not pass through it: run tune inside the guest", i.Name(), dev), c.CommandPath()}
		case i.Engine == group.Quantum:
			return nil, usageError{fmt.Errorf("%s: engine quantum counts payload, and cannot stay below a limit that counts frames: write engine: htb to tune %s", i.Name(), dev), c.CommandPath()}
		}
		t.Interface, t.file = i.Resolved.Interface, i.File
		t.Interface.Dev = dev // the file may have a pattern, but only this device is tuned
	}
	now, err := a.observe(dev)
	switch {
	case errors.Is(err, shaper.ErrNotShaped):
		return t, nil
	case err != nil:
		return nil, err
	case t.file == "":
		return nil, usageError{fmt.Errorf("%s has groups in force, which the proposal would replace: select their file with -f, or run \"headgate clear --dev %[1]s\" first", dev), c.CommandPath()}
	}
	for d, tree := range map[probe.Direction]*group.Tree{probe.Out: now.Plan.Out, probe.In: now.Plan.In} {
		if tree != nil {
			t.inForce[d] = tree.Limit
		}
	}
	return t, nil
}

// side returns the direction in the configuration. The direction is nil without a limit.
func (t *tuneTarget) side(d probe.Direction) **group.Direction {
	if d == probe.Out {
		return &t.Out
	}
	return &t.In
}

// wants reports whether tune may set a direction's limit. A direction that the file does not limit
// stays unlimited.
func (t *tuneTarget) wants(d probe.Direction) bool { return t.file == "" || *t.side(d) != nil }

// setLimit sets the limit of a direction.
func (t *tuneTarget) setLimit(d probe.Direction, limit unit.Rate) {
	side := t.side(d)
	if *side == nil {
		*side = &group.Direction{Groups: []group.Group{{Name: "all", Default: true}}}
	}
	changed := **side
	changed.Limit = limit
	*side = &changed
}

// document returns the configuration as text and parsed. Mistakes, such as guarantees in
// bit/s above the new limit, have line numbers of this text.
func (t *tuneTarget) document() (string, config.Set, error) {
	text := config.Format(t.Interface)
	set, err := config.Parse("proposal", text)
	if err != nil {
		err = fmt.Errorf("the limits conflict with the rest of %s:\n%w\nin\n%s", t.file, err, text)
	}
	return string(text), set, err
}
