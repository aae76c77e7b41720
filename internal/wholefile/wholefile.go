// Package wholefile replaces files atomically: a reader, and the next process after a crash or
// power failure, finds the complete old file or the complete new one.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Write replaces or creates a file, with a mode that the umask does not restrict. When Write
// returns, the new file is on the disk. A process that is killed in Write may leave a file next to
// it whose name begins with a dot. Concurrent writers do not mix their contents.
func Write(name string, text []byte, mode os.FileMode) error {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, as expected
	_, err = f.Write(text)
	// The content must be on the disk before the name is.
	err = errors.Join(err, f.Chmod(mode), f.Sync())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir writes the entries of a directory to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); !errors.Is(err, unix.EINVAL) { // not supported by some file systems
		return err
	}
	return nil
}
