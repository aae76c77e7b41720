package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
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
}

// Store is intent, as all controllers share it.
type Store struct {
	client *clientv3.Client

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
	s := &Store{client: c, queues: map[string]*queue{}}
	for {
		if err = s.Ready(ctx); err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			c.Close()
			return nil, fmt.Errorf("the store at %v does not answer: %w", at.URLs, err)
		}
		time.Sleep(50 * time.Millisecond) // it may be starting
	}
}

// Close ends the connection.
func (s *Store) Close() error { return s.client.Close() }

// EpochKey has a number that goes up with every restore: revisions are told apart by it. There is
// none before the first.
var EpochKey = Key(Service, "epoch")

// ErrUnknown means that the store did not answer in time, or went away: whether a change was made
// is not known.
var ErrUnknown = errors.New("the store did not answer: it is not known whether the change was made")

// Ready tells whether the store answers now, which needs most of its members.
func (s *Store) Ready(ctx context.Context) error {
	_, err := s.client.Get(ctx, EpochKey)
	return err
}
