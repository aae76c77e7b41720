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

	"headgate/group"
	"headgate/internal/flock"
	"headgate/internal/netns"
	"headgate/internal/wholefile"
	"headgate/shaper"
)

// Change is what waits for confirmation.
type Change struct {
	ID      string        `json:"id"`
	Boot    string        `json:"boot"` // the kernel's boot id: after another boot nothing of the change is left
	Began   time.Time     `json:"began"`
	Within  time.Duration `json:"within_ns"`
	Devices []Snapshot    `json:"devices"`
}

// Deadline is when the change is undone.
func (c Change) Deadline() time.Time { return c.Began.Add(c.Within) }

// Names are the devices, for messages: "eth0, eth1".
func (c Change) Names() string {
	names := make([]string, len(c.Devices))
	for i, d := range c.Devices {
		names[i] = d.Dev
	}
	return strings.Join(names, ", ")
}

// Snapshot is what was in force on a device. A nil Plan is nothing of ours.
type Snapshot struct {
	Dev      string              `json:"dev"`
	Engine   group.Engine        `json:"engine,omitempty"`
	Plan     *shaper.Plan        `json:"plan,omitempty"`
	Assigned []shaper.Assignment `json:"assigned,omitempty"`
}

// Stage is how far a change has come.
type Stage int

// The stages.
const (
	None        Stage = iota // nothing is pending
	Waiting                  // and someone waits to undo it
	Abandoned                // time runs, or ran out, and nobody waits: killed, or the machine was restarted
	RollingBack              // being undone now
	Unfinished               // undoing it failed or was cut short
)

// Store is the directory of the files, for one network namespace.
type Store struct {
	base string // directory and namespace
	boot string
}

// DefaultDir is where the files are unless HEADGATE_STATE says otherwise.
const DefaultDir = "/var/lib/headgate"

// Open prepares the store for the network namespace of the calling thread. The
// directory is made when something is first written.
func Open(dir string) (*Store, error) {
	// Devices of the same name in different namespaces are different devices.
	ns, err := netns.ID()
	if err != nil {
		return nil, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("the boot id cannot be read: %w", err)
	}
	return &Store{base: filepath.Join(dir, "net-"+ns), boot: strings.TrimSpace(string(boot))}, nil
}

func (s *Store) waiting() string     { return s.base + ".waiting" }
func (s *Store) rollingBack() string { return s.base + ".rolling-back" }

// New gives a change its identity. Its time runs from now.
func (s *Store) New(within time.Duration, devices []Snapshot) Change {
	return Change{ID: rand.Text(), Boot: s.boot, Began: time.Now(), Within: within, Devices: devices}
}

// Write makes the change pending.
func (s *Store) Write(c Change) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(s.waiting(), text); err != nil {
		return fmt.Errorf("what is in force now cannot be saved for the rollback: %w", err)
	}
	return nil
}

// Read tells of the change that is pending, and its stage.
func (s *Store) Read() (Change, Stage, error) {
	c, err := read(s.rollingBack())
	if err == nil {
		if s.held() {
			return c, RollingBack, nil
		}
		return c, Unfinished, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		c, err = read(s.waiting())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Change{}, None, nil
	case err != nil:
		return Change{}, None, fmt.Errorf("the change that waits for confirmation cannot be read: %w", err)
	case c.Boot == s.boot && s.held():
		return c, Waiting, nil
	}
	return c, Abandoned, nil
}

// Gone tells whether the machine was started again since the change, so that
// nothing of it is in force.
func (s *Store) Gone(c Change) bool { return c.Boot != s.boot }

func read(path string) (c Change, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s is damaged (remove it to go on): %w", path, err)
	}
	return c, nil
}

// Confirm ends the wait: the change stays. It is false if the rollback has begun
// or nothing waits.
func (s *Store) Confirm() (bool, error) {
	err := os.Remove(s.waiting())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// claim takes the change for rolling it back; only one caller succeeds.
func (s *Store) claim(id string) (bool, error) {
	if c, err := read(s.waiting()); err != nil || c.ID != id {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return false, nil // confirmed, or another change by now
		}
		return false, err
	}
	err := os.Rename(s.waiting(), s.rollingBack())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// RollBack undoes the change now, one device after the other, and forgets it if
// all could be undone. It goes on with one that was cut short.
func (s *Store) RollBack(c Change, undo func(Snapshot) error) error {
	if _, err := os.Stat(s.rollingBack()); err != nil {
		ok, err := s.claim(c.ID)
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("the change was confirmed in the meantime, and stays")
		}
	}
	var failed []error
	for _, d := range c.Devices {
		if err := undo(d); err != nil {
			failed = append(failed, fmt.Errorf("%s was not rolled back: %w", d.Dev, err))
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return os.Remove(s.rollingBack())
}

// Forget drops what is pending, in whatever stage.
func (s *Store) Forget() error {
	return errors.Join(removeIfThere(s.waiting()), removeIfThere(s.rollingBack()))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Drop takes a device out of what is pending, so that it will not be rolled back.
// The caller holds the lock.
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
		return nil // the rollback is told of, and finished, as it is
	}
	c.Devices = kept
	return s.Write(c)
}

// Lock waits until no other process changes shaping in this namespace.
func (s *Store) Lock() (unlock func(), err error) {
	return lock(s.base+".lock", func(f *os.File) error {
		for {
			if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
				return err
			}
		}
	})
}

// hold marks the calling process as the one that waits.
func (s *Store) hold() (release func(), err error) { return lock(s.base+".waiter", flock.Hold) }

// held tells whether a process waits.
func (s *Store) held() bool {
	f, err := os.Open(s.base + ".waiter")
	if err != nil {
		return false
	}
	defer f.Close()
	return flock.Held(f)
}

// lock opens a file, and takes a lock on it until it is released.
func lock(path string, take func(*os.File) error) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := take(f); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { f.Close() }, nil
}

// writeFile replaces a file so that after a crash it is the old or the new one.
func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return wholefile.Write(path, text, 0o600)
}
