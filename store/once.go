package store

import (
	"context"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// onceFor is how long what was read is good for. Ours: few requests take longer.
const onceFor = time.Second

type onceKey struct{}

// asked is how far the store had come, by most of its members, when one asked last.
type asked struct {
	at       time.Time
	revision int64
}

// Once is for what reads several times: its first read asks most of the members how far the store has
// come, and the others are of the member that is spoken to, if it has come as far. What they read was
// so after Once was called, as if they had asked the others, too.
func Once(ctx context.Context) context.Context {
	return context.WithValue(ctx, onceKey{}, new(atomic.Pointer[asked]))
}

// read reads what is newest.
func (s *Store) read(ctx context.Context, key string, how ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	once, _ := ctx.Value(onceKey{}).(*atomic.Pointer[asked])
	if once == nil {
		return s.client.Get(ctx, key, how...)
	}
	began := time.Now()
	if before := once.Load(); before != nil && began.Sub(before.at) < onceFor {
		got, err := s.client.Get(ctx, key, append(how[:len(how):len(how)], clientv3.WithSerializable())...)
		if err == nil && got.Header.Revision >= before.revision {
			return got, nil
		}
	}
	got, err := s.client.Get(ctx, key, how...)
	if err == nil {
		once.Store(&asked{began, got.Header.Revision})
	}
	return got, err
}
