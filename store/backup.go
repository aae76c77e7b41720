package store

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Backup writes all that the store has, as etcd's own snapshots do. It has the secrets of the
// service in it: its authority's key.
func (s *Store) Backup(ctx context.Context, to io.Writer) error {
	from, err := s.client.Snapshot(ctx)
	if err != nil {
		return readError(err)
	}
	defer from.Close()
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("the store cannot be written to a backup: %w", err)
	}
	return nil
}

// Restored begins a new epoch after a restore, of which id is a name: once, however often it is
// called. Agents obey nothing of an earlier epoch from then on. An epoch is at least the time in
// seconds: one that was begun after the backup is not in it, and must not be begun again.
func (s *Store) Restored(ctx context.Context, id string) error {
	done := Key(Service, "restored")
	_, err := s.Do(ctx, EpochKey, func(tx *Tx) error {
		var last string
		if _, _, err := tx.Get(done, &last); err != nil {
			return err
		}
		var epoch uint64
		if _, _, err := tx.Get(EpochKey, &epoch); err != nil || last == id {
			return err
		}
		if err := tx.Put(EpochKey, max(epoch+1, uint64(time.Now().Unix()))); err != nil {
			return err
		}
		return tx.Put(done, id)
	})
	return err
}

// Position is how far a store has come. It goes forward only, but for a restore.
type Position struct {
	Epoch    uint64 `json:"epoch"`
	Revision int64  `json:"revision"`
}

// Before tells whether a position is before another.
func (p Position) Before(q Position) bool {
	return p.Epoch < q.Epoch || p.Epoch == q.Epoch && p.Revision < q.Revision
}

// Position is how far it has come now, as most of its members say.
func (s *Store) Position(ctx context.Context) (p Position, err error) {
	got, err := s.client.Get(ctx, EpochKey)
	if err != nil {
		return p, readError(err)
	}
	if p.Revision = got.Header.Revision; len(got.Kvs) > 0 {
		err = decode(EpochKey, got.Kvs[0].Value, &p.Epoch)
	}
	return p, err
}
