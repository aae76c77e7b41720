package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/flock"
	"headgate.dev/headgate/internal/ifname"
	"headgate.dev/headgate/internal/netns"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// StateFile is the agent's state file, NS.agent. A lock on the file shows that the agent is running;
// the file lists what the agent owns. Each network namespace has at most one agent.
type StateFile struct {
	file    *os.File
	text    stateFileContent
	earlier stateFileContent // what a previous agent wrote, without the entries already taken over
}

// stateFileContent is the content of the file.
type stateFileContent struct {
	PID   int      `json:"pid"`
	Files []string `json:"files"`
	Devs  []string `json:"devs"` // device names and patterns in the configuration
	// Sources names, for each of Devs, the file that configures the device, or the controller.
	Sources []string `json:"sources,omitempty"`
	// Origins has, by entry of Devs, the groups ("out/web") that no file created.
	Origins map[string]map[string]group.Origin `json:"origins,omitempty"`
	// AppliedHashes has the hashes of the applied plans, by device. The entries stay in the file
	// when the agent stops, so that the next agent knows which devices to clear.
	AppliedHashes map[string]string `json:"made"`
	// Assigned has the connections that an agent assigned to groups, by device. They are written
	// before the assignment, so that the file may list a connection that is not assigned.
	Assigned map[string][]shaper.Assignment `json:"assigned,omitempty"`
	// Limits are the limits of reservations, by key. The next agent uses them until a controller sends others.
	Limits map[string]unit.Rate `json:"limits,omitempty"`
}

// claimPath returns the path of the file for the network namespace of the calling thread.
func claimPath(dir string) (string, error) {
	ns, err := netns.ID()
	return filepath.Join(dir, "net-"+ns+".agent"), err
}

// NewClaim locks the state file for an agent with these configuration files. It fails if another
// agent is running.
func NewClaim(dir string, files []string) (*StateFile, error) {
	name, err := claimPath(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	err = flock.Lock(f)
	before := readClaim(f)
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another agent is running (process %d, config %s): stop it first", before.PID, strings.Join(before.Files, " "))
		}
		return nil, &os.PathError{Op: "lock", Path: name, Err: err}
	}
	c := &StateFile{file: f, earlier: before}
	c.text.PID, c.text.Files = os.Getpid(), files
	return c, nil
}

// Close releases the lock; the content of the file stays.
func (c *StateFile) Close() error { return c.file.Close() }

// takeAppliedHash returns, once, the hash of the plan that a previous agent applied to a device.
func (c *StateFile) takeAppliedHash(dev string) string {
	mine := c.earlier.AppliedHashes[dev]
	delete(c.earlier.AppliedHashes, dev)
	return mine
}

// takeAssigned returns, once, the connections that a previous agent assigned to groups of a device.
func (c *StateFile) takeAssigned(dev string) []shaper.Assignment {
	list := c.earlier.Assigned[dev]
	delete(c.earlier.Assigned, dev)
	return list
}

// write writes what the agent owns; the process and its files stay as they are.
func (c *StateFile) write(next stateFileContent) error {
	next.PID, next.Files = c.text.PID, c.text.Files
	if reflect.DeepEqual(next, c.text) {
		return nil
	}
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := c.replace(text); err != nil {
		return err
	}
	c.text = next
	return nil
}

// replace writes the text in place, because the lock is on this file. The file contains a complete
// text at any moment: the new text is first written after the old one, on a line of its own.
func (c *StateFile) replace(text []byte) error {
	info, err := c.file.Stat()
	if err != nil {
		return err
	}
	if _, err := c.file.WriteAt(append([]byte{'\n'}, text...), max(info.Size(), int64(len(text)))); err != nil {
		return errors.Join(err, c.file.Truncate(info.Size()))
	}
	if _, err := c.file.WriteAt(text, 0); err != nil {
		return err
	}
	return c.file.Truncate(int64(len(text)))
}

// maxStateFileSize is the most bytes that are read: two texts with hundreds of thousands of connections.
const maxStateFileSize = 128 << 20

// readClaim reads the file, also while replace writes it. An empty or damaged file gives an empty
// claim.
func readClaim(f *os.File) stateFileContent {
	for range readAttempts {
		text, _ := io.ReadAll(io.NewSectionReader(f, 0, maxStateFileSize))
		lines := bytes.Split(text, []byte{'\n'}) // JSON has no newlines
		for _, line := range slices.Backward(lines) {
			var t stateFileContent
			if json.Unmarshal(line, &t) == nil {
				return t
			}
		}
		var t stateFileContent
		if len(text) == 0 || json.NewDecoder(bytes.NewReader(lines[0])).Decode(&t) == nil {
			return t // the rest of a longer text, or nothing, follows it
		}
	}
	return stateFileContent{}
}

// readAttempts is the number of attempts to read the file: a read during a write may return parts of
// two texts.
const readAttempts = 10

// Owner returns the running agent that owns a device, and the source of the device's configuration:
// a file or the controller.
func Owner(dir, dev string) (pid int, source string, ok bool) {
	t, at := readOwner(dir, dev)
	switch {
	case at < 0:
		return 0, "", false
	case at < len(t.Sources):
		return t.PID, t.Sources[at], true
	}
	return t.PID, strings.Join(t.Files, " "), true // an agent of an earlier version writes no Sources
}

// Origins returns the groups ("out/web") of a device that no file created, as the running agent has
// written them.
func Origins(dir, dev string) map[string]group.Origin {
	t, at := readOwner(dir, dev)
	if at < 0 {
		return nil
	}
	return t.Origins[t.Devs[at]]
}

// readOwner returns the state of the running agent that owns a device, and the index of the device in
// Devs; -1 if there is none.
func readOwner(dir, dev string) (t stateFileContent, at int) {
	name, err := claimPath(dir)
	if err != nil {
		return t, -1
	}
	f, err := os.Open(name)
	if err != nil {
		return t, -1
	}
	defer f.Close()
	if !flock.IsLocked(f) {
		return t, -1
	}
	t = readClaim(f)
	return t, group.AltNames{dev: ifname.Of(dev)}.Of(dev, t.Devs)
}
