package reserve

import (
	"errors"
	"testing"
	"time"

	"headgate.dev/headgate/unit"

	"pgregory.net/rapid"
)

// A granted volume is moved within its window on sound paths, and what a refusal offers is granted. No refused volume fits
// at the one rate that takes all the time.
func TestVolumeAgainstOracle(t *testing.T) {
	grants, refusals := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		b := smallNetwork(t)
		for range rapid.IntRange(0, 8).Draw(t, "requests") {
			b.Admit(drawRequest(t, b, zero), zero)
		}
		r := drawRequest(t, b, zero)
		r.Name, r.Forward, r.Reverse, r.Duration = "volume", 0, 0, 0
		r.Volume = unit.Bytes(rapid.IntRange(1, 20).Draw(t, "volume"))
		r.Until = r.begin(zero).Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "window")) * time.Second)
		o := newOracle(b)
		var e *Refusal
		switch got, err := b.Admit(r, zero); {
		case err == nil:
			grants++
			sound(t, o, got)
			oversold(t, b, zero)
			if moved := float64(got.Forward) * got.End.Sub(got.Start).Seconds(); moved < 8*float64(r.Volume)-1e-6 {
				t.Fatalf("%v bits are moved of %v", moved, 8*r.Volume)
			}
			if got.Start.Before(r.begin(zero)) || got.End.After(r.Until) {
				t.Fatalf("%v - %v is not within %v - %v", got.Start, got.End, r.begin(zero), r.Until)
			}
		case errors.As(err, &e):
			refusals++
			window := r.Until.Sub(r.begin(zero))
			whole := r
			whole.Forward = unit.Rate(rateFor(r.Volume, int64(window)))
			if o.fits(whole, r.begin(zero), r.Until) {
				t.Fatalf("%v: %v fit all the time", e, whole.Forward)
			}
			for _, offer := range []*Request{e.Most, e.Window} {
				if offer == nil {
					continue
				}
				if _, err := b.WhatIf(*offer, zero); err != nil {
					t.Fatalf("an offer of %q is refused: %v", e, err)
				}
			}
		}
	})
	if !testing.Short() && (grants == 0 || refusals == 0) { // which makes few draws
		t.Errorf("%d grants and %d refusals test too little", grants, refusals)
	}
}
