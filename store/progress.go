package store

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// progressInterval is how often WatchComplete requests the progress of its watch, progressTimeout the timeout of
// that request. The values are chosen for Headgate.
const progressInterval, progressTimeout = 500 * time.Millisecond, 1500 * time.Millisecond

// WatchComplete watches all documents and also reports that the watch is complete: whole is called about
// twice a second with a time before which all writes were delivered. The calls stop when the store
// does not answer, or when the controller's etcd member is disconnected from the others.
func (s *Store) WatchComplete(ctx context.Context, after int64, changed func(revision int64, events []Event) error, whole func(revision int64, asOf time.Time)) error {
	// A progress request notifies all watches of a stream. The metadata gives this watch its own stream.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(metadata.AppendToOutgoingContext(ctx, "headgate-follower", rand.Text())))
	defer cancel()
	var mu sync.Mutex
	var began time.Time
	var written int64 // the store's revision at began
	go func() {
		for ctx.Err() == nil {
			// A quorum read returns the store's revision. The watch then confirms that it has reached this revision.
			now := time.Now()
			asking, asked := context.WithTimeout(ctx, progressTimeout)
			if p, err := s.Position(asking); err == nil {
				mu.Lock()
				began, written = now, p.Revision
				mu.Unlock()
				_ = s.client.RequestProgress(asking) // the next iteration retries
			}
			asked()
			select {
			case <-ctx.Done():
			case <-time.After(progressInterval):
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
	// Watch from the known revision on: etcd sends no progress to a watch that starts in the future.
	return s.Watch(ctx, Root, after-1, func(revision int64, events []Event) error {
		if revision > after {
			if err := changed(revision, events); err != nil {
				return err
			}
		}
		return told(revision)
	}, told)
}
