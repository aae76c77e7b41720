package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// directions are the names of a link's two, as files and results have them.
var directions = [2]string{"forward", "back"}

// trace is the file of one direction's release log.
type trace struct {
	*bufio.Writer
	file *os.File
}

// openTrace makes the file for a direction of link i; nil if none was asked for.
func (l *Lab) openTrace(i, dir int) (*trace, error) {
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
	t := &trace{bufio.NewWriterSize(f, 1<<20), f}
	l.traces = append(l.traces, t)
	return t, nil
}

// closeTraces writes what is left; the links must have ended.
func (l *Lab) closeTraces() (err error) {
	for _, t := range l.traces {
		err = errors.Join(err, t.Flush(), t.file.Close())
	}
	l.traces = nil
	return err
}
