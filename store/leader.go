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

// leaseTTL is the lease's lifetime: another controller becomes the leader at least this long after the
// last renewal of a disconnected leader. The disconnected leader stops earlier, validFor after its last
// renewal. renewInterval is the renewal interval. etcd's own session checks only every half second whether
// the lease has expired, and then two controllers led for up to a second.
const leaseTTL, validFor, renewInterval = 3 * time.Second, 2 * time.Second, 400 * time.Millisecond

// Term is one controller's time as the leader.
type Term struct {
	store    *Store
	key      string
	revision int64 // the store's revision at which the term began
	// renewed is when the lease was last known to be valid.
	renewed *atomic.Pointer[time.Time]
}

// Valid reports whether no other controller can be the leader yet. It depends on the clock only, so it
// is correct also in a process that was suspended and has not yet noticed the loss of its lease.
func (t Term) Valid() bool { return time.Since(*t.renewed.Load()) < validFor }

// Lead takes part in the leader election, and calls act for each term as the leader, until ctx ends. act's ctx ends before
// another controller can become the leader. When Lead returns, act has returned, and the candidate has resigned.
func (s *Store) Lead(ctx context.Context, c Candidate, act func(ctx context.Context, t Term) error) error {
	for ctx.Err() == nil {
		if err := s.term(ctx, c, act); err != nil && ctx.Err() == nil {
			time.Sleep(leaseTTL / 10) // the store may be disconnected
		}
	}
	return ctx.Err()
}

func (s *Store) term(ctx context.Context, c Candidate, act func(ctx context.Context, t Term) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	if err := s.revokeFormer(ctx, c); err != nil {
		return err
	}
	session, err := s.newSession(ctx, c)
	if err != nil {
		return err
	}
	defer s.resign(ctx, session)
	e := concurrency.NewElection(session, Key(Service, "leader"))
	t := Term{store: s, renewed: &atomic.Pointer[time.Time]{}}
	waiting, won := context.WithCancel(ctx)
	defer won()
	go func() {
		if t.renewWhileWaiting(waiting, session.Lease()) != nil {
			end()
		}
	}()
	if err := e.Campaign(ctx, c.Name); err != nil {
		return err
	}
	won()
	if err := t.renew(ctx, session.Lease()); err != nil {
		return err
	}
	t.key, t.revision = e.Key(), e.Rev()
	go func() {
		defer end()
		t.renewWhileLeading(ctx, session.Lease())
	}()
	go func() {
		defer end()
		t.waitDeleted(ctx)
	}()
	return act(ctx, t)
}

// renewWhileWaiting renews the lease during the campaign, until ctx ends or the lease is lost. etcd's own renewal
// blocks for 7 s on an etcd member that hangs, and the next candidate would lose its place by then.
func (t Term) renewWhileWaiting(ctx context.Context, lease clientv3.LeaseID) error {
	tick := time.NewTicker(renewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		one, cancel := context.WithTimeout(ctx, 2*renewInterval)
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

// renewWhileLeading renews the lease until ctx ends, or until the last renewal is so old that the
// term is not valid.
func (t Term) renewWhileLeading(ctx context.Context, lease clientv3.LeaseID) {
	tick := time.NewTicker(renewInterval)
	defer tick.Stop()
	for t.Valid() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		one, cancel := context.WithDeadline(ctx, t.renewed.Load().Add(validFor))
		_ = t.renew(one, lease) // retried while the term is valid
		cancel()
	}
}

// waitDeleted waits until the key of the term is deleted, or ctx ends. An etcd leader that was suspended
// revokes leases that have expired by its own clock, also valid ones, before it notices that it is not
// the leader any more.
func (t Term) waitDeleted(ctx context.Context) {
	for got := range t.store.client.Watch(ctx, t.key, clientv3.WithRev(t.revision+1)) {
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

// Leader returns the name of the leader, "" if there is none now.
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

// ErrNotLeader means that another controller has become the leader.
var ErrNotLeader = errors.New("not the leader: another controller has become the leader")

// Do is Store.Do with fencing: it changes nothing after the term has ended.
func (t Term) Do(ctx context.Context, ledger string, do func(*Tx) error) (revision int64, err error) {
	return t.store.Do(ctx, ledger, func(tx *Tx) error {
		if since, ok, err := tx.Get(t.key, nil); err != nil {
			return err
		} else if !ok || since != t.revision {
			return ErrNotLeader
		}
		return do(tx)
	})
}

// Generation returns the number of the term, which is higher than those of all terms before, also after a restore of a
// backup: 2^32 times the epoch, plus the revision at which this controller became a candidate. Candidates are elected in the
// order of their revisions.
func (t Term) Generation(ctx context.Context) (uint64, error) {
	p, err := t.store.Position(ctx)
	return p.Epoch<<32 + uint64(t.revision), err
}

// Store returns the store of the term.
func (t Term) Store() *Store { return t.store }

// Compact compacts the history before a time. The revision is that of the last audit log entry before
// the time. The history of an external etcd includes that of other users, so its compaction is left to
// its operator.
func (t Term) Compact(ctx context.Context, before time.Time) error {
	if t.store.external {
		return nil
	}
	var at int64
	name := fmt.Sprintf("%016x", before.UnixNano())
	err := t.store.Descending(ctx, Prefix(Audit), name, func(d Doc) (bool, error) {
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
