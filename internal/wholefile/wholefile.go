// Package wholefile replaces files so that whoever reads one, and whoever comes after a crash or a
// power cut, finds the old one or the new one, whole.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Write replaces a file, or makes it, with a mode that no umask lessens. When it returns, the new
// one is on the disk. A process that is killed within it may leave a file with a name that begins
// with a dot beside it, and two that write at a time do not mix.
func Write(name string, text []byte, mode os.FileMode) error {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, as it should
	_, err = f.Write(text)
	// Its name must not be on the disk before its text is.
	err = errors.Join(err, f.Chmod(mode), f.Sync())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncFolder(dir)
}

// syncFolder has the disk know what is in a folder by which name.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); !errors.Is(err, unix.EINVAL) { // some file systems have no such thing
		return err
	}
	return nil
}
