package store

import (
	"context"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// onceTTL is how long a revision of a ReadOnceContext is used. Few requests take longer. The value is
// chosen for Headgate.
const onceTTL = time.Second

// readTimeout is the timeout of a read. etcd's own, without a majority of its members, is 7 s: a client would have given up,
// and not know why.
const readTimeout = 4 * time.Second

type onceKey struct{}

// quorumRead is the store's revision as of the last quorum read.
type quorumRead struct {
	at       time.Time
	revision int64
}

// ReadOnceContext returns a context for requests that read several times. The first read is linearizable, which
// needs a majority of the etcd members. Later reads are serializable reads of the connected member,
// if that member has reached the revision of the first one. They return nothing older than the time
// at which ReadOnceContext was called.
func ReadOnceContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, onceKey{}, new(atomic.Pointer[quorumRead]))
}

// read is a linearizable read, or a cheaper equivalent under a ReadOnceContext.
func (s *Store) read(ctx context.Context, key string, how ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	once, _ := ctx.Value(onceKey{}).(*atomic.Pointer[quorumRead])
	if once == nil {
		return s.client.Get(ctx, key, how...)
	}
	began := time.Now()
	if before := once.Load(); before != nil && began.Sub(before.at) < onceTTL {
		got, err := s.client.Get(ctx, key, append(how[:len(how):len(how)], clientv3.WithSerializable())...)
		if err == nil && got.Header.Revision >= before.revision {
			return got, nil
		}
	}
	got, err := s.client.Get(ctx, key, how...)
	if err == nil {
		once.Store(&quorumRead{began, got.Header.Revision})
	}
	return got, err
}
