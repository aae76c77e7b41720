package reservations_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// A tenant reserves within the bounds that the operator gave it, at every moment and with all its reservations together.
func TestBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	within := &store.ReservationBounds{RateBps: 60e6, Class: 2, Duration: int64(2 * time.Hour), Ahead: int64(24 * time.Hour), Ends: []string{"h1", "10.0.0.2/31"}}
	ask := func(name string, change func(*reserve.Request)) reserve.Request {
		r := between(name, "h1", "h2", 20*unit.Mbit)
		r.Tenant = "shop"
		if change != nil {
			change(&r)
		}
		return r
	}
	refuse := func(r reserve.Request, within *store.ReservationBounds, want string) {
		t.Helper()
		for what, ask := range map[string]func(reserve.Request, *store.ReservationBounds) (store.Reservation, error){"create": w.create, "what-if": w.WhatIf} {
			if _, err := ask(r, within); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", what, err, want)
			}
		}
	}
	refuse(ask("a", nil), &store.ReservationBounds{}, "tenant shop may not reserve bandwidth")
	refuse(ask("a", func(r *reserve.Request) { r.Class = 1 }), within, "class 1 is above that of tenant shop")
	refuse(ask("a", func(r *reserve.Request) { r.Duration = 3 * time.Hour }), within, "3h0m0s is longer")
	refuse(ask("a", func(r *reserve.Request) { r.Start = began.Add(25 * time.Hour) }), within, "would begin at 2030-01-02T13:00:00Z, and one of tenant shop may begin by 2030-01-02T12:00:00Z")
	refuse(ask("a", func(r *reserve.Request) { r.Forward = 61 * unit.Mbit }), within, "would have 61Mbit together")
	refuse(ask("a", func(r *reserve.Request) { r.Reverse = 41 * unit.Mbit }), within, "would have 61Mbit together")
	refuse(ask("a", func(r *reserve.Request) { r.Forward, r.Protected = 31*unit.Mbit, true }), within, "would have 62Mbit together")
	refuse(ask("a", func(r *reserve.Request) { r.Source.Name, r.Destination.Name = "h2", "10.0.0.1" }), within, "to: host 10.0.0.1 is not an end that tenant shop may reserve")
	// A volume has its rate when it is granted.
	refuse(ask("a", func(r *reserve.Request) {
		r.Forward, r.Duration, r.Volume, r.Until = 0, 0, 40e9, began.Add(time.Hour)
	}), within, "of at most 60Mbit")

	if _, err := w.create(ask("a", nil), within); err != nil {
		t.Fatal(err)
	}
	if _, err := w.create(ask("b", func(r *reserve.Request) { r.Forward, r.Start = 40*unit.Mbit, began.Add(30*time.Minute) }), within); err != nil {
		t.Fatal(err)
	}
	refuse(ask("c", func(r *reserve.Request) { r.Forward, r.Duration = unit.Mbit, 31*time.Minute }), within, "would have 61Mbit together")
	if _, err := w.create(ask("c", func(r *reserve.Request) { r.Forward, r.Duration = 40*unit.Mbit, 30*time.Minute }), within); err != nil {
		t.Errorf("it ends when another one begins: %v", err)
	}
	// Other tenants, and the operator, are not counted.
	other := ask("a", nil)
	other.Tenant = "video"
	if _, err := w.create(other, &store.ReservationBounds{RateBps: 20e6, Class: 1, Duration: int64(time.Hour), Ahead: 1}); err != nil {
		t.Error(err)
	}
	// A change is within the bounds as well, but what a tenant has when they are lowered it can reduce.
	if _, err := w.change(ask("a", func(r *reserve.Request) { r.Forward = 30 * unit.Mbit }), false, within); err == nil || !strings.Contains(err.Error(), "of at most 60Mbit") {
		t.Error(err)
	}
	lowered := *within
	lowered.RateBps = 1e6
	if doc, err := w.change(ask("a", func(r *reserve.Request) { r.Forward = 10 * unit.Mbit }), false, &lowered); err != nil || doc.RateBps != 10e6 {
		t.Errorf("%+v, %v", doc, err)
	}
	if _, err := w.change(ask("a", func(r *reserve.Request) { r.Forward, r.Duration = 10*unit.Mbit, 2*time.Hour }), false, &lowered); err == nil {
		t.Error("a tenant extends a reservation beyond its bounds")
	}
	w.agree()
	// Counter-offers are within the bounds.
	full := between("full", "h1", "h2", 0)
	full.Forward, full.Duration, full.Class = 95*unit.Mbit, 48*time.Hour, 1
	full.Start = began.Add(3 * time.Hour)
	w.must(full)
	full.Name = "full2"
	w.must(full)
	late := ask("late", func(r *reserve.Request) { r.Start = began.Add(4 * time.Hour) })
	var refused *reserve.Refusal
	if _, err := w.WhatIf(late, within); !errors.As(err, &refused) || refused.Most == nil || refused.Earliest != nil || refused.Window != nil {
		t.Errorf("the offers of %+v, %v", refused, err)
	}
	late.Tenant = ""
	if _, err := w.WhatIf(late, nil); !errors.As(err, &refused) || refused.Earliest == nil || refused.Window == nil {
		t.Errorf("the operator's offers of %+v, %v", refused, err)
	}
}
