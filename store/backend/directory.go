package backend

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/flock"
)

// directoryFile is locked by the process that runs with a data directory.
const directoryFile = "lock"

// ErrInUse means that another controller is running with a data directory.
var ErrInUse = errors.New("another controller is running with this data directory: stop it first")

// Directory is a controller's data directory, locked by this process until Close or its end. It implements store.Leases.
//
// A lock ends with the process that has it (flock(2)), and no child inherits it. So whoever has the lock knows that the processes
// which had it before have ended, also one that was suspended or whose etcd was killed alone: nothing acts by their leases. This is
// known only of processes of this kernel and for this very file. A directory that was copied, perhaps while its controller is
// running, or that another machine has mounted, remembers nothing: its file has another inode, or another boot of a kernel.
type Directory struct {
	file *os.File
	self identity
	// last is the lease that this process, or the one before it, has remembered.
	last int64
}

// identity is where a lock shows that the process which had it has ended.
type identity struct {
	// Boot is the kernel's boot id (random(4)).
	Boot string `json:"boot"`
	// Device and Inode are those of the file (stat(2)).
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// directoryContent is the content of the file.
type directoryContent struct {
	identity
	Lease int64 `json:"lease"`
}

// LockDirectory locks a data directory, which must exist. The error is ErrInUse if another process has the lock.
func LockDirectory(dir string) (*Directory, error) {
	name := filepath.Join(dir, directoryFile)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	err = flock.Lock(f)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%s: %w", dir, ErrInUse)
	} else if err != nil {
		err = &os.PathError{Op: "lock", Path: name, Err: err}
	}
	d := &Directory{file: f}
	if err == nil {
		d.self, err = identify(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	// A file that is damaged, or was not complete when its process was killed, remembers nothing: the lease then expires.
	var before directoryContent
	if text, err := io.ReadAll(f); err == nil && json.Unmarshal(text, &before) == nil && before.identity == d.self {
		d.last = before.Lease
	}
	return d, nil
}

func identify(f *os.File) (identity, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return identity{}, err
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return identity{}, err
	}
	return identity{Boot: strings.TrimSpace(string(boot)), Device: s.Dev, Inode: s.Ino}, nil
}

// Former implements store.Leases.
func (d *Directory) Former() int64 { return d.last }

// Remember implements store.Leases. The file need not reach the disk: after a crash of the kernel its content is not used.
func (d *Directory) Remember(lease int64) error {
	d.last = lease
	text, err := json.Marshal(directoryContent{d.self, lease})
	if err != nil {
		return err
	}
	if err := d.file.Truncate(0); err != nil {
		return err
	}
	_, err = d.file.WriteAt(text, 0)
	return err
}

// Close unlocks the directory. The caller's term as the leader must have ended before.
func (d *Directory) Close() error { return d.file.Close() }
