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

// Ours.
const (
	// dialTimeout and aliveEvery: a member that is cut off is left for another within seconds.
	dialTimeout = 2 * time.Second
	aliveEvery  = 2 * time.Second
	// mostMessage is a document of 16,000 groups (3 MB) in old and new, and room.
	mostMessage = 32 << 20
)

// Endpoint is how an etcd is spoken to.
type Endpoint struct {
	URLs []string
	TLS  *tls.Config // nil for one without
	// Prefix is before all keys: in an etcd that others use each service has one.
	Prefix string
	// Foreign is one that the service does not run. What it forgets, and when, is its owner's to say.
	Foreign bool
}

// Store is intent, as all controllers share it.
type Store struct {
	client  *clientv3.Client
	foreign bool

	mu     sync.Mutex
	queues map[string]*queue
}

// Open connects, and waits until the store answers or ctx ends.
func Open(ctx context.Context, at Endpoint) (*Store, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: at.URLs, TLS: at.TLS,
		DialTimeout: dialTimeout, DialKeepAliveTime: aliveEvery, DialKeepAliveTimeout: aliveEvery,
		MaxCallSendMsgSize: mostMessage, MaxCallRecvMsgSize: 2 * mostMessage,
		Logger: zap.NewNop(), // what matters comes back as an error
	})
	if err != nil {
		return nil, fmt.Errorf("the store at %v cannot be spoken to: %w", at.URLs, err)
	}
	if at.Prefix != "" {
		c.KV, c.Watcher, c.Lease = namespace.NewKV(c.KV, at.Prefix), namespace.NewWatcher(c.Watcher, at.Prefix), namespace.NewLease(c.Lease, at.Prefix)
	}
	s := &Store{client: c, foreign: at.Foreign, queues: map[string]*queue{}}
	for {
		if err = s.Ready(ctx); err == nil {
			return s, nil
		}
		if ctx.Err() != nil || never(err) {
			c.Close()
			return nil, fmt.Errorf("the store at %v does not answer: %w", at.URLs, err)
		}
		time.Sleep(50 * time.Millisecond) // it may be starting
	}
}

// never tells whether an answer stays the same however often one asks.
func never(err error) bool {
	return errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrUserEmpty) || errors.Is(err, rpctypes.ErrAuthFailed)
}

// Close ends the connection.
func (s *Store) Close() error { return s.client.Close() }

// EpochKey has a number that goes up with every restore: revisions are told apart by it. There is
// none before the first.
var EpochKey = Key(Service, "epoch")

// ErrUnknown means that the store did not answer in time, or went away: whether a change was made
// is not known.
var ErrUnknown = errors.New("the store did not answer: it is not known whether the change was made")

// ErrTooLarge means that nothing was changed, because it is more than the etcd takes in one
// transaction.
var ErrTooLarge = errors.New("the change is more than the etcd takes at once: start its members with --max-txn-ops 1024 --max-request-bytes 33554432")

// ErrFull means that nothing was changed, because the etcd has no room.
var ErrFull = errors.New("the etcd takes nothing more: its quota is used up")

// Ready tells whether the store answers now, which needs most of its members.
func (s *Store) Ready(ctx context.Context) error {
	_, err := s.client.Get(ctx, EpochKey)
	return err
}
