package reservations_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/controller/reservations"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
	"headgate.dev/headgate/unit"
)

func TestMain(m *testing.M) {
	storetest.Main()
	os.Exit(m.Run())
}

// triangle is a network of three switches with a cable of 100 Mbit/s between each two, and a host at each:
//
//	h1 - s1 ----- s2 - h2
//	       \     /
//	         s3 - h3
//
// dead are the switches between which the cable is cut.
func triangle(dead ...[2]int) *fabric.Topology {
	var p fabric.Parts
	for i := range 3 {
		id := fabric.DPID(i + 1)
		sw := fabric.Switch{ID: id, Name: fmt.Sprint("s", i+1), Ports: []fabric.Port{{No: 9, Speed: unit.Gbit}}}
		for j := range 3 {
			if j == i {
				continue
			}
			state := fabric.Up
			if slices.Contains(dead, [2]int{min(i, j) + 1, max(i, j) + 1}) {
				state = fabric.Down
			}
			sw.Ports = append(sw.Ports, fabric.Port{No: fabric.PortNo(j + 1), State: state})
			p.Links = append(p.Links, fabric.Link{LinkID: link(i+1, j+1), Capacity: 100 * unit.Mbit, Cost: 1})
		}
		p.Switches = append(p.Switches, sw)
		p.Hosts = append(p.Hosts, fabric.Host{
			HostID: fabric.HostID{MAC: fabric.MAC{2, 0, 0, 0, 0, byte(i + 1)}}, Name: fmt.Sprint("h", i+1), Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})},
			At: fabric.PortID{Switch: id, Port: 9}, Learned: fabric.FromConfiguration,
		})
	}
	top, err := fabric.New(p)
	if err != nil {
		panic(err)
	}
	return top
}

// link is that from one switch to another: a port has the number of the switch behind it.
func link(from, to int) fabric.LinkID {
	return fabric.LinkID{From: fabric.PortID{Switch: fabric.DPID(from), Port: fabric.PortNo(to)}, To: fabric.PortID{Switch: fabric.DPID(to), Port: fabric.PortNo(from)}}
}

// world is an owner on a real store, with a network and a clock that the test sets.
type world struct {
	t     *testing.T
	store *store.Store
	term  *term
	end   func() // ends the first term
	top   atomic.Pointer[fabric.Topology]
	clock atomic.Pointer[time.Time]
	*reservations.Owner
}

// term is a term in which writes can fail.
type term struct {
	store.Term
	fail atomic.Pointer[func(ctx context.Context, ledger string, do func(*store.Tx) error) (int64, error)]
}

func (t *term) Do(ctx context.Context, ledger string, do func(*store.Tx) error) (int64, error) {
	if fail := t.fail.Load(); fail != nil {
		return (*fail)(ctx, ledger, do)
	}
	return t.Term.Do(ctx, ledger, do)
}

// lead makes a candidate the leader, until end is called.
func lead(t *testing.T, s *store.Store, name string) (_ store.Term, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	terms := make(chan store.Term)
	var running sync.WaitGroup
	running.Go(func() {
		s.Lead(ctx, store.Candidate{Name: name}, func(ctx context.Context, t store.Term) error {
			select {
			case terms <- t:
			case <-ctx.Done():
			}
			<-ctx.Done()
			return nil
		})
	})
	end = func() { cancel(); running.Wait() }
	t.Cleanup(end)
	select {
	case one := <-terms:
		return one, end
	case <-time.After(30 * time.Second):
		t.Fatal("no term for 30 s")
		return store.Term{}, nil
	}
}

var began = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: storetest.Open(t, storetest.Start(t))}
	w.top.Store(triangle())
	w.clock.Store(&began)
	one, end := lead(t, w.store, "c1")
	w.end = end
	w.open(one)
	return w
}

// open builds an owner in a term.
func (w *world) open(one store.Term) {
	w.t.Helper()
	w.term = &term{Term: one}
	var err error
	if w.Owner, err = reservations.Open(w.t.Context(), w.term, func() (*fabric.Topology, error) { return w.top.Load(), nil }, w.now); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) now() time.Time { return *w.clock.Load() }

