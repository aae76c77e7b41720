package remote

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"headgate/api/agents"
)

// Enforced is told by whoever enforces: what is in force, and what could not be done, by device.
func (l *Link) Enforced(fence *agents.Fence, troubles map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enforced = &agents.Enforced{Fence: fence, Troubles: troubles}
	l.another()
}

// SetTroubles is told by whoever runs the sets of connections: what could not be done, by set.
func (l *Link) SetTroubles(troubles map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setTroubles = troubles
	l.another()
}

// Another has the link tell again what there is.
func (l *Link) Another() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.another()
}

func (l *Link) another() {
	if l.enforced == nil {
		return // it is told with the rest
	}
	select {
	case l.tell <- struct{}{}:
	default:
	}
}

// told is what is in force and what is not, nil if that is not known yet.
func (l *Link) told() *agents.Enforced {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enforced == nil {
		return nil
	}
	e := &agents.Enforced{Fence: l.enforced.Fence, Troubles: maps.Clone(l.enforced.Troubles), SetTroubles: maps.Clone(l.setTroubles)}
	for _, r := range l.refused {
		e.Troubles = r.at(e.Troubles, r.devices)
		e.SetTroubles = r.at(e.SetTroubles, r.sets)
	}
	return e
}

// refusal is that the disk does not take something. It concerns the whole host, of which nothing
// is told but its devices and sets: it is a trouble of each.
type refusal struct {
	why           string
	devices, sets map[string]bool
}

func (r refusal) at(troubles map[string]string, names map[string]bool) map[string]string {
	if troubles == nil {
		troubles = map[string]string{}
	}
	for name := range names {
		if other := troubles[name]; other != "" {
			troubles[name] = other + "; " + r.why
		} else {
			troubles[name] = r.why
		}
	}
	return troubles
}

// kept says whether the disk took a file, and what is in it; d is what waits for that, if anything.
func (l *Link) kept(file, what string, d *agents.Desired, err error) {
	r := refusal{devices: map[string]bool{}, sets: map[string]bool{}}
	if err != nil {
		r.why = fmt.Sprintf("the disk of the host does not take %s: make room for %s there: %v", what, l.Dir, err)
		for dev := range l.Intent.Revisions() {
			r.devices[dev] = true
		}
		for _, i := range d.GetInterfaces() {
			r.devices[i.Dev] = true
		}
		for _, c := range d.GetCollectives() {
			r.sets[c.Name] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.refused[file]; before.why == r.why && maps.Equal(before.devices, r.devices) && maps.Equal(before.sets, r.sets) {
		return
	}
	if l.refused == nil {
		l.refused = map[string]refusal{}
	}
	if err == nil {
		delete(l.refused, file)
	} else {
		l.refused[file] = r
		slog.Warn("the disk does not take what is to be kept, and is tried again", "error", r.why)
	}
	l.another()
}

// obey takes in what a controller says, or, if that is nil, what it has said when there was no room
// for it: the stream goes on meanwhile, and so does what is in force.
func (s *session) obey(d *agents.Desired) error {
	switch {
	case d == nil && s.waits == nil:
		return nil
	case d == nil:
		d = s.waits
	default:
		if err := s.id.found(s.Dir, d.Agents); err != nil {
			slog.Warn("where controllers are cannot be kept", "error", err)
		}
		complete(d, s.waits)
	}
	changed, err := s.Intent.Obey(d)
	if err != nil && !errors.Is(err, errNotKept) {
		return err
	}
	s.kept(intentFile, "what is wanted now, so that what was wanted before stays", d, err)
	if s.waits = nil; err != nil {
		s.waits = d
	}
	if changed {
		s.Changed()
	}
	return nil
}

// complete adds documents that were sent before, and are not on the disk.
func complete(d, before *agents.Desired) {
	for _, one := range d.Interfaces {
		for _, b := range before.GetInterfaces() {
			if len(one.Document) == 0 && b.Dev == one.Dev && b.Revision == one.Revision {
				one.Document = b.Document
			}
		}
	}
}
