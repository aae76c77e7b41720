package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stateDir has one file per lab, which is written before the lab is created and removed after
// everything of it. It is in /run because a lab does not survive a reboot.
const stateDir = "/run/headgate/lab"

// state is the content of a lab's state file: what another process needs to take the lab down, or to
// attach to it.
type state struct {
	Name     string    `json:"name"`
	Owner    process   `json:"owner"`
	Command  string    `json:"command"`
	Tenure   tenure    `json:"tenure"`
	Made     time.Time `json:"made"`
	Topology *Topology `json:"topology"`
	// Creating: Up has not ended, so that devices, addresses and routes may be missing.
	Creating bool `json:"creating,omitempty"`
	// Processes were started by Node.Command and may still run.
	Processes []process `json:"processes,omitempty"`
}

// tenure is how long a lab exists in relation to its owner.
type tenure string

const (
	// owned labs belong to a running program; Down fails while it lives.
	owned tenure = "owned"
	// held labs belong to a program that only holds them; Down ends it.
	held tenure = "held"
	// left labs stay without an owner.
	left tenure = "left"
)

// process is a pid that is not mistaken for a later process of that pid.
type process struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot: field 22 of proc_pid_stat(5).
	Start uint64 `json:"start_ticks"`
}

// thisProcess is the caller.
func thisProcess() process { return processOf(os.Getpid()) }

// processOf returns the process that has pid now; Start is 0 if there is none.
func processOf(pid int) process {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{PID: pid}
	}
	// The command, in parentheses, may itself have spaces and parentheses.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return process{PID: pid}
	}
	start, _ := strconv.ParseUint(fields[19], 10, 64)
	return process{PID: pid, Start: start}
}

func (p process) alive() bool { return p.Start != 0 && processOf(p.PID) == p }

func statePath(name string) string { return filepath.Join(stateDir, name+".json") }
func tmpPath(name string) string   { return filepath.Join(stateDir, "."+name+".tmp") }

// lockStates serialises claims and removals among processes. The lock ends with the process that holds
// it.
func lockStates() (unlock func(), err error) {
	if err := os.MkdirAll(stateDir, 0o755); err != nil {
		return nil, permitted(fmt.Errorf("make %s: %w", stateDir, err))
	}
	f, err := os.OpenFile(filepath.Join(stateDir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, permitted(err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// save replaces the lab's state file atomically: a reader, also after a crash, sees the old or the new
// one.
func (s *state) save() error {
	b, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	tmp := tmpPath(s.Name)
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return permitted(err)
	}
	return os.Rename(tmp, statePath(s.Name))
}

func loadState(name string) (*state, error) {
	b, err := os.ReadFile(statePath(name))
	if err != nil {
		return nil, err
	}
	s := new(state)
	if err := json.Unmarshal(b, s); err != nil || s.Topology == nil {
		return nil, fmt.Errorf("%s is damaged (%v): remove it, and then run \"headgate lab down %s\"", statePath(name), err, name)
	}
	return s, nil
}

// namespaces returns the names of the lab's namespaces.
func (s *state) namespaces() (out []string) {
	for _, n := range s.Topology.Nodes {
		out = append(out, namespaceName(s.Name, n.Name))
	}
	if len(s.Topology.Switches) > 0 {
		out = append(out, namespaceName(s.Name, switchesName))
	}
	return out
}

// switchesDir has the database, sockets and logs of a lab's Open vSwitch.
func switchesDir(name string) string { return filepath.Join(stateDir, name+".ovs") }

func namespaceName(lab, node string) string { return "hg-" + lab + "-" + node }
