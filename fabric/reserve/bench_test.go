package reserve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"

	"golang.org/x/sys/unix"
)

// crowd is a network of 200 switches with the requests for a week that it is offered.
type crowd struct {
	rnd  *rand.Rand
	book *Book
	n    int
	most unit.Rate // of a request
}

// newCrowd admits reservations until there are count. A request has up to a third of a link.
func newCrowd(b testing.TB, cables, count int, capacity unit.Rate) *crowd {
	c := &crowd{rnd: rand.New(rand.NewPCG(1, 2)), most: 3 * unit.Gbit}
	var err error
	if c.book, err = NewBook(network(c.rnd, 200, cables, capacity), Limits{}); err != nil {
		b.Fatal(err)
	}
	for len(c.book.reservations) < count {
		if granted, err := c.book.WhatIf(c.draw(), zero); err == nil {
			c.book.set(granted)
		}
	}
	return c
}

func (c *crowd) draw() Request {
	c.n++
	i := c.rnd.IntN(200)
	start := zero.Add(time.Duration(c.rnd.IntN(7*24*60)) * time.Minute)
	rate := c.most/60 + unit.Rate(c.rnd.Int64N(int64(c.most-c.most/60)))/unit.Mbit*unit.Mbit
	r := between(fmt.Sprint(c.n), i+1, (i+1+c.rnd.IntN(199))%200+1, rate, start, time.Duration(1+c.rnd.IntN(24*60))*time.Minute)
	r.Class = 1 + c.n%4
	switch c.n % 4 {
	case 1:
		r.Reverse = r.Forward / 4
	case 2:
		r.Protected = true
	case 3:
		r.Until = start.Add(r.Duration + 12*time.Hour)
	}
	return r
}

// large is a request for almost all of a link.
func (c *crowd) large() Request {
	r := c.draw()
	limit := unit.Rate(c.book.ledger.lines[0].limit)
	r.Forward, r.Reverse = limit*95/100, min(r.Reverse, limit/2)
	return r
}

func (c *crowd) volume(r Request) Request {
	r.Volume, r.Until = unit.Bytes(r.Forward/8)*3600, r.Start.Add(24*time.Hour)
	r.Forward, r.Reverse, r.Duration = 0, 0, 0
	return r
}

// any is one of the reservations.
func (c *crowd) any(all []Reservation) Reservation { return all[c.rnd.IntN(len(all))] }

// processor is the processor time of this thread: that of other processes does not count.
func processor() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// each measures single calls: the median and the 99th percentile of the processor time, and the same of the clock.
func each(b *testing.B, name string, call func() (do func() error)) {
	b.Run(name, func(b *testing.B) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var used, took []time.Duration
		refused := 0
		for b.Loop() {
			do := call()
			from, at := processor(), time.Now()
			err := do()
			took, used = append(took, time.Since(at)), append(used, processor()-from)
			var e *Refusal
			if errors.As(err, &e) {
				refused++
			} else if err != nil {
				b.Fatal(err)
			}
		}
		slices.Sort(took)
		slices.Sort(used)
		ms := func(d []time.Duration, percent int) float64 {
			return float64(d[min(len(d)*percent/100, len(d)-1)].Microseconds()) / 1000
		}
		b.ReportMetric(ms(used, 50), "cpu-ms-p50")
		b.ReportMetric(ms(used, 99), "cpu-ms-p99")
		b.ReportMetric(ms(used, 100), "cpu-ms-max")
		b.ReportMetric(ms(took, 99), "ms-p99")
		b.ReportMetric(100*float64(refused)/float64(len(took)), "%refused")
	})
}

