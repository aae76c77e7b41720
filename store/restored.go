package store

import "time"

// RestoreKey is the key of a Restore that is not confirmed. Documents with an earlier revision are those of the backup.
var RestoreKey = Key(Service, "restore")

// Restore says that the store was restored from a backup, and that no operator has confirmed since whose tokens and hosts of the backup are still permitted:
// some may have been revoked after the backup.
type Restore struct {
	At time.Time `json:"at"`
}

// Unconfirmed returns the restore that is not confirmed, and its revision; 0 if there is none.
func (t *Tx) Unconfirmed() (r Restore, revision int64, err error) {
	revision, there, err := t.Get(RestoreKey, &r)
	if !there {
		revision = 0
	}
	return r, revision, err
}
