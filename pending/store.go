package pending

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/flock"
	"headgate.dev/headgate/internal/netns"
	"headgate.dev/headgate/internal/wholefile"
	"headgate.dev/headgate/shaper"
)

// Change is a change that is pending until it is confirmed.
type Change struct {
	ID      string        `json:"id"`
	Boot    string        `json:"boot"` // the kernel's boot ID: after a reboot nothing of the change is in force
	Began   time.Time     `json:"began"`
	Within  time.Duration `json:"within_ns"`
	Devices []Snapshot    `json:"devices"`
}

// Deadline is the time at which the change is rolled back.
func (c Change) Deadline() time.Time { return c.Began.Add(c.Within) }

// Names formats the devices for messages: "eth0, eth1".
func (c Change) Names() string {
	names := make([]string, len(c.Devices))
	for i, d := range c.Devices {
		names[i] = d.Dev
	}
	return strings.Join(names, ", ")
}

// Snapshot is the state of a device before the change. A nil Plan means that Headgate did not shape
// the device.
type Snapshot struct {
	Dev      string              `json:"dev"`
	Engine   group.Engine        `json:"engine,omitempty"`
	Plan     *shaper.Plan        `json:"plan,omitempty"`
	Assigned []shaper.Assignment `json:"assigned,omitempty"`
}

// Stage is the progress of a pending change.
type Stage int

// The stages.
const (
	None        Stage = iota // no change is pending
	Waiting                  // a process waits to roll the change back
	Abandoned                // no process waits: it was killed, or the machine was rebooted
	RollingBack              // a process is rolling the change back
	Unfinished               // the rollback failed or was interrupted
)

// Store accesses the files of one network namespace.
type Store struct {
	base string // directory and namespace
	boot string
}

// DefaultDir is the default directory of the files. HEADGATE_STATE overrides it.
const DefaultDir = "/var/lib/headgate"

// Open returns the store of the calling thread's network namespace. The directory is
// created at the first write.
func Open(dir string) (*Store, error) {
	// The file names have the namespace, because equal names of devices in different namespaces are
	// different devices.
	ns, err := netns.ID()
	if err != nil {
		return nil, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("cannot read the boot ID: %w", err)
	}
	return &Store{base: filepath.Join(dir, "net-"+ns), boot: strings.TrimSpace(string(boot))}, nil
}

func (s *Store) waitingFile() string { return s.base + ".waiting" }
func (s *Store) rollingBack() string { return s.base + ".rolling-back" }

// New returns a change with a new ID, whose time runs from now.
func (s *Store) New(within time.Duration, devices []Snapshot) Change {
	return Change{ID: rand.Text(), Boot: s.boot, Began: time.Now(), Within: within, Devices: devices}
}

// Write stores the change as pending.
func (s *Store) Write(c Change) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(s.waitingFile(), text); err != nil {
		return fmt.Errorf("cannot save the current state for the rollback: %w", err)
	}
	return nil
}

// Read returns the pending change and its stage.
func (s *Store) Read() (Change, Stage, error) {
	c, err := read[Change](s.rollingBack())
	if err == nil {
		if s.hasWaiter() {
			return c, RollingBack, nil
		}
		return c, Unfinished, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		c, err = read[Change](s.waitingFile())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Change{}, None, nil
	case err != nil:
		return Change{}, None, fmt.Errorf("cannot read the pending change: %w", err)
	case c.Boot == s.boot && s.hasWaiter():
		return c, Waiting, nil
	}
	return c, Abandoned, nil
}

// Devices returns the devices whose change awaits confirmation, or is being rolled back.
func (s *Store) Devices() (devs []string) {
	c, stage, err := s.Read()
	if err != nil || stage != Waiting && stage != RollingBack {
		return nil
	}
	for _, d := range c.Devices {
		devs = append(devs, d.Dev)
	}
	return devs
}

// Rebooted reports whether the machine was rebooted since the change, so that nothing of the
// change is in force.
func (s *Store) Rebooted(c Change) bool { return c.Boot != s.boot }

func read[T any](path string) (v T, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return v, fmt.Errorf("%s is corrupt (remove the file to continue): %w", path, err)
	}
	return v, nil
}

// Confirm ends the wait and keeps the change. It returns false if the rollback has begun
// or no change is pending.
func (s *Store) Confirm() (bool, error) {
	err := os.Remove(s.waitingFile())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// claim moves the change to the stage RollingBack. Only one caller succeeds.
func (s *Store) claim(id string) (bool, error) {
	if c, err := read[Change](s.waitingFile()); err != nil || c.ID != id {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return false, nil // confirmed, or replaced by another change
		}
		return false, err
	}
	err := os.Rename(s.waitingFile(), s.rollingBack())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// RollBack rolls the change back now, one device after the other, and removes its file if
// all succeeded. It also continues an interrupted rollback.
func (s *Store) RollBack(c Change, undo func(Snapshot) error) error {
	if _, err := os.Stat(s.rollingBack()); err != nil {
		ok, err := s.claim(c.ID)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("cannot roll back: the change was confirmed in the meantime")
		}
	}
	var failed []error
	for _, d := range c.Devices {
		if err := undo(d); err != nil {
			failed = append(failed, fmt.Errorf("cannot roll back %s: %w", d.Dev, err))
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return os.Remove(s.rollingBack())
}

// Forget removes the pending change, in any stage.
func (s *Store) Forget() error {
	return errors.Join(removeIfThere(s.waitingFile()), removeIfThere(s.rollingBack()))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Drop removes a device from the pending change, so that it will not be rolled back. The
// caller holds the lock.
func (s *Store) Drop(dev string) error {
	c, stage, err := s.Read()
	if err != nil || stage == None {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(c.Devices), func(d Snapshot) bool { return d.Dev == dev })
	switch {
	case len(kept) == len(c.Devices):
		return nil
	case len(kept) == 0:
		return s.Forget()
	case stage == RollingBack || stage == Unfinished:
		return nil // a rollback that has begun is not changed
	}
	c.Devices = kept
	return s.Write(c)
}

// Lock waits for the lock that processes hold while they change shaping in this network namespace.
func (s *Store) Lock() (unlock func(), err error) {
	return lock(s.base+".lock", func(f *os.File) error {
		for {
			if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
				return err
			}
		}
	})
}

// markWaiter marks the calling process as the waiting process.
func (s *Store) markWaiter() (release func(), err error) { return lock(s.base+".waiter", flock.Lock) }

// hasWaiter reports whether a process waits.
func (s *Store) hasWaiter() bool {
	f, err := os.Open(s.base + ".waiter")
	if err != nil {
		return false
	}
	defer f.Close()
	return flock.IsLocked(f)
}

// lock creates a file, and locks it until release is called, which removes it. A process that waited for the lock of a
// file that was removed meanwhile has the lock of no file of this name, and tries again.
func lock(path string, take func(*os.File) error) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := take(f); err != nil {
			f.Close()
			return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
		}
		if isAt(f, path) {
			return func() {
				if isAt(f, path) {
					os.Remove(path)
				}
				f.Close()
			}, nil
		}
		f.Close()
	}
}

// isAt reports whether an open file is still the one at a path.
func isAt(f *os.File, path string) bool {
	open, err := f.Stat()
	now, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(open, now)
}

// writeFile replaces a file atomically: after a crash it has the old or the new content.
func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return wholefile.Write(path, text, 0o600)
}
