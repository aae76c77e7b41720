package view

import (
	"time"

	"headgate.dev/headgate/collective/host"
)

// NewSetScreen returns the live view of "headgate collective top", which polls source at every interval.
func NewSetScreen(source func() ([]host.State, error), interval time.Duration, theme Theme) ListScreen[[]Set] {
	var tracker SetTracker
	return newListScreen(func() ([]Set, error) {
		states, err := source()
		if err != nil {
			return nil, err
		}
		return tracker.Update(states), nil
	}, SetLines, interval, theme)
}
