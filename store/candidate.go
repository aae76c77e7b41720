package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// resignTimeout is how long a candidate that ends waits for the store to revoke its lease. Without an answer the lease expires
// after leaseTTL.
const resignTimeout = time.Second

// Candidate is a controller that takes part in the leader election.
type Candidate struct {
	// Name identifies the controller among all controllers.
	Name string
	// Leases remembers the candidate's lease for its next process. If it is nil, a controller that was killed as the leader
	// leads again only when the lease of its former process has expired.
	Leases Leases
}

// Leases remembers the lease of a candidate for the process that is started after it.
//
// The next process revokes that lease, and another controller, or itself, is the leader at once. There are never two leaders,
// because Former returns a lease only if nothing can act by it any more: the process that remembered it has ended, or is the
// caller, whose own term has ended. What that process had sent before, and what arrives later, is refused: by the store, because
// the key of its term is deleted (Term.Do), and by switches, because its generation is lower (Term.Generation).
type Leases interface {
	// Former returns the last lease that Remember got, and 0 if there is none or if its process may be running.
	Former() int64
	// Remember remembers a lease, before it is used.
	Remember(lease int64) error
}

// revokeFormer revokes the lease of the candidate's former process, or of its own former term. It leaves a lease that is not of
// a candidate of this name: it is another controller's, or that of an etcd with other contents.
func (s *Store) revokeFormer(ctx context.Context, c Candidate) error {
	if c.Leases == nil {
		return nil
	}
	former := clientv3.LeaseID(c.Leases.Former())
	if former == clientv3.NoLease {
		return nil
	}
	got, err := s.client.Get(ctx, candidateKey(former))
	if err != nil {
		return readError(err)
	}
	if len(got.Kvs) == 0 || got.Kvs[0].Lease != int64(former) || string(got.Kvs[0].Value) != c.Name {
		return nil
	}
	if _, err := s.client.Revoke(ctx, former); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return readError(err)
	}
	slog.Info("revoked the lease of this controller's former process", "name", c.Name)
	return nil
}

// candidateKey is the key of the candidate with a lease, as concurrency.Election names it.
func candidateKey(lease clientv3.LeaseID) string {
	return fmt.Sprintf("%s/%x", Key(Service, "leader"), lease)
}

// newSession returns a session whose lease the candidate remembers. Its requests end with ctx, unlike those of a session of the
// store's client, with which a candidate that ends would wait for a store that hangs.
func (s *Store) newSession(ctx context.Context, c Candidate) (*concurrency.Session, error) {
	client := clientv3.NewCtxClient(ctx)
	client.KV, client.Lease, client.Watcher = s.client.KV, s.client.Lease, s.client.Watcher
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(leaseTTL.Seconds())))
	if err != nil || c.Leases == nil {
		return session, err
	}
	if err := c.Leases.Remember(int64(session.Lease())); err != nil {
		slog.Warn("cannot remember the lease: after a crash this controller leads only when it has expired", "error", err)
	}
	return session, nil
}

// resign revokes the session's lease, after the last action of the term, so that the next candidate leads at once. ctx has often
// ended then, because the controller stops: Session.Close would leave the lease to expire.
func (s *Store) resign(ctx context.Context, session *concurrency.Session) {
	session.Orphan()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTimeout)
	defer cancel()
	_, _ = s.client.Revoke(ctx, session.Lease()) // it expires otherwise
}
