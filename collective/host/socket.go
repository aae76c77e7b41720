package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// socketDir has a socket for each program that runs.
const socketDir = "/run/headgate/collective"

func socketPath(instance string) string { return filepath.Join(socketDir, instance+".sock") }

// patience is for how long one side of the socket waits for the other.
const patience = 2 * time.Second

// Teller tells whoever asks at its socket what the sets are doing.
type Teller struct {
	listener net.Listener
	mu       sync.Mutex
	states   []State
}

// Tell opens the socket of a program, for root alone. What a killed one left there is
// replaced: only one of a name runs at a time (sockops.Open).
func Tell(instance string) (*Teller, error) {
	if err := os.MkdirAll(socketDir, 0o755); err != nil {
		return nil, err
	}
	path := socketPath(instance)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot be asked: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	t := &Teller{listener: l}
	go t.serve()
	return t, nil
}

func (t *Teller) serve() {
	for {
		c, err := t.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many files, say
			time.Sleep(patience)
			continue
		}
		t.mu.Lock()
		states := t.states
		t.mu.Unlock()
		c.SetDeadline(time.Now().Add(patience))
		json.NewEncoder(c).Encode(states) // who goes away does not want it
		c.Close()
	}
}

// Set is what is told from now on.
func (t *Teller) Set(states []State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states = states
}

// Close takes the socket away.
func (t *Teller) Close() error { return t.listener.Close() }

// ErrNotRunning: there is no such program.
var ErrNotRunning = errors.New("no such program runs")

// Ask asks a program what its sets are doing.
func Ask(instance string) (states []State, err error) {
	c, err := net.DialTimeout("unix", socketPath(instance), patience)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if err := json.NewDecoder(c).Decode(&states); err != nil {
		return nil, fmt.Errorf("cannot understand what it says: %w", err)
	}
	return states, nil
}
