package host

import (
	"os"
	"path/filepath"
	"strings"

	"headgate.dev/headgate/internal/ask"
)

// ErrNotRunning is the error if no process with the name is running.
var ErrNotRunning = ask.ErrNotListening

// Running returns the names of the processes that have a socket. A killed process leaves
// its socket.
func Running() (names []string) {
	entries, _ := os.ReadDir(socketDir)
	for _, e := range entries {
		if name, is := strings.CutSuffix(e.Name(), filepath.Ext(socketPath(""))); is {
			names = append(names, name)
		}
	}
	return names
}

// QueryStates returns the states of a process's sets.
func QueryStates(instance string) ([]State, error) {
	a, err := call(instance, request{})
	return a.States, err
}

// Join adds the connection of a descriptor to a set of a process, with a configured
// weight or 0. The caller keeps the descriptor.
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
