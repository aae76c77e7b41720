package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// leadFor is how long nobody else becomes the leader after one was cut off, at the least. That one
// stops before: unsure after it last renewed its lease, which it does renewEvery. With etcd's own
// watching, which looks every half second whether the lease is over, two led for up to a second.
const leadFor, unsure, renewEvery = 3 * time.Second, 2 * time.Second, 400 * time.Millisecond

// Term is one controller's time as the leader.
type Term struct {
	store *Store
	key   string
	since int64 // the store's revision at which it began
	// renewed is when the lease was last known to hold.
	renewed *atomic.Pointer[time.Time]
}

// Sure tells whether nobody else can be the leader yet. It is over as soon as the clock says so,
// also for a process that stood still and has not yet been told.
func (t Term) Sure() bool { return time.Since(*t.renewed.Load()) < unsure }

// Lead waits to be the leader, and calls act for as long as it is, again and again until ctx
// ends. act's ctx ends before somebody else may be.
func (s *Store) Lead(ctx context.Context, name string, act func(ctx context.Context, t Term) error) error {
	for ctx.Err() == nil {
		if err := s.term(ctx, name, act); err != nil && ctx.Err() == nil {
			time.Sleep(leadFor / 10) // the store may be away
		}
	}
	return ctx.Err()
}

func (s *Store) term(ctx context.Context, name string, act func(ctx context.Context, t Term) error) error {
	session, err := concurrency.NewSession(s.client, concurrency.WithTTL(int(leadFor.Seconds())), concurrency.WithContext(ctx))
	if err != nil {
		return err
	}
	defer session.Close()
	e := concurrency.NewElection(session, Key(Service, "leader"))
	ctx, end := context.WithCancel(ctx)
	defer end()
	t := Term{store: s, renewed: &atomic.Pointer[time.Time]{}}
	waiting, won := context.WithCancel(ctx)
	defer won()
	go func() {
		if t.wait(waiting, session.Lease()) != nil {
			end()
		}
	}()
	if err := e.Campaign(ctx, name); err != nil {
		return err
	}
	won()
	if err := t.renew(ctx, session.Lease()); err != nil {
		return err
	}
	t.key, t.since = e.Key(), e.Rev()
	go func() {
		defer end()
		t.keep(ctx, session.Lease())
	}()
	go func() {
		defer end()
		t.taken(ctx)
	}()
	return act(ctx, t)
}

// wait renews the lease of one who waits, until ctx ends or there is no lease any more. etcd's own
// renewing hangs for 7 s on a member that stands still, and whoever is next would have lost its
// place by then.
func (t Term) wait(ctx context.Context, lease clientv3.LeaseID) error {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		one, cancel := context.WithTimeout(ctx, 2*renewEvery)
		err := t.renew(one, lease)
		cancel()
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return err
		}
	}
}

// renew renews the lease once.
func (t Term) renew(ctx context.Context, lease clientv3.LeaseID) error {
	began := time.Now()
	_, err := t.store.client.KeepAliveOnce(ctx, lease)
	if err == nil {
		t.renewed.Store(&began)
	}
	return err
}

// keep renews the lease until ctx ends, or until it was not renewed for so long that it is unsure.
func (t Term) keep(ctx context.Context, lease clientv3.LeaseID) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for t.Sure() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		one, cancel := context.WithDeadline(ctx, t.renewed.Load().Add(unsure))
		_ = t.renew(one, lease) // it is tried again for as long as it is sure
		cancel()
	}
}

// taken waits until the key of the term is gone, or ctx ends. A member of etcd that stood still as
// its leader revokes what has meanwhile expired by its own reckoning, also leases that hold: it
// has not heard yet that it leads no more.
func (t Term) taken(ctx context.Context) {
	for got := range t.store.client.Watch(ctx, t.key, clientv3.WithRev(t.since+1)) {
		for _, e := range got.Events {
			if e.Type == clientv3.EventTypeDelete {
				t.renewed.Store(&time.Time{})
				return
			}
		}
		if got.Err() != nil {
			return
		}
	}
}

// Leader is the name of the leader, "" if there is none now.
func (s *Store) Leader(ctx context.Context) (string, error) {
	got, err := s.client.Get(ctx, Key(Service, "leader")+"/", clientv3.WithFirstCreate()...)
	if err != nil {
		return "", readError(err)
	}
	if len(got.Kvs) == 0 {
		return "", nil
	}
	return string(got.Kvs[0].Value), nil
}

// ErrNotLeader means that somebody else is the leader by now.
var ErrNotLeader = errors.New("another controller is the leader")

// Do is Store.Do of a leader: it does nothing once it is not any more.
func (t Term) Do(ctx context.Context, ledger string, do func(*Tx) error) (revision int64, err error) {
	return t.store.Do(ctx, ledger, func(tx *Tx) error {
		if since, ok, err := tx.Get(t.key, nil); err != nil {
			return err
		} else if !ok || since != t.since {
			return ErrNotLeader
		}
		return do(tx)
	})
}

// Store is the one that it leads.
func (t Term) Store() *Store { return t.store }

// Compact forgets what was before a time, as far as it is on record when that was: the revision
// of the last audit entry before it. An etcd that is not the service's own has others' history, too,
// and is left to forget as its owner says.
func (t Term) Compact(ctx context.Context, before time.Time) error {
	if t.store.foreign {
		return nil
	}
	var at int64
	name := fmt.Sprintf("%016x", before.UnixNano())
	err := t.store.Backwards(ctx, Prefix(Audit), name, func(d Doc) (bool, error) {
		at = d.Revision
		return false, nil
	})
	if err != nil || at == 0 {
		return err
	}
	if _, err := t.store.client.Compact(ctx, at); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return readError(err)
	}
	return nil
}
