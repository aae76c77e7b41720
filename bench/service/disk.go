package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Chosen by this project: creating 2,000 hosts writes some 100 MB, and a virtual disk with other users
// occasionally takes 100 to 300 ms for a write, instead of 0.5 ms.
const (
	promptly      = 20 * time.Millisecond
	promptInARow  = 60
	diskPatience  = 90 * time.Second
	betweenWrites = 50 * time.Millisecond
)

// calm waits until writes to the disk of a folder are fast again, and reports whether they are.
func calm(ctx context.Context, dir string) (prompt bool, err error) {
	unix.Sync()
	f, err := os.Create(filepath.Join(dir, "calm"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	until := time.Now().Add(diskPatience)
	for row := 0; row < promptInARow; {
		if ctx.Err() != nil || time.Now().After(until) {
			return false, ctx.Err()
		}
		began := time.Now()
		if _, err := f.WriteAt(page, 0); err != nil {
			return false, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return false, err
		}
		row++
		if time.Since(began) > promptly {
			row = 0
		}
		time.Sleep(betweenWrites)
	}
	return true, nil
}

// mount gives a controller its own disk of a size, in memory.
func (c *control) mount(size int) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("headgate-bench", c.dir, "tmpfs", 0, fmt.Sprint("size=", size)); err != nil {
		return fmt.Errorf("cannot mount a disk on %s: %w", c.dir, err)
	}
	c.mounted = true
	return nil
}

func (c *control) unmount() error {
	if !c.mounted {
		return nil
	}
	c.mounted = false
	return unix.Unmount(c.dir, unix.MNT_DETACH)
}

// fill uses all free space of a controller's disk, until free is called.
func (c *control) fill() (free func() error, err error) {
	f, err := os.Create(filepath.Join(c.dir, "full"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = io.Copy(f, zeros{})
	if !errors.Is(err, unix.ENOSPC) {
		return nil, errors.Join(errors.New("cannot fill the disk"), err)
	}
	return func() error { return os.Remove(f.Name()) }, nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
