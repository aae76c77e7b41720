package store

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// askEvery is how often one who follows asks whether that is all, askPatience how long for. Ours.
const askEvery, askPatience = 500 * time.Millisecond, 1500 * time.Millisecond

// Follow is Watch of everything for one who has to know that nothing was kept from him: whole is
// called about twice a second with a time before which all that was written was told. It is called no
// more when the store does not answer, or this controller's member of it is cut off from the others.
func (s *Store) Follow(ctx context.Context, after int64, changed func(revision int64, events []Event) error, whole func(revision int64, asOf time.Time)) error {
	// Whoever watches on the same stream would be told, too, each time that one asks: this has its own.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(metadata.AppendToOutgoingContext(ctx, "headgate-follower", rand.Text())))
	defer cancel()
	var mu sync.Mutex
	var began time.Time
	var written int64 // by then
	go func() {
		for ctx.Err() == nil {
			// Most of the members say how far the store has come, and the watch that it was told so far.
			now := time.Now()
			asking, asked := context.WithTimeout(ctx, askPatience)
			if p, err := s.Position(asking); err == nil {
				mu.Lock()
				began, written = now, p.Revision
				mu.Unlock()
				_ = s.client.RequestProgress(asking) // it is asked again
			}
			asked()
			select {
			case <-ctx.Done():
			case <-time.After(askEvery):
			}
		}
	}()
	told := func(revision int64) error {
		mu.Lock()
		defer mu.Unlock()
		if !began.IsZero() && revision >= written {
			whole(revision, began)
		}
		return nil
	}
	// From the revision on that is known already: etcd says nothing to who waits for one to come.
	return s.Watch(ctx, Root, after-1, func(revision int64, events []Event) error {
		if revision > after {
			if err := changed(revision, events); err != nil {
				return err
			}
		}
		return told(revision)
	}, told)
}
