package host

import (
	"os"
	"path/filepath"
	"strings"

	"headgate/internal/ask"
)

// ErrNotRunning: there is no such program.
var ErrNotRunning = ask.ErrNobody

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
	a, err := call(instance, request{})
	return a.States, err
}

// Join asks a program to have the connection of a descriptor in a set, with a weight by hand
// or 0. The descriptor stays the caller's.
func Join(instance, set string, weight float64, fd int) error {
	_, err := call(instance, request{Join: set, Weight: weight}, fd)
	return err
}

func call(instance string, r request, fds ...int) (a answer, err error) {
	if err := ask.Call(socketPath(instance), r, &a, fds...); err != nil {
		return a, err
	}
	return a, a.Err()
}
