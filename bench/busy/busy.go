package busy

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Clock counts from New on.
type Clock struct {
	objects objectObjects
	links   []link.Link
}

// New begins to count.
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
		return nil, fmt.Errorf("load what counts processor time: %w", err)
	}
	for _, p := range []*ebpf.Program{c.objects.Switched, c.objects.SoftirqBegins, c.objects.SoftirqEnds} {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("attach what counts processor time: %w", err), c.Close())
		}
		c.links = append(c.links, l)
	}
	return c, nil
}

// Total is the time of all processors. A task that has run without a break since before
// counts when it stops.
func (c *Clock) Total() (sum time.Duration, err error) {
	var all []struct{ BusyNS, SinceNS, SoftirqNS uint64 }
	if err := c.objects.Processors.Lookup(uint32(0), &all); err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	for _, p := range all {
		sum += time.Duration(p.BusyNS)
	}
	return sum, nil
}

// Close ends it.
func (c *Clock) Close() error {
	var errs []error
	for _, l := range c.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, c.objects.Close())...)
}
