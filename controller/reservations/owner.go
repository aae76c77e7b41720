package reservations

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Term is the leader's term in which reservations are changed: a store.Term.
type Term interface {
	// Do runs a transaction that changes nothing after the end of the term.
	Do(ctx context.Context, ledger string, do func(*store.Tx) error) (revision int64, err error)
	Store() *store.Store
}

// Network returns the network as it is now.
type Network func() (*fabric.Topology, error)

// Owner is the owner of the reservations. Its methods can be called by several goroutines.
type Owner struct {
	term    Term
	network Network
	now     func() time.Time
	choose  Choose // nil without switches
	joined  Joined // nil without hosts of a service

	// deciding is held from a decision until it is in the book.
	deciding sync.Mutex
	// stale reports that the store may have what the book does not have. planned is when all reservations were last
	// planned together, zero if that must be done now, and freed reports that bandwidth was released since. deciding
	// guards them.
	stale, freed bool
	planned      time.Time

	// mu guards what follows while it is read or replaced. It is not held during a transaction.
	mu       sync.RWMutex
	book     *reserve.Book
	top      *fabric.Topology // that of the book, with the newest hosts
	times    map[reserve.ID]times
	byTenant map[string]map[reserve.ID]struct{}
	byPort   map[fabric.PortID]map[reserve.ID]struct{} // of both ends
	version  uint64                                    // counts changes of the book
	shared   shared
	degraded map[reserve.ID]struct{}
	watchers map[chan struct{}]struct{}
}

// times are when a reservation was created and last changed.
type times struct{ created, changed time.Time }

// ledger is the queue of the store's transactions: changes of reservations run one after the other.
var ledger = store.Prefix(store.Reservations)

// Open builds the book of a term from the store and the network. It returns when all links and ports of the stored
// reservations are in the network, or after firstTopology. An error that is not ctx's says which document is wrong: with
// it the reservations have no owner, because a reservation that is not counted could be sold twice.
func Open(ctx context.Context, term Term, network Network, now func() time.Time) (*Owner, error) {
	o := &Owner{term: term, network: network, now: now, watchers: map[chan struct{}]struct{}{}}
	docs, err := readAll(ctx, term.Store())
	if err != nil {
		return nil, err
	}
	top, err := await(ctx, network, docs, now())
	if err != nil {
		return nil, err
	}
	o.deciding.Lock()
	err = o.load(ctx, top)
	o.deciding.Unlock()
	if err != nil {
		return nil, err
	}
	return o, o.Follow(ctx)
}

// loadTimeout is how long the reading of all reservations may take: 10,000 documents of 1 kB take a second on a slow disk.
// Meanwhile no change is decided. The value is chosen for Headgate.
const loadTimeout = 10 * time.Second

// load reads all reservations from the store into a new book. deciding must be held.
func (o *Owner) load(ctx context.Context, top *fabric.Topology) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	// A change of which it is unknown whether it was made has read the fence, and cannot be made after this.
	if _, err := o.term.Do(ctx, ledger, func(tx *store.Tx) error { return tx.Put(store.ReservationFence, o.now().UTC()) }); err != nil {
		return fmt.Errorf("cannot read the reservations: %w", err)
	}
	docs, err := readAll(ctx, o.term.Store())
	if err != nil {
		return err
	}
	book, err := reserve.NewBook(top, reserve.Limits{})
	if err != nil {
		return err
	}
	granted := make([]reserve.Reservation, len(docs))
	for i, d := range docs {
		if granted[i], err = d.Granted(); err != nil {
			return err
		}
	}
	o.mu.Lock()
	o.book, o.top = book, top
	o.times, o.byTenant, o.degraded = map[reserve.ID]times{}, map[string]map[reserve.ID]struct{}{}, map[reserve.ID]struct{}{}
	o.byPort, o.shared.held, o.shared.written = map[fabric.PortID]map[reserve.ID]struct{}{}, map[fabric.LinkID]unit.Rate{}, nil
	for i, r := range granted {
		o.set(r, times{docs[i].Created, docs[i].Changed})
	}
	o.mu.Unlock()
	o.stale, o.planned = false, time.Time{}
	o.announce()
	return nil
}

