package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.uber.org/zap"
)

// Values chosen for Headgate.
const (
	// dialTimeout and aliveEvery make the client leave an unreachable etcd member within seconds.
	dialTimeout = 2 * time.Second
	aliveEvery  = 2 * time.Second
	// mostMessage is above the size of a document of 16,000 groups (3 MB), old and new.
	mostMessage = 32 << 20
)

// Endpoint is how to connect to an etcd.
type Endpoint struct {
	URLs []string
	TLS  *tls.Config // nil without TLS
	// Prefix is prepended to all keys: in a shared etcd each service has its own.
	Prefix string
	// External is true for an external etcd, whose operator is responsible for compaction and
	// defragmentation.
	External bool
}

// Store is the desired state that all controllers share.
type Store struct {
	client   *clientv3.Client
	external bool

	mu     sync.Mutex
	queues map[string]*queue
}

// Open connects, and waits until the store answers or ctx ends.
func Open(ctx context.Context, at Endpoint) (*Store, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: at.URLs, TLS: at.TLS,
		DialTimeout: dialTimeout, DialKeepAliveTime: aliveEvery, DialKeepAliveTimeout: aliveEvery,
		MaxCallSendMsgSize: mostMessage, MaxCallRecvMsgSize: 2 * mostMessage,
		Logger: zap.NewNop(), // failures are returned as errors
	})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the store at %v: %w", at.URLs, err)
	}
	if at.Prefix != "" {
		c.KV, c.Watcher, c.Lease = namespace.NewKV(c.KV, at.Prefix), namespace.NewWatcher(c.Watcher, at.Prefix), namespace.NewLease(c.Lease, at.Prefix)
	}
	s := &Store{client: c, external: at.External, queues: map[string]*queue{}}
	for {
		if err = s.Ready(ctx); err == nil {
			return s, nil
		}
		if ctx.Err() != nil || permanent(err) {
			c.Close()
			return nil, fmt.Errorf("cannot read from the store at %v: %w", at.URLs, err)
		}
		time.Sleep(50 * time.Millisecond) // the store may be starting
	}
}

// permanent reports whether a retry would return the same error.
func permanent(err error) bool {
	return errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrUserEmpty) || errors.Is(err, rpctypes.ErrAuthFailed)
}

// Close closes the connection.
func (s *Store) Close() error { return s.client.Close() }

// EpochKey is the key of the epoch, a number that every restore increases. Revisions are comparable
// only within an epoch. The key does not exist before the first restore.
var EpochKey = Key(Service, "epoch")

// ErrUnavailable means that the store did not answer in time or disconnected.
var ErrUnavailable = errors.New("the store did not answer")

// ErrUnknown is ErrUnavailable during a change, which may or may not have been made.
var ErrUnknown = fmt.Errorf("%w: unknown whether the change was made", ErrUnavailable)

// ErrTooLarge means that nothing was changed, because the change exceeds etcd's limits for one
// transaction.
var ErrTooLarge = errors.New("the change exceeds etcd's transaction limits: start its members with --max-txn-ops 1024 --max-request-bytes 33554432")

// ErrFull means that nothing was changed, because etcd's quota is exceeded.
var ErrFull = errors.New("etcd accepts no more data: its quota is exceeded")

// Ready returns nil if the store answers now, which needs a majority of its members.
func (s *Store) Ready(ctx context.Context) error {
	_, err := s.client.Get(ctx, EpochKey)
	return err
}
