package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Ours.
const (
	// mostTogether are decided in one transaction: each writes its document, what became of it
	// and its answer, and an etcd that is not ours takes 128 operations.
	mostTogether = 40
	// patience is how long a transaction is tried for: after that nothing is known of it.
	patience = 5 * time.Second
)

// queue is the requests of one ledger that wait.
type queue struct {
	waiting []*request
}

type request struct {
	ctx      context.Context
	do       func(*Tx) error
	refusal  error
	revision int64
	done     chan error
}

// Do decides a change: do reads and writes documents, or gives an error, which is a refusal. It
// may be called several times, for one answer. Requests of one ledger wait for each other and are
// decided together, in the order in which they came; others go on beside them. The revision is
// that of the store with the change. Errors are do's own, of ctx, and ErrUnknown.
func (s *Store) Do(ctx context.Context, ledger string, do func(*Tx) error) (revision int64, err error) {
	r := &request{ctx: ctx, do: do, done: make(chan error, 1)}
	s.mu.Lock()
	q := s.queues[ledger]
	if q == nil {
		q = &queue{}
		s.queues[ledger] = q
		go s.work(ledger, q)
	}
	q.waiting = append(q.waiting, r)
	s.mu.Unlock()
	select {
	case err := <-r.done:
		return r.revision, err
	case <-ctx.Done():
		// It may be decided at this moment.
		return 0, errors.Join(ErrUnknown, ctx.Err())
	}
}

// work decides what waits until nothing does.
func (s *Store) work(ledger string, q *queue) {
	for {
		s.mu.Lock()
		if len(q.waiting) == 0 {
			delete(s.queues, ledger)
			s.mu.Unlock()
			return
		}
		n := min(len(q.waiting), mostTogether)
		together := q.waiting[:n:n]
		q.waiting = q.waiting[n:]
		s.mu.Unlock()
		s.decide(together)
	}
}

// decide makes one transaction of some requests.
func (s *Store) decide(together []*request) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for again := false; ; again = true {
		revision, ok, err := s.try(ctx, together, again)
		if !ok && err == nil {
			continue // somebody else was faster
		}
		if errors.Is(err, ErrTooLarge) && len(together) > 1 {
			for _, r := range together { // each by itself may not be
				s.decide([]*request{r})
			}
			return
		}
		for _, r := range together {
			switch {
			case err != nil:
				r.done <- err
			default:
				r.revision = revision
				r.done <- r.refusal
			}
		}
		return
	}
}

func (s *Store) try(ctx context.Context, together []*request, again bool) (revision int64, ok bool, err error) {
	t := newTx(ctx, s, again)
	for _, r := range together {
		if r.refusal = r.ctx.Err(); r.refusal != nil {
			continue // nobody waits for it
		}
		before := t.save()
		if r.refusal = r.call(t); r.refusal == nil {
			continue
		}
		if errors.Is(r.refusal, ErrUnknown) {
			return 0, false, r.refusal
		}
		t.restore(before)
	}
	return t.commit()
}

// call keeps one request's mistake from being that of all.
func (r *request) call(t *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the change cannot be decided: %v", p)
		}
	}()
	return r.do(t)
}