// refresh builds the book again if the store may have what it does not have. deciding must be held.
func (o *Owner) refresh(ctx context.Context) error {
	if !o.stale {
		return nil
	}
	return o.load(ctx, o.top)
}

// readAll reads all documents of reservations.
func readAll(ctx context.Context, s *store.Store) (all []store.Reservation, err error) {
	docs, _, err := s.All(ctx, store.Prefix(store.Reservations), 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the reservations: %w", err)
	}
	for _, d := range docs {
		var r store.Reservation
		if err := d.Into(&r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Do runs one change: decide reads and writes documents, decides by the methods of Decision, and may refuse the change
// with an error, which Do returns. It may be called several times. The change is in the book when Do returns without an
// error, and else it is not made, unless the error is store.ErrUnknown.
func (o *Owner) Do(ctx context.Context, decide func(*Decision) error) error {
	o.deciding.Lock()
	defer o.deciding.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	var d *Decision
	now := o.now()
	err := o.write(ctx, func(tx *store.Tx) error {
		d = &Decision{Tx: tx, owner: o, now: now}
		return decide(d)
	})
	if err != nil {
		return err
	}
	if d.enter != nil {
		o.mu.Lock()
		d.enter()
		o.mu.Unlock()
		o.announce()
	}
	return nil
}

// write runs a transaction, and builds the book again before it if necessary. deciding must be held.
func (o *Owner) write(ctx context.Context, do func(*store.Tx) error) error {
	// The transaction does not end with the request that asks for it: it must be known whether it was made.
	ctx = context.WithoutCancel(ctx)
	if err := o.refresh(ctx); err != nil {
		return err
	}
	_, err := o.term.Do(ctx, ledger, func(tx *store.Tx) error {
		if _, _, err := tx.Get(store.ReservationFence, nil); err != nil {
			return err
		}
		return do(tx)
	})
	o.stale = errors.Is(err, store.ErrUnknown)
	return err
}

// set puts a reservation into the book, in place of one with its name. mu must be held.
func (o *Owner) set(r reserve.Reservation, at times) {
	id := r.Request.ID
	o.remove(id)
	if err := o.book.Restore(r); err != nil {
		panic(err) // a bug: remove has removed it
	}
	o.times[id] = at
	if o.byTenant[id.Tenant] == nil {
		o.byTenant[id.Tenant] = map[reserve.ID]struct{}{}
	}
	o.byTenant[id.Tenant][id] = struct{}{}
	for _, at := range endsOf(r) {
		if o.byPort[at] == nil {
			o.byPort[at] = map[reserve.ID]struct{}{}
		}
		o.byPort[at][id] = struct{}{}
	}
	o.version++
	if r.Degraded != "" {
		o.degraded[id] = struct{}{}
	}
}

// remove removes a reservation from the book, if it has it. mu must be held.
func (o *Owner) remove(id reserve.ID) {
	r, err := o.book.Cancel(id)
	if err != nil {
		return
	}
	for _, at := range endsOf(r) {
		if delete(o.byPort[at], id); len(o.byPort[at]) == 0 {
			delete(o.byPort, at)
		}
	}
	o.version++
	delete(o.times, id)
	delete(o.degraded, id)
	if delete(o.byTenant[id.Tenant], id); len(o.byTenant[id.Tenant]) == 0 {
		delete(o.byTenant, id.Tenant)
	}
}

// endsOf returns the ports of both ends.
func endsOf(r reserve.Reservation) []fabric.PortID {
	return []fabric.PortID{r.Request.Source.At, r.Request.Destination.At}
}

// changedAt returns the times of a reservation that is created or changed now.
func (o *Owner) changedAt(id reserve.ID, now time.Time) times {
	at := times{now.UTC(), now.UTC()}
	if was, ok := o.times[id]; ok {
		at.created = was.created
	}
	return at
}

func documentOf(r reserve.Reservation, at times) store.Reservation {
	return store.DocumentOf(r, at.created, at.changed)
}
