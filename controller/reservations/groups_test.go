package reservations_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/controller/reservations"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Groups and reservations of one interface count each other: who is second is refused, also if the book was not told, and what ends is free again.
func TestGroupsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := fabric.PortID{Switch: 1, Port: 9}
	groups := reservations.Guarantees{Limit: 80 * unit.Mbit, Total: 50 * unit.Mbit}
	w.CountGroups(func(*fabric.Topology) map[fabric.PortID]reservations.Interface {
		return map[fabric.PortID]reservations.Interface{at: {Host: "web1", Dev: "eth0", Out: groups}}
	})
	follow := func() {
		t.Helper()
		if err := w.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	put := func(guarantee unit.Rate) {
		t.Helper()
		doc := store.Interface{Interface: group.Interface{Dev: "eth0", Out: &group.Direction{Limit: groups.Limit, Groups: []group.Group{{Name: "db", Guarantee: group.Amount{Rate: guarantee}}}}}}
		if _, err := w.store.Do(t.Context(), "x", func(tx *store.Tx) error { return tx.Put(store.Key(store.Interfaces, "web1", "eth0"), doc) }); err != nil {
			t.Fatal(err)
		}
	}
	reserved := func() (r store.Reserved) {
		t.Helper()
		d, ok, err := w.store.Get(t.Context(), store.ReservedKey("web1", "eth0"), 0)
		if err == nil && ok {
			err = d.Into(&r)
		}
		if err != nil {
			t.Fatal(err)
		}
		if ok && r.Until <= w.now().Unix() {
			t.Errorf("%+v has ended", r)
		}
		r.Until = 0
		return r
	}
	put(50 * unit.Mbit)
	follow()
	var refused *reserve.Refusal
	if _, err := w.create(between("a", "h1", "h2", 40*unit.Mbit), nil); !errors.As(err, &refused) || refused.Free != 30*unit.Mbit || refused.Most == nil {
		t.Errorf("of 30 Mbit/s that are left 40 are granted: %v", err)
	}
	r := between("a", "h1", "h2", 20*unit.Mbit)
	r.Reverse = 5 * unit.Mbit
	w.must(r)
	if got := (store.Reserved{OutBps: 20e6, InBps: 5e6}); reserved() != got {
		t.Errorf("the store has %+v", reserved())
	}
	later := between("later", "h1", "h3", 10*unit.Mbit)
	later.Start = began.Add(2 * time.Hour)
	w.must(later)
	if reserved().OutBps != 20e6 {
		t.Errorf("what is not at the same time was added: %+v", reserved())
	}
	// The groups were given the rest, and the book does not know it yet.
	put(60 * unit.Mbit)
	if _, err := w.create(between("b", "h1", "h2", 10*unit.Mbit), nil); err == nil || !strings.Contains(err.Error(), "the groups of eth0 on host web1 were just given 10Mbit") {
		t.Errorf("%v", err)
	}
	groups.Total = 40 * unit.Mbit
	put(40 * unit.Mbit)
	follow()
	w.must(between("b", "h1", "h2", 20*unit.Mbit))
	if reserved().OutBps != 40e6 {
		t.Errorf("the store has %+v", reserved())
	}
	if err := w.cancel(reserve.ID{Name: "b"}); err != nil || reserved().OutBps != 20e6 {
		t.Errorf("%v, %+v", err, reserved())
	}
	// What ended is not reserved, although it is still listed.
	w.at(90 * time.Minute)
	follow()
	if got := (store.Reserved{OutBps: 10e6}); reserved() != got {
		t.Errorf("the store has %+v", reserved())
	}
	w.at(5 * time.Hour)
	if err := w.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	follow()
	if got := (store.Reserved{}); reserved() != got {
		t.Errorf("the store has %+v", reserved())
	}
}
