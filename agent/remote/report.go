package remote

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"syscall"

	"headgate.dev/headgate/api/agents"
)

// SetApplied sets what the agent reports as applied, and the errors by device.
func (l *Link) SetApplied(fence *agents.Fence, errs map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enforced = &agents.Enforced{Fence: fence, Errors: errs}
	l.notifyReport()
}

// SetCollectiveErrors sets the errors of connection sets that the agent reports, by set.
func (l *Link) SetCollectiveErrors(collectiveErrors map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.collectiveErrors = collectiveErrors
	l.notifyReport()
}

// RequestReport causes a new report and new facts.
func (l *Link) RequestReport() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notifyReport()
}

func (l *Link) notifyReport() {
	if l.enforced == nil {
		return // the first call of SetApplied causes the report
	}
	select {
	case l.tell <- struct{}{}:
	default:
	}
}

// report returns the report of what is applied, nil before the first call of SetApplied.
func (l *Link) report() *agents.Enforced {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enforced == nil {
		return nil
	}
	e := &agents.Enforced{Fence: l.enforced.Fence, Errors: maps.Clone(l.enforced.Errors), SetErrors: maps.Clone(l.collectiveErrors)}
	for _, r := range l.writeErrors {
		e.Errors = r.at(e.Errors, r.devices)
		e.SetErrors = r.at(e.SetErrors, r.sets)
	}
	return e
}

// writeError is a failed write to disk. The failure concerns the whole host, but errors are reported
// by device and by set only: it is an error of each.
type writeError struct {
	why           string
	devices, sets map[string]bool
}

func (r writeError) at(errs map[string]string, names map[string]bool) map[string]string {
	if errs == nil {
		errs = map[string]string{}
	}
	for name := range names {
		if other := errs[name]; other != "" {
			errs[name] = other + "; " + r.why
		} else {
			errs[name] = r.why
		}
	}
	return errs
}

// recordWrite records whether a file could be written, and what its content is. d is the desired state
// that waits for the write, if any.
func (l *Link) recordWrite(file, what string, d *agents.Desired, err error) {
	r := writeError{devices: map[string]bool{}, sets: map[string]bool{}}
	if err != nil {
		remedy := "make " + l.Dir + " writable"
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			remedy = "free disk space for " + l.Dir
		}
		r.why = fmt.Sprintf("cannot write %s on the host: %s: %v", what, remedy, err)
		for dev := range l.DesiredState.Revisions() {
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
	if before := l.writeErrors[file]; before.why == r.why && maps.Equal(before.devices, r.devices) && maps.Equal(before.sets, r.sets) {
		return
	}
	if l.writeErrors == nil {
		l.writeErrors = map[string]writeError{}
	}
	if err == nil {
		delete(l.writeErrors, file)
	} else {
		l.writeErrors[file] = r
		slog.Warn("cannot write state to disk, retrying", "error", r.why)
	}
	l.notifyReport()
}

// storeDesired stores a desired state. If d is nil, storeDesired retries the one that could not be
// written before. Until a write succeeds, the stream and the previous desired state stay.
func (s *session) storeDesired(d *agents.Desired) error {
	switch {
	case d == nil && s.unstored == nil:
		return nil
	case d == nil:
		d = s.unstored
	default:
		if err := s.id.updateControllers(s.Dir, d.Agents); err != nil {
			slog.Warn("cannot write controller addresses to disk", "error", err)
		}
		fillDocuments(d, s.unstored.GetInterfaces())
	}
	changed, err := s.DesiredState.Store(d)
	if err != nil && !errors.Is(err, errNotStored) {
		return err
	}
	s.recordWrite(desiredFile, "the new desired state (the previous one stays in force)", d, err)
	if s.unstored = nil; err != nil {
		s.unstored = d
	}
	if changed {
		s.Changed()
	}
	return nil
}

// fillDocuments adds documents that the controller sent before: on their own, or with a state that could not be written.
func fillDocuments(d *agents.Desired, before []*agents.Interface) {
	for _, one := range d.Interfaces {
		for _, b := range before {
			if len(one.Document) == 0 && b.Dev == one.Dev && b.Revision == one.Revision {
				one.Document = b.Document
			}
		}
	}
}
