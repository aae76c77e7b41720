package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotRunning: there is no such program.
var ErrNotRunning = errors.New("no such program runs")

// Running are the names of the programs that have a socket. One that was killed has left its
// own.
func Running() (names []string) {
	entries, _ := os.ReadDir(socketDir)
	for _, e := range entries {
		if name, is := strings.CutSuffix(e.Name(), filepath.Ext(socketPath(""))); is {
			names = append(names, name)
		}
	}
	return names
}

// Ask asks a program what its sets are doing.
func Ask(instance string) ([]State, error) {
	a, err := call(instance, request{}, nil)
	return a.States, err
}

// Join asks a program to have the connection of a descriptor in a set, with a weight by hand
// or 0. The descriptor stays the caller's.
func Join(instance, set string, weight float64, fd int) error {
	_, err := call(instance, request{Join: set, Weight: weight}, unix.UnixRights(fd))
	return err
}

func call(instance string, r request, beside []byte) (a answer, err error) {
	c, err := net.DialTimeout("unix", socketPath(instance), patience)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return a, ErrNotRunning
	}
	if err != nil {
		return a, err
	}
	defer c.Close()
	// It may take as long to find time for it.
	c.SetDeadline(time.Now().Add(2 * patience))
	text, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	if _, _, err := c.(*net.UnixConn).WriteMsgUnix(text, beside, nil); err != nil {
		return a, err
	}
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		return a, fmt.Errorf("cannot understand what it says: %w", err)
	}
	if a.Denied {
		return a, denied(a.Error)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}