func (w *world) at(after time.Duration) {
	now := began.Add(after)
	w.clock.Store(&now)
}

// network changes the network, which the owner follows.
func (w *world) network(dead ...[2]int) {
	w.t.Helper()
	w.top.Store(triangle(dead...))
	if err := w.Follow(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func between(name, from, to string, rate unit.Rate) reserve.Request {
	return reserve.Request{
		ID: reserve.ID{Name: name}, Source: reserve.Endpoint{Name: from}, Destination: reserve.Endpoint{Name: to}, Class: 4, Forward: rate, Duration: time.Hour,
	}
}

func (w *world) create(r reserve.Request, within *store.ReservationBounds) (doc store.Reservation, err error) {
	err = w.Do(w.t.Context(), func(d *reservations.Decision) error {
		doc, err = d.Create(r, within)
		return err
	})
	return doc, err
}

func (w *world) must(r reserve.Request) store.Reservation {
	w.t.Helper()
	doc, err := w.create(r, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return doc
}

func (w *world) change(r reserve.Request, move bool, within *store.ReservationBounds) (doc store.Reservation, err error) {
	err = w.Do(w.t.Context(), func(d *reservations.Decision) error {
		doc, err = d.Change(r, move, within)
		return err
	})
	return doc, err
}

func (w *world) cancel(id reserve.ID) error {
	return w.Do(w.t.Context(), func(d *reservations.Decision) error {
		_, err := d.Cancel(id)
		return err
	})
}

// stored returns what the store has.
func (w *world) stored() (all []reserve.Reservation) {
	w.t.Helper()
	docs, _, err := w.store.All(w.t.Context(), store.Prefix(store.Reservations), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range docs {
		var doc store.Reservation
		if err := d.Into(&doc); err != nil {
			w.t.Fatal(err)
		}
		r, err := doc.Granted()
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// agree fails if the book and the store differ.
func (w *world) agree() {
	w.t.Helper()
	if book, stored := w.List(), w.stored(); !reflect.DeepEqual(book, stored) {
		w.t.Fatalf("the book has\n%+v\nand the store has\n%+v", book, stored)
	}
}

// reserved is the rate on a link at a moment after the beginning.
func (w *world) reserved(id fabric.LinkID, after time.Duration) unit.Rate {
	w.t.Helper()
	at := began.Add(after)
	steps, _, ok := w.Calendar(id, at, at.Add(time.Second))
	if !ok {
		w.t.Fatalf("no link %v", id)
	}
	return steps[0].Reserved
}

// Reservations are created, changed and cancelled in the book and in the store. Refusals and what-ifs have no effect.
func TestOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	changes := w.Watch(t.Context())
	doc := w.must(between("a", "h1", "10.0.0.2", 80*unit.Mbit))
	if doc.Request.From.At != (store.NetworkPort{Switch: 1, Port: 9}) || doc.Request.From.Prefix.String() != "10.0.0.1/32" || len(doc.Paths) != 1 || len(doc.Paths[0].Links) != 1 {
		t.Errorf("granted %+v", doc)
	}
	w.agree()
	select {
	case <-changes:
	default:
		t.Error("a watcher was not signalled")
	}
	if got := w.reserved(link(1, 2), 0); got != 80*unit.Mbit {
		t.Errorf("reserved %v", got)
	}
	// The next one takes the other way, and then there is none.
	w.must(between("b", "h1", "h2", 80*unit.Mbit))
	before := w.List()
	third := between("c", "h1", "h2", 50*unit.Mbit)
	var refused *reserve.Refusal
	if _, err := w.create(third, nil); !errors.As(err, &refused) || refused.Most == nil || refused.Most.Forward != 20*unit.Mbit || !refused.Earliest.Start.Equal(began.Add(time.Hour)) {
		t.Errorf("refusal %v", err)
	}
	if _, err := w.WhatIf(*refused.Most, nil); err != nil {
		t.Errorf("a counter-offer is refused: %v", err)
	}
	dry := errors.New("dry run")
	if err := w.Do(t.Context(), func(d *reservations.Decision) error {
		if _, err := d.Create(*refused.Most, nil); err != nil {
			t.Error(err)
		}
		return dry
	}); !errors.Is(err, dry) || !reflect.DeepEqual(w.List(), before) {
		t.Errorf("%v, and the book has %v", err, w.List())
	}
	w.agree()

	// More rate and time, within what the path has.
	more := between("a", "h1", "10.0.0.2", 90*unit.Mbit)
	more.Duration = 2 * time.Hour
	doc, err := w.change(more, false, nil)
	if err != nil || doc.RateBps != 90e6 || !doc.End.Equal(began.Add(2*time.Hour)) || doc.Generation != 2 {
		t.Errorf("changed to %+v, %v", doc, err)
	}
	w.agree()
	if again, err := w.change(more, false, nil); err != nil || again.Generation != 2 {
		t.Errorf("the same request again: %+v, %v", again, err)
	}
	other := more
	other.Class, other.Destination.Name = 1, "h3"
	if _, err := w.change(other, false, nil); err == nil || !strings.Contains(err.Error(), "to of reservation a cannot change") || !strings.Contains(err.Error(), "class of reservation a") {
		t.Errorf("another destination: %v", err)
	}
	if err := w.cancel(reserve.ID{Name: "b"}); err != nil {
		t.Error(err)
	}
	if err := w.cancel(reserve.ID{Name: "b"}); !errors.Is(err, reservations.ErrNotFound) {
		t.Error(err)
	}
	w.must(third)
	w.agree()
	if all := w.Active(); len(all) != 2 {
		t.Errorf("active: %v", all)
	}
	w.at(90 * time.Minute)
	if all := w.Active(); len(all) != 1 || all[0].Request.Name != "a" {
		t.Errorf("active after the end of c: %v", all)
	}
	// What has ended is kept for the grace of an hour.
	w.at(2*time.Hour - time.Second)
	if err := w.Expire(t.Context()); err != nil || len(w.List()) != 2 {
		t.Errorf("%v, %v", err, w.List())
	}
	w.at(2 * time.Hour)
	if err := w.Expire(t.Context()); err != nil || len(w.List()) != 1 {
		t.Errorf("%v, %v", err, w.List())
	}
	w.agree()
}

// A failed write leaves the book as before. When it is unknown whether a write was made, the book is built again, and
// the write is not made later.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(between("a", "h1", "h2", 10*unit.Mbit))
	before := w.List()
	fail := func(f func(context.Context, string, func(*store.Tx) error) (int64, error)) { w.term.fail.Store(&f) }
	fail(func(context.Context, string, func(*store.Tx) error) (int64, error) { return 0, store.ErrFull })
	if _, err := w.create(between("b", "h1", "h2", 10*unit.Mbit), nil); !errors.Is(err, store.ErrFull) || !reflect.DeepEqual(w.List(), before) {
		t.Errorf("%v, %v", err, w.List())
	}
	if err := w.cancel(reserve.ID{Name: "a"}); !errors.Is(err, store.ErrFull) || !reflect.DeepEqual(w.List(), before) {
		t.Errorf("%v, %v", err, w.List())
	}
	// The write is made, and its answer is lost.
	fail(func(ctx context.Context, ledger string, do func(*store.Tx) error) (int64, error) {
		if _, err := w.term.Term.Do(ctx, ledger, do); err != nil {
			return 0, err
		}
		return 0, store.ErrUnknown
	})
	if _, err := w.create(between("c", "h1", "h2", 10*unit.Mbit), nil); !errors.Is(err, store.ErrUnknown) {
		t.Error(err)
	}
	w.term.fail.Store(nil)
	if _, err := w.create(between("c", "h1", "h2", 10*unit.Mbit), nil); err == nil || !strings.Contains(err.Error(), "reservation c exists") {
		t.Errorf("the repeat: %v", err)
	}
	w.agree()
	// The write is late: it comes after the book was built again, and is refused.
	late, done := make(chan struct{}), make(chan error, 1)
	fail(func(ctx context.Context, ledger string, do func(*store.Tx) error) (int64, error) {
		read := make(chan struct{})
		go func() {
			tries := 0
			_, err := w.term.Term.Do(context.Background(), "late", func(tx *store.Tx) error {
				if tries++; tries > 1 {
					return errors.New("what was read has changed")
				}
				err := do(tx)
				close(read)
				<-late
				return err
			})
			done <- err
		}()
		<-read
		return 0, store.ErrUnknown
	})
	if _, err := w.create(between("d", "h1", "h2", 10*unit.Mbit), nil); !errors.Is(err, store.ErrUnknown) {
		t.Error(err)
	}
	w.term.fail.Store(nil)
	w.must(between("e", "h1", "h2", 10*unit.Mbit))
	close(late)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("the late write: %v", err)
	}
	w.agree()
	if all := w.List(); len(all) != 3 {
		t.Errorf("the book has %v", all)
	}
}

// A dead link reroutes what was on it, in one plan that is stored. What has no path is degraded, with the reason, and
// repaired when a path is back.
func TestReroute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(between("a", "h1", "h2", 80*unit.Mbit))
	first := between("b", "h1", "h2", 30*unit.Mbit)
	first.Class = 1
	w.must(first) // the other way
	w.network([2]int{1, 2})
	got := w.List()
	if a, b := got[0], got[1]; a.Degraded == "" || b.Degraded != "" || !slices.Equal(a.Paths[0].Links, fabric.Path{link(1, 3), link(3, 2)}) || a.Paths[0].Forward != 70*unit.Mbit || b.Paths[0].Forward != 30*unit.Mbit {
		t.Errorf("after a link died: %+v", got)
	}
	w.agree()
	w.network([2]int{1, 2}, [2]int{1, 3})
	for _, r := range w.List() {
		if len(r.Paths) != 0 || r.Degraded == "" || r.State(began) != reserve.Degraded {
			t.Errorf("without a path: %+v", r)
		}
	}
	w.agree()
	if len(w.Active()) != 2 {
		t.Error("degraded reservations are not active")
	}
	w.network()
	for _, r := range w.List() {
		if r.Degraded != "" || len(r.Paths) != 1 {
			t.Errorf("repaired: %+v", r)
		}
	}
	w.agree()
	// A reservation that is cancelled gives its bandwidth to a degraded one.
	w.network([2]int{1, 2})
	if err := w.cancel(reserve.ID{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	w.network([2]int{1, 2})
	if r := w.List()[0]; r.Degraded != "" || r.Paths[0].Forward != 80*unit.Mbit {
		t.Errorf("after a cancellation: %+v", r)
	}
	w.agree()
	docs, _, err := w.store.All(t.Context(), store.Prefix(store.Audit), 0)
	var text strings.Builder
	for _, d := range docs {
		text.Write(d.Value)
	}
	if err != nil || !strings.Contains(text.String(), "reservations/-/a: reroute: degraded, because") || !strings.Contains(text.String(), "reservations/-/a: reroute: repaired") {
		t.Errorf("the audit log has %s, %v", &text, err)
	}
	// A plan that is not stored is not entered, and is made again.
	unstored := func(context.Context, string, func(*store.Tx) error) (int64, error) { return 0, store.ErrUnavailable }
	w.term.fail.Store((*func(context.Context, string, func(*store.Tx) error) (int64, error))(&unstored))
	before := w.List()
	w.top.Store(triangle([2]int{1, 2}, [2]int{1, 3}))
	if err := w.Follow(t.Context()); !errors.Is(err, store.ErrUnavailable) || !reflect.DeepEqual(w.List(), before) {
		t.Errorf("%v, %+v", err, w.List())
	}
	w.term.fail.Store(nil)
	w.network([2]int{1, 2}, [2]int{1, 3})
	if r := w.List()[0]; r.Degraded == "" {
		t.Errorf("the plan was not made again: %+v", r)
	}
	w.agree()
}

// The next leader has the same book as the one before, which grants nothing after its term.
func TestNextLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 {
		r := between(fmt.Sprint("r", i), "h1", "h2", 9*unit.Mbit)
		r.Start = began.Add(time.Duration(i) * time.Hour)
		w.must(r)
	}
	former := w.Owner
	before := former.List()
	w.end()
	second, _ := lead(t, w.store, "c2")
	w.open(second)
	if got := w.List(); !reflect.DeepEqual(got, before) {
		t.Errorf("the next leader has\n%+v\nwant\n%+v", got, before)
	}
	for i := range 20 {
		at := time.Duration(i)*time.Hour + time.Minute
		if got, want := w.reserved(link(1, 2), at)+w.reserved(link(1, 3), at), 9*unit.Mbit; got != want {
			t.Errorf("%v are reserved at %v, want %v", got, at, want)
		}
	}
	err := former.Do(t.Context(), func(d *reservations.Decision) error {
		_, err := d.Create(between("late", "h1", "h2", unit.Mbit), nil)
		return err
	})
	if !errors.Is(err, store.ErrNotLeader) {
		t.Errorf("the former leader: %v", err)
	}
	w.agree()
}

// The next leader waits for the links of its reservations, and plans again for those that stay away.
func TestFirstTopology(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(between("a", "h1", "h2", 80*unit.Mbit))
	w.top.Store(triangle([2]int{1, 2})) // the switches are connecting
	time.AfterFunc(500*time.Millisecond, func() { w.top.Store(triangle()) })
	w.open(w.term.Term)
	if r := w.List()[0]; r.Generation != 1 || len(r.Paths[0].Links) != 1 {
		t.Errorf("the reservation was rerouted while switches connected: %+v", r)
	}
	w.top.Store(triangle([2]int{1, 2}))
	w.open(w.term.Term)
	if r := w.List()[0]; r.Generation != 2 || len(r.Paths[0].Links) != 2 {
		t.Errorf("the reservation is on a dead link: %+v", r)
	}
	w.agree()
}

// A document that cannot be read has no owner: its bandwidth would be sold again.
func TestForeignDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	doc := w.must(between("a", "h1", "h2", unit.Mbit))
	doc.Request.Disjoint = "orbit"
	if _, err := w.store.Do(t.Context(), "x", func(tx *store.Tx) error { return tx.Put(store.ReservationKey(doc.ID()), doc) }); err != nil {
		t.Fatal(err)
	}
	_, err := reservations.Open(t.Context(), w.term, func() (*fabric.Topology, error) { return w.top.Load(), nil }, w.now)
	if err == nil || !strings.Contains(err.Error(), "upgrade the controller") {
		t.Error(err)
	}
}

// A clock that jumps an hour, and back, removes no reservation that has not ended, and moves none.
func TestClockJump(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(between("a", "h1", "h2", 80*unit.Mbit))
	next := between("b", "h1", "h2", 80*unit.Mbit)
	next.Start = began.Add(time.Hour)
	w.must(next)
	before := w.List()
	for _, jump := range []time.Duration{time.Hour, -time.Hour, time.Hour + 59*time.Minute, 0} {
		w.at(jump)
		if err := errors.Join(w.Follow(t.Context()), w.Expire(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := w.List(); !reflect.DeepEqual(got, before) {
			t.Errorf("after a jump of %v: %+v", jump, got)
		}
	}
	w.at(-time.Hour)
	past := between("c", "h1", "h3", unit.Mbit)
	past.Start = began.Add(-2 * time.Hour)
	if _, err := w.create(past, nil); err == nil || !strings.Contains(err.Error(), "is in the past") {
		t.Errorf("a start in the past: %v", err)
	}
	w.agree()
}
