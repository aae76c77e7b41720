package device

import (
	"fmt"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Target is the configuration of the device to tune.
type Target struct {
	group.Interface
	// Source is the file or the host that has the configuration, "" without one.
	Source string
	// InForce has the limits in force, by direction.
	InForce map[probe.Direction]unit.Rate
}

// NewTarget returns the target of a device without a configuration.
func NewTarget(dev string) *Target {
	return &Target{Interface: group.Interface{Dev: dev}, InForce: map[probe.Direction]unit.Rate{}}
}

// side returns a direction of the configuration. The direction is nil without a limit.
func (t *Target) side(d probe.Direction) **group.Direction {
	if d == probe.Out {
		return &t.Out
	}
	return &t.In
}

// Limits reports whether a direction's limit may be set. A direction that the configuration does not limit
// stays unlimited.
func (t *Target) Limits(d probe.Direction) bool { return t.Source == "" || *t.side(d) != nil }

// Limit returns the limit of a direction in the configuration, 0 without one.
func (t *Target) Limit(d probe.Direction) unit.Rate {
	if side := *t.side(d); side != nil {
		return side.Limit
	}
	return 0
}

// SetLimit sets the limit of a direction.
func (t *Target) SetLimit(d probe.Direction, limit unit.Rate) {
	side := t.side(d)
	if *side == nil {
		*side = &group.Direction{Groups: []group.Group{{Name: "all", Default: true}}}
	}
	changed := **side
	changed.Limit = limit
	*side = &changed
}

// Document returns the configuration as text and parsed. Mistakes, such as guarantees in
// bit/s above the new limit, have line numbers of this text.
func (t *Target) Document() (string, config.Set, error) {
	text := config.Format(t.Interface)
	set, err := config.Parse("proposal", text)
	if err != nil {
		err = fmt.Errorf("the limits conflict with the rest of %s:\n%w\nin\n%s", t.Source, err, text)
	}
	return string(text), set, err
}
