package circuits

import (
	"math/rand/v2"
	"testing"
	"time"

	"headgate.dev/headgate/controller/points"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
)

// A TCP sender fills its queue for nearly all of the time also if its limit is hardly above what it wants. It is given room seldom then, and soon if it wants more.
func TestWaiting(t *testing.T) {
	for _, noise := range []float64{0, 0.01, 0.03} {
		now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
		l, c, b, h1, h2 := loopOfRouters(t, &now)
		if _, err := b.Admit(reserve.Request{
			ID: reserve.ID{Name: "copy"}, Source: end("1", h1), Destination: end("2", h2), Class: 1, Forward: 2 * unit.Mbit, Duration: time.Hour,
		}, now); err != nil {
			t.Fatal(err)
		}
		l.Update()
		draw := rand.New(rand.NewPCG(1, 2))
		cycle := func(wants unit.Rate) (limit, offered unit.Rate) {
			now = now.Add(time.Second)
			limit = max(unit.Rate(c.limits["r1"].GetLimitBps()["-/copy/forward"]), 2*unit.Mbit)
			offered = min(unit.Rate(float64(wants)*(1+noise*draw.NormFloat64())), limit)
			queued := min(max(0, 1-3*(1-float64(offered)/float64(limit))), 0.985)
			c.measured = map[string]points.Measured{"-/copy/forward": {Limit: limit, Queued: queued, Parts: []points.Part{{Period: time.Second, Offered: offered, Delivered: offered}}}}
			l.Step(t.Context())
			return limit, offered
		}
		for n, wants := range []unit.Rate{8 * unit.Mbit, 5 * unit.Mbit, 9 * unit.Mbit, 16 * unit.Mbit, 6 * unit.Mbit, 30 * unit.Mbit} {
			ample, less := 0, 0
			for range 20 {
				limit, offered := cycle(wants)
				if float64(limit) > 1.3*float64(wants) {
					ample++
				}
				if float64(offered) < (0.99-3*noise)*float64(wants) {
					less++
				}
			}
			if most := 3; ample > 4 || less > most {
				t.Errorf("noise of %v, interval %d of %v: its limit was far above what it wants in %d of 20 cycles, want at most 4, and it had less in %d, want at most %d", noise, n, wants, ample, less, most)
			}
		}
	}
}

// A sender whose packets a meter dropped has room above its limit for one cycle, then its limit while TCP recovers, and then what it offers.
func TestDropped(t *testing.T) {
	const limit = 20 * unit.Mbit
	var w waiting
	for n, c := range []struct {
		offered unit.Rate
		drops   bool
		want    unit.Rate
	}{
		{18 * unit.Mbit, false, 0},
		{20 * unit.Mbit, true, 25 * unit.Mbit},
		{8 * unit.Mbit, false, 25 * unit.Mbit},
		{11 * unit.Mbit, false, limit},
		{14 * unit.Mbit, false, limit},
		{18 * unit.Mbit, false, limit},
		{18100 * unit.Kbit, false, 0}, // the same as before
		{20 * unit.Mbit, true, 25 * unit.Mbit},
		{21 * unit.Mbit, false, 0},
	} {
		if got := w.dropped(c.offered, limit, c.drops); got != c.want {
			t.Errorf("reading %d: a sender that offers %v under a limit of %v, dropped %v, wants %v, not %v", n, c.offered, limit, c.drops, got, c.want)
		}
	}
}
