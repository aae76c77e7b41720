package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/wire"
)

// logged creates a lab of one link, runs fn in it, and returns the release log of its forward
// direction, and the start time of the link.
func logged(ctx context.Context, t *lab.Topology, fn func(*lab.Lab) error) (log []link.Result, zero int64, err error) {
	dir, err := os.MkdirTemp("", "headgate-bench-lab-")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(dir)
	l, err := lab.Up(ctx, t, lab.Trace(dir))
	if err != nil {
		return nil, 0, err
	}
	err = fn(l)
	if closed := l.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(filepath.Join(dir, t.LinkNames()[0]+".forward.csv"))
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	trace, err := wire.ReadTrace(f)
	if err != nil {
		return nil, 0, err
	}
	if trace.Missing > 0 {
		return nil, 0, fmt.Errorf("the release log lacks %d records: the disk was too slow", trace.Missing)
	}
	for _, r := range trace.Records {
		log = append(log, r.Result)
	}
	return log, trace.Begun, nil
}
