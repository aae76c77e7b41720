package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// directions are the names of a link's two directions in files and results.
var directions = [2]string{"forward", "back"}

// openTrace creates the release log of a direction of link i; nil without Trace.
func (l *Lab) openTrace(i, dir int) (*os.File, error) {
	if l.traceDir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(l.traceDir, 0o755); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s.%s.csv", l.Topology.LinkNames()[i], directions[dir])
	f, err := os.Create(filepath.Join(l.traceDir, name))
	if err != nil {
		return nil, err
	}
	l.traces = append(l.traces, f)
	return f, nil
}

// closeWires closes the emulated links and their logs.
func (l *Lab) closeWires() error {
	errs := make([]error, len(l.wires))
	inParallel(len(l.wires), func(i int) {
		if w := l.wires[i]; w != nil {
			if err := w.Close(); err != nil {
				errs[i] = fmt.Errorf("release log of link %s: %w", l.Topology.LinkNames()[i], err)
			}
			l.wires[i] = nil
		}
	})
	for _, f := range l.traces {
		errs = append(errs, f.Close())
	}
	l.traces = nil
	return errors.Join(errs...)
}
