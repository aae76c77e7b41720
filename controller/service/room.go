package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A starting controller writes neededRoom to its disk as a trial, and repeats that every roomPause while the disk is full. Without that its store waits for itself, for
// minutes and without a word.
const (
	neededRoom = 8 << 20
	roomPause  = time.Second
)

// waitForRoom waits until files can be written in a directory. A full disk is logged, and waited for; the error is for anything else.
func waitForRoom(ctx context.Context, dir string) error {
	for said := false; ; said = true {
		err := tryWrite(dir, neededRoom)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EROFS):
			return fmt.Errorf("data directory %s: %w: mount it writable", dir, err)
		case !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT):
			return fmt.Errorf("cannot write in the data directory %s: %w", dir, err)
		case !said:
			slog.Error("disk of the data directory is full, the controller starts when it is not: free some space", "path", dir, "needed_bytes", neededRoom, "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(roomPause):
		}
	}
}

// tryWrite writes a file of a size, and removes it.
func tryWrite(dir string, size int) error {
	f, err := os.CreateTemp(dir, ".room-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, size))
	return errors.Join(err, f.Sync(), f.Close())
}
