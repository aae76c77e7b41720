package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// seconds are those of the clock, since the epoch.
type seconds map[int64]bool

// differs are those that are in one of both only, in their order.
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

// telling is somebody who asks for usage in the middle of every second, to know which seconds are
// told as unmet: what is told in the end is how many they are.
type telling struct {
	stop  context.CancelFunc
	ended chan struct{}
	told  map[string]seconds // by group, as "out/web"
	err   error
}

// tellUnmet asks from now on.
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
				err = fmt.Errorf("usage was told %v late: of which second it is cannot be said", late)
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

// more are the seconds that are told now and were not before: in the middle of a second the last that
// is over was told last.
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

// unmet is how many seconds each group is told.
func (a *asking) unmet(ctx context.Context, since time.Time) (map[string]int64, error) {
	rows, err := a.usage(ctx, since)
	out := map[string]int64{}
	for name, row := range rows {
		out[name] = orZero(row.UnmetSeconds)
	}
	return out, err
}

// end ends it, and gives what was told.
func (t *telling) end() (map[string]seconds, error) {
	t.stop()
	<-t.ended
	return t.told, t.err
}
