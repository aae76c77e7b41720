package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// seconds are seconds of the clock, since the epoch.
type seconds map[int64]bool

// differs returns those that are in only one of both, in their order.
func (s seconds) differs(other seconds) (only []int64) {
	for second := range s {
		if !other[second] {
			only = append(only, second)
		}
	}
	for second := range other {
		if !s[second] {
			only = append(only, second)
		}
	}
	slices.Sort(only)
	return only
}

// telling requests the usage in the middle of every second, to determine which seconds are recorded as
// unmet; the final usage has only their number.
type telling struct {
	stop  context.CancelFunc
	ended chan struct{}
	told  map[string]seconds // by group, as "out/web"
	err   error
}

// tellUnmet starts the requests.
func (a *asking) tellUnmet(ctx context.Context, since time.Time) *telling {
	t := &telling{ended: make(chan struct{}), told: map[string]seconds{}}
	ctx, t.stop = context.WithCancel(ctx)
	go func() {
		defer close(t.ended)
		before := map[string]int64{}
		for {
			at := time.Now().Add(time.Second / 2).Truncate(time.Second).Add(time.Second / 2)
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(at)):
			}
			now, err := a.unmet(context.WithoutCancel(ctx), since)
			if late := time.Since(at); err == nil && late > time.Second/2 {
				err = fmt.Errorf("the usage arrived %v late: its second is unknown", late)
			}
			if err != nil {
				t.err = err
				return
			}
			for name, fresh := range more(before, now, at.Unix()) {
				if t.told[name] == nil {
					t.told[name] = seconds{}
				}
				maps.Copy(t.told[name], fresh)
			}
			before = now
		}
	}()
	return t
}

// more returns the seconds that are recorded now and were not before: in the middle of a second the
// last one that has ended is the most recent.
func more(before, now map[string]int64, second int64) map[string]seconds {
	out := map[string]seconds{}
	for name, n := range now {
		for back := range n - before[name] {
			if out[name] == nil {
				out[name] = seconds{}
			}
			out[name][second-1-back] = true
		}
	}
	return out
}

// unmet returns the number of unmet seconds of each group.
func (a *asking) unmet(ctx context.Context, since time.Time) (map[string]int64, error) {
	rows, err := a.usage(ctx, since)
	out := map[string]int64{}
	for name, row := range rows {
		out[name] = orZero(row.UnmetSeconds)
	}
	return out, err
}

// end stops the requests, and returns the seconds.
func (t *telling) end() (map[string]seconds, error) {
	t.stop()
	<-t.ended
	return t.told, t.err
}
