package controller

import (
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/bottleneck"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// What the counters of both ends of a link say of a measured rate.
func TestArrivedOf(t *testing.T) {
	const frame = 1500
	for name, c := range map[string]struct {
		sent, arrives float64 // frames in a second
		seconds       int
		arrived       unit.Rate // before
		want          unit.Rate
		missed        float64 // frames of the last second that do not arrive
	}{
		"3 % is lost of what is in force":     {2583, 2500, 5, 0, 30_000_000, 0},
		"0.8 % is lost, for 5 s":              {2520, 2500, 5, 0, 0, 0},
		"0.8 % is lost, for 12 s":             {2520, 2500, 12, 0, 30_000_000, 0},
		"nothing is lost":                     {2583, 2583, 20, 0, 0, 0},
		"0.3 % is lost":                       {2583, 2575, 20, 0, 0, 0},
		"the link is not used":                {2000, 1800, 20, 0, 0, 0},
		"it gives much less than is measured": {2583, 2000, 20, 0, 24_000_000, 0},
		"it was lowered as far as it may be":  {2400, 2300, 20, 27_900_000, 0, 0},
		"it was lowered, and 1 % is lost":     {2500, 2475, 20, 30_000_000, 29_700_000, 0},
		"it passed less for a moment":         {2583, 2583, 20, 0, 0, 400},
	} {
		w := store.WeakLink{Rate: 31 * unit.Mbit, Arrived: c.arrived}
		var sends, receives fabric.PortMeter
		begin := time.Unix(1_800_000_000, 0)
		for s := range c.seconds {
			count := func(perSecond float64, later time.Duration) fabric.Counts {
				frames := uint64(perSecond * (float64(s) + later.Seconds()))
				return fabric.Counts{Bytes: frames * frame, Frames: frames, Dropped: fabric.Uncounted, Errors: fabric.Uncounted}
			}
			now, late := begin.Add(time.Duration(s)*time.Second), 20*time.Millisecond
			sends.Take(fabric.PortCounters{At: now, Tx: count(c.sent, 0)})
			rx := count(c.arrives, late)
			if s == c.seconds-1 {
				rx.Frames -= uint64(c.missed)
				rx.Bytes -= uint64(c.missed) * frame
			}
			receives.Take(fabric.PortCounters{At: now.Add(late), Rx: rx})
		}
		got := arrivedOf(w, sends.Readings(), receives.Readings(), time.Hour)
		if c.want == 0 {
			c.want = w.Gives()
		}
		if bottleneck.Apart(got, c.want) > 0.002 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := arrivedOf(w, sends.Readings(), receives.Readings(), 2*time.Second); got != w.Gives() {
			t.Errorf("%s: %v, 2 s after it was lowered", name, got)
		}
	}
}
