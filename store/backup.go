package store

import (
	"context"
	"fmt"
	"io"
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
// called. Agents obey nothing of an earlier epoch from then on.
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
		if err := tx.Put(EpochKey, epoch+1); err != nil {
			return err
		}
		return tx.Put(done, id)
	})
	return err
}