// BenchmarkBook is the case of the requirements: 10,000 reservations of a week on 200 switches. They fill a fifth of the
// dense network, half of the crowded one, and of the sparse one, which has long paths, the most that is possible. The large
// one has ten times as many reservations.
func BenchmarkBook(b *testing.B) {
	for _, k := range []struct {
		name     string
		cables   int
		capacity unit.Rate
		count    int
	}{
		{"dense", 800, 10 * unit.Gbit, 10_000},
		{"crowded", 800, 4 * unit.Gbit, 10_000},
		{"sparse", 260, 20 * unit.Gbit, 10_000},
		{"large", 800, 100 * unit.Gbit, 100_000},
	} {
		b.Run(k.name, func(b *testing.B) {
			c := newCrowd(b, k.cables, k.count, k.capacity)
			b.Run("Calls", func(b *testing.B) { benchmarkCalls(b, c) })
			b.Run("Reroute", func(b *testing.B) { benchmarkReroute(b, c) })
		})
	}
}

func benchmarkCalls(b *testing.B, c *crowd) {
	book := c.book
	all := book.All()
	whatIf := func(r Request) func() error {
		return func() error { _, err := book.WhatIf(r, zero); return err }
	}
	each(b, "WhatIf", func() func() error { return whatIf(c.draw()) })
	each(b, "Large", func() func() error { return whatIf(c.large()) })
	each(b, "Volume", func() func() error { return whatIf(c.volume(c.draw())) })
	each(b, "LargeVolume", func() func() error { return whatIf(c.volume(c.large())) })
	each(b, "AdmitAndCancel", func() func() error {
		r := c.draw()
		return func() error {
			if _, err := book.Admit(r, zero); err != nil {
				return err
			}
			_, err := book.Cancel(r.ID)
			return err
		}
	})
	each(b, "Change", func() func() error {
		r := c.any(all)
		return func() error {
			_, err := book.WhatIfChange(r.Request.ID, Change{Move: true, End: r.End.Add(time.Hour)}, zero)
			return err
		}
	})
	each(b, "LargeChange", func() func() error {
		r, rate := c.any(all), c.large().Forward
		return func() error {
			_, err := book.WhatIfChange(r.Request.ID, Change{Forward: &rate}, zero)
			return err
		}
	})
	each(b, "Hold", func() func() error {
		i := c.rnd.IntN(200) + 1
		return func() error { return book.Hold(Uplink(port(i)), unit.Gbit, "groups", zero) }
	})
	for i := range 200 {
		book.Hold(Uplink(port(i+1)), 0, "groups", zero)
	}
	each(b, "Expire", func() func() error { return func() error { book.Expire(zero, 0); return nil } })
	each(b, "All", func() func() error { return func() error { book.All(); return nil } })
}

func benchmarkReroute(b *testing.B, c *crowd) {
	busy := map[fabric.LinkID]int{}
	for _, r := range c.book.All() {
		for _, p := range r.Paths {
			for _, id := range p.Links {
				busy[id]++
			}
		}
	}
	ids := slices.SortedFunc(func(yield func(fabric.LinkID) bool) {
		for id := range busy {
			if !yield(id) {
				return
			}
		}
	}, func(a, b fabric.LinkID) int {
		if d := busy[b] - busy[a]; d != 0 {
			return d
		}
		return a.Compare(b)
	})
	for _, dead := range []struct {
		name  string
		links int
	}{{"OneLink", 1}, {"Thousand", 0}} {
		failed := map[fabric.PortID]bool{}
		sum := 0
		for i, id := range ids {
			if dead.links > 0 && i == dead.links || sum > 1000 {
				break
			}
			failed[id.From] = true
			sum += busy[id]
		}
		b.Run(dead.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			top := changed(c.book.ledger.top, func(p fabric.PortID) fabric.PortState {
				if failed[p] {
					return fabric.Down
				}
				return fabric.Up
			}, same)
			var used time.Duration
			moved, degraded := 0, 0
			for b.Loop() {
				copied := c.book.Clone()
				from := processor()
				all := copied.Reroute(top, zero)
				used = processor() - from
				moved, degraded = len(all), 0
				for _, r := range all {
					if r.After.Degraded != "" {
						degraded++
					}
				}
			}
			b.ReportMetric(float64(used.Microseconds())/1000, "cpu-ms")
			b.ReportMetric(float64(moved), "rerouted")
			b.ReportMetric(float64(degraded), "degraded")
		})
	}
}
