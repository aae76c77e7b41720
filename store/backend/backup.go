package backend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"headgate.dev/headgate/store"
)

// Backup writes a store's backup to a new file, atomically, and returns its size in bytes.
func Backup(ctx context.Context, s *store.Store, file string) (size int64, err error) {
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return 0, errors.Join(fmt.Errorf("file %s exists: choose a new file", file), err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.part")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	err = s.Backup(ctx, f)
	if err == nil {
		size, err = f.Seek(0, 1)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return size, os.Link(f.Name(), file)
}
