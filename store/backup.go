package store

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Backup writes an etcd snapshot of the whole store. The snapshot contains the service's secrets, such
// as the key of its certificate authority.
func (s *Store) Backup(ctx context.Context, to io.Writer) error {
	from, err := s.client.Snapshot(ctx)
	if err != nil {
		return readError(err)
	}
	defer from.Close()
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("cannot write the backup: %w", err)
	}
	return nil
}

// Restored begins a new epoch after the restore that id identifies, once, however often it is called.
// Agents then reject everything of an earlier epoch. An epoch is at least the current time in seconds:
// an epoch that began after the backup is not in the backup, and must not be reused. Tokens and hosts of
// the backup are refused until an operator confirms them (Restore), unless it is confirmed already.
func (s *Store) Restored(ctx context.Context, id string, confirmed bool) error {
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
		if confirmed {
			return tx.Put(done, id)
		}
		if err := tx.Put(RestoreKey, Restore{At: time.Now().UTC().Truncate(time.Second)}); err != nil {
			return err
		}
		return tx.Put(done, id)
	})
	return err
}

// Position is a point in the store's history. It only moves forward, except at a restore.
type Position struct {
	Epoch    uint64 `json:"epoch"`
	Revision int64  `json:"revision"`
}

// Before reports whether p is earlier than q.
func (p Position) Before(q Position) bool {
	return p.Epoch < q.Epoch || p.Epoch == q.Epoch && p.Revision < q.Revision
}

// Position returns the store's current position, by a linearizable read.
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
