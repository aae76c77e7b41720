package busy

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Clock counts processor time from New on.
type Clock struct {
	objects objectObjects
	links   []link.Link
}

// New starts counting.
func New() (_ *Clock, err error) {
	spec, err := loadObject()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables["own_tgid"].Set(uint32(os.Getpid())); err != nil {
		return nil, err
	}
	c := &Clock{}
	if err := spec.LoadAndAssign(&c.objects, nil); err != nil {
		return nil, fmt.Errorf("cannot load the processor time programs: %w", err)
	}
	for _, p := range []*ebpf.Program{c.objects.Switched, c.objects.SoftirqBegins, c.objects.SoftirqEnds} {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot attach the processor time programs: %w", err), c.Close())
		}
		c.links = append(c.links, l)
	}
	return c, nil
}

// Total returns the time of all processors. A task that has run without interruption since an earlier
// call counts when it is switched out.
func (c *Clock) Total() (sum time.Duration, err error) {
	var all []struct{ BusyNS, SinceNS, SoftirqNS uint64 }
	if err := c.objects.Processors.Lookup(uint32(0), &all); err != nil {
		return 0, fmt.Errorf("cannot read the processor time: %w", err)
	}
	for _, p := range all {
		sum += time.Duration(p.BusyNS)
	}
	return sum, nil
}

// Close stops counting.
func (c *Clock) Close() error {
	var errs []error
	for _, l := range c.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, c.objects.Close())...)
}
