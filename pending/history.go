package pending

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxHistory is the number of changes that are kept, chosen by this project. A snapshot of 4,000 groups has about 1 MB.
const maxHistory = 20

// Done is a change that a command of this machine has made.
type Done struct {
	Number  int        `json:"number"` // from 1 on, in the order of the changes
	At      time.Time  `json:"at"`
	By      string     `json:"by"`      // the user
	Command string     `json:"command"` // apply, clear or undo
	Devices []Snapshot `json:"devices"` // before the change
}

// Names returns the names of the devices.
func (d Done) Names() (names []string) {
	for _, s := range d.Devices {
		names = append(names, s.Dev)
	}
	return names
}

func (s *Store) historyDir() string { return s.base + ".history" }

func (s *Store) historyFile(n int) string {
	return filepath.Join(s.historyDir(), fmt.Sprintf("%08d.json", n))
}

// numbers returns the numbers of the changes that are kept, the oldest first.
func (s *Store) numbers() (all []int, err error) {
	files, err := os.ReadDir(s.historyDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		if n, err := strconv.Atoi(strings.TrimSuffix(f.Name(), ".json")); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, err
}

// Record stores the state of devices before a change, and forgets the oldest changes. The caller holds the lock.
func (s *Store) Record(command, by string, before []Snapshot) error {
	all, err := s.numbers()
	if err != nil {
		return err
	}
	d := Done{Number: 1, At: time.Now(), By: by, Command: command, Devices: before}
	if len(all) > 0 {
		d.Number = all[len(all)-1] + 1
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := writeFile(s.historyFile(d.Number), text); err != nil {
		return err
	}
	for ; len(all) >= maxHistory; all = all[1:] {
		err = errors.Join(err, removeIfThere(s.historyFile(all[0])))
	}
	return err
}

// History returns the changes that are kept, the newest first.
func (s *Store) History() (list []Done, err error) {
	all, err := s.numbers()
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Backward(all) {
		d, err := s.Done(n)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// ErrNoChange means that the history does not have a change.
var ErrNoChange = errors.New("there is no such change in the history")

// Done returns a change by its number; 0 is the newest one.
func (s *Store) Done(n int) (d Done, err error) {
	if n == 0 {
		all, err := s.numbers()
		if err != nil {
			return d, err
		}
		if len(all) == 0 {
			return d, ErrNoChange
		}
		n = all[len(all)-1]
	}
	d, err = read[Done](s.historyFile(n))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("change %d: %w", n, ErrNoChange)
	}
	return d, err
}
