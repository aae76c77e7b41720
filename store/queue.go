package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Values chosen for Headgate.
const (
	// maxBatch is how many requests one transaction contains. Each request writes its document, an
	// audit entry and its answer, and an external etcd accepts 128 operations by default.
	maxBatch = 40
	// txTimeout is the timeout of a transaction, after which its outcome is unknown.
	txTimeout = 5 * time.Second
)

// queue holds the waiting requests of one ledger.
type queue struct {
	waiting []*request
}

type request struct {
	ctx       context.Context
	do        func(*Tx) error
	rejection error
	revision  int64
	done      chan error
}

// Do runs a change. do reads and writes documents, or returns an error, which rejects the change. do
// may be called several times, for one answer. Requests with the same ledger are processed in order
// and several in one transaction; requests of different ledgers run concurrently. The returned
// revision is the store's revision with the change. Errors are those of do, of ctx, and ErrUnknown.
func (s *Store) Do(ctx context.Context, ledger string, do func(*Tx) error) (revision int64, err error) {
	r := &request{ctx: ctx, do: do, done: make(chan error, 1)}
	s.mu.Lock()
	q := s.queues[ledger]
	if q == nil {
		q = &queue{}
		s.queues[ledger] = q
		go s.processQueue(ledger, q)
	}
	q.waiting = append(q.waiting, r)
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
		if len(q.waiting) == 0 {
			delete(s.queues, ledger)
			s.mu.Unlock()
			return
		}
		n := min(len(q.waiting), maxBatch)
		together := q.waiting[:n:n]
		q.waiting = q.waiting[n:]
		s.mu.Unlock()
		s.process(together)
	}
}

// process processes some requests in one transaction.
func (s *Store) process(together []*request) {
	ctx, cancel := context.WithTimeout(context.Background(), txTimeout)
	defer cancel()
	for again := false; ; again = true {
		revision, ok, err := s.try(ctx, together, again)
		if !ok && err == nil {
			continue // another client changed what was read
		}
		if errors.Is(err, ErrTooLarge) && len(together) > 1 {
			for _, r := range together { // each one alone may fit
				s.process([]*request{r})
			}
			return
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
		return
	}
}

func (s *Store) try(ctx context.Context, together []*request, again bool) (revision int64, ok bool, err error) {
	t := newTx(ctx, s, again)
	for _, r := range together {
		if r.rejection = r.ctx.Err(); r.rejection != nil {
			continue // the caller has given up
		}
		before := t.save()
		if r.rejection = r.call(t); r.rejection == nil {
			continue
		}
		if errors.Is(r.rejection, ErrUnavailable) {
			return 0, false, r.rejection
		}
		t.restore(before)
	}
	return t.commit()
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
