package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Values chosen for Headgate.
const (
	// maxBatch is how many requests one transaction contains. Each request writes its document, an
	// audit entry and its answer, and an external etcd accepts 128 operations by default.
	maxBatch = 40
	// maxBatchTime is how long the requests of one transaction may take together: the requests of another tenant wait for it. A request takes up to 30 ms on an
	// interface of the largest size that a tenant may have.
	maxBatchTime = 20 * time.Millisecond
	// txTimeout is the timeout of a transaction, after which its outcome is unknown.
	txTimeout = 5 * time.Second
)

// queue holds the waiting requests of one ledger. Tenants take turns: one that sends many requests waits for itself.
type queue struct {
	turns   []string // tenants that have requests waiting, in the order of their turns
	waiting map[string][]*request
}

// add appends a request to those of its tenant.
func (q *queue) add(r *request) {
	if len(q.waiting[r.tenant]) == 0 {
		q.turns = append(q.turns, r.tenant)
	}
	q.waiting[r.tenant] = append(q.waiting[r.tenant], r)
}

// take removes up to most requests, one of each tenant in turn.
func (q *queue) take(most int) (all []*request) {
	for len(all) < most && len(q.turns) > 0 {
		tenant := q.turns[0]
		of := q.waiting[tenant]
		all = append(all, of[0])
		q.turns = q.turns[1:]
		if q.waiting[tenant] = of[1:]; len(of) > 1 {
			q.turns = append(q.turns, tenant)
		} else {
			delete(q.waiting, tenant)
		}
	}
	return all
}

// putBack returns requests that take has removed to the front.
func (q *queue) putBack(all []*request) {
	for _, r := range slices.Backward(all) {
		q.waiting[r.tenant] = append([]*request{r}, q.waiting[r.tenant]...)
		q.turns = slices.DeleteFunc(q.turns, func(t string) bool { return t == r.tenant })
		q.turns = append([]string{r.tenant}, q.turns...)
	}
}

// tenantKey is the context key of the tenant whose turn a request takes.
type tenantKey struct{}

// ForTenant returns a context whose requests take the turns of a tenant. Requests without a tenant have turns of their own.
func ForTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

type request struct {
	ctx       context.Context
	tenant    string
	do        func(*Tx) error
	rejection error
	revision  int64
	done      chan error
}

// Do runs a change. do reads and writes documents, or returns an error, which rejects the change. do
// may be called several times, for one answer. Requests with the same ledger are processed several in one
// transaction, those of one tenant (ForTenant) in order and tenants in turn; requests of different ledgers run concurrently. The returned
// revision is the store's revision with the change. Errors are those of do, of ctx, and ErrUnknown.
func (s *Store) Do(ctx context.Context, ledger string, do func(*Tx) error) (revision int64, err error) {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	r := &request{ctx: ctx, tenant: tenant, do: do, done: make(chan error, 1)}
	s.mu.Lock()
	q := s.queues[ledger]
	if q == nil {
		q = &queue{waiting: map[string][]*request{}}
		s.queues[ledger] = q
		go s.processQueue(ledger, q)
	}
	q.add(r)
	s.mu.Unlock()
	select {
	case err := <-r.done:
		return r.revision, err
	case <-ctx.Done():
		// The request may be in a transaction at this moment.
		return 0, errors.Join(ErrUnknown, ctx.Err())
	}
}

// processQueue processes the queue of a ledger until it is empty.
func (s *Store) processQueue(ledger string, q *queue) {
	for {
		s.mu.Lock()
		together := q.take(maxBatch)
		if len(together) == 0 {
			delete(s.queues, ledger)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if left := s.process(together); len(left) > 0 {
			s.mu.Lock()
			q.putBack(left)
			s.mu.Unlock()
		}
	}
}

// process processes some requests in one transaction, and returns those for which it had no time.
func (s *Store) process(together []*request) (left []*request) {
	ctx, cancel := context.WithTimeout(context.Background(), txTimeout)
	defer cancel()
	for again := false; ; again = true {
		n, revision, ok, err := s.try(ctx, together, again)
		together, left = together[:n], append(together[n:], left...)
		if !ok && err == nil {
			continue // another client changed what was read
		}
		if errors.Is(err, ErrTooLarge) && len(together) > 1 {
			for _, r := range together { // each one alone may fit
				s.process([]*request{r})
			}
			return left
		}
		for _, r := range together {
			switch {
			case err != nil:
				r.done <- err
			default:
				r.revision = revision
				r.done <- r.rejection
			}
		}
		return left
	}
}

// try runs the first n requests in a transaction: as many as maxBatchTime has time for, and at least one.
func (s *Store) try(ctx context.Context, together []*request, again bool) (n int, revision int64, ok bool, err error) {
	t := newTx(ctx, s, again)
	began := time.Now()
	for _, r := range together {
		if n > 0 && time.Since(began) > maxBatchTime {
			break
		}
		n++
		if r.rejection = r.ctx.Err(); r.rejection != nil {
			continue // the caller has given up
		}
		before := t.save()
		if r.rejection = r.call(t); r.rejection == nil {
			continue
		}
		if errors.Is(r.rejection, ErrUnavailable) {
			return len(together), 0, false, r.rejection
		}
		t.restore(before)
	}
	revision, ok, err = t.commit()
	return n, revision, ok, err
}

// call runs the request's function and turns a panic into an error of this request alone.
func (r *request) call(t *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot process the change: panic: %v", p)
		}
	}()
	return r.do(t)
}
