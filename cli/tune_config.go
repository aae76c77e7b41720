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

// tuned is the configuration of the device that is tuned.
type tuned struct {
	dev  string
	file string // "" if there is none yet
	group.Interface
	// own is what is in force now, by direction.
	own map[probe.Direction]unit.Rate
}

// tunable reads the configuration of a device, if there is one, and what is in force.
func (a *app) tunable(c *cobra.Command, dev string, files []string) (*tuned, error) {
	t := &tuned{dev: dev, Interface: group.Interface{Dev: dev}, own: map[probe.Direction]unit.Rate{}}
	if len(files) > 0 {
		set, err := a.loadInterfaces(c, files, true)
		if err != nil {
			return nil, err
		}
		i, ok := set.For(dev)
		switch {
		case !ok:
			return nil, usageError{fmt.Errorf("%s says nothing of %s: name the file that does, or leave -f out", strings.Join(files, ", "), dev), c.CommandPath()}
		case i.Perspective == group.Guest:
			return nil, usageError{fmt.Errorf("%s: %s carries a guest's traffic, and what is measured from here does not pass it: run tune inside the guest", i.Name(), dev), c.CommandPath()}
		case i.Engine == group.Quantum:
			return nil, usageError{fmt.Errorf("%s: engine quantum counts payload, and cannot stay below a limit that counts frames: write engine: htb to tune %s", i.Name(), dev), c.CommandPath()}
		}
		t.Interface, t.file = i.Resolved.Interface, i.File
		t.Interface.Dev = dev // the file may have a pattern, others of which are not tuned
	}
	now, err := a.observe(dev)
	switch {
	case errors.Is(err, shaper.ErrNotShaped):
		return t, nil
	case err != nil:
		return nil, err
	case t.file == "":
		return nil, usageError{fmt.Errorf("%s has groups in force, which a configuration without them would replace: name theirs with -f, or run \"headgate clear --dev %[1]s\" first", dev), c.CommandPath()}
	}
	for d, tree := range map[probe.Direction]*group.Tree{probe.Out: now.Plan.Out, probe.In: now.Plan.In} {
		if tree != nil {
			t.own[d] = tree.Limit
		}
	}
	return t, nil
}

// side is the direction in the configuration; nil if it is not limited.
func (t *tuned) side(d probe.Direction) **group.Direction {
	if d == probe.Out {
		return &t.Out
	}
	return &t.In
}

// wants tells whether a direction's limit may be changed: a configuration that leaves
// one alone means it.
func (t *tuned) wants(d probe.Direction) bool { return t.file == "" || *t.side(d) != nil }

// with gives a direction another limit, and changes nothing else.
func (t *tuned) with(d probe.Direction, limit unit.Rate) {
	side := t.side(d)
	if *side == nil {
		*side = &group.Direction{Groups: []group.Group{{Name: "all", Default: true}}}
	}
	changed := **side
	changed.Limit = limit
	*side = &changed
}

// document is the configuration as text, and read back: mistakes, such as guarantees
// in bit/s that are more than the new limit, have lines in that text.
func (t *tuned) document() (string, config.Set, error) {
	text := config.Format(t.Interface)
	set, err := config.Parse("proposal", text)
	if err != nil {
		err = fmt.Errorf("the limits do not go with the rest of %s:\n%w\nin\n%s", t.file, err, text)
	}
	return string(text), set, err
}
