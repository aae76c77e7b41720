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

	"headgate/group"
	"headgate/internal/flock"
	"headgate/internal/ifname"
	"headgate/internal/netns"
	"headgate/shaper"
)

// Claim is an agent's file NS.agent: whose lock says that it runs, and whose text
// says what is its. There is one agent in a network namespace.
type Claim struct {
	file    *os.File
	text    claimText
	earlier claimText // what an earlier agent wrote, as far as it was not taken yet
}

// claimText is what is in the file.
type claimText struct {
	PID   int      `json:"pid"`
	Files []string `json:"files"`
	Devs  []string `json:"devs"` // names and patterns in the files
	// Sources are the files that each is from, or the controller.
	Sources []string `json:"sources,omitempty"`
	// Made are marks of the plans that an agent put in force, by device. They
	// outlive it, so that the next one knows what to take away.
	Made map[string]string `json:"made"`
	// Assigned are connections that an agent put in groups, by device. One more may be here than
	// is there: they are written down before it is done.
	Assigned map[string][]shaper.Assignment `json:"assigned,omitempty"`
}

// claimPath is the file for the network namespace of the calling thread.
func claimPath(dir string) (string, error) {
	ns, err := netns.ID()
	return filepath.Join(dir, "net-"+ns+".agent"), err
}

// NewClaim is for an agent with these files. It fails if another agent runs.
func NewClaim(dir string, files []string) (*Claim, error) {
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
	err = flock.Hold(f)
	before := readClaim(f)
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("an agent runs already (process %d, for %s): end it first", before.PID, strings.Join(before.Files, " "))
		}
		return nil, &os.PathError{Op: "lock", Path: name, Err: err}
	}
	c := &Claim{file: f, earlier: before}
	c.text.PID, c.text.Files = os.Getpid(), files
	return c, nil
}

// Close ends the claim; what was made stays written down.
func (c *Claim) Close() error { return c.file.Close() }

// takeMade is the mark of what an earlier agent put in force on a device, once.
func (c *Claim) takeMade(dev string) string {
	mine := c.earlier.Made[dev]
	delete(c.earlier.Made, dev)
	return mine
}

// takeAssigned are the connections that an earlier agent put in groups on a device, once.
func (c *Claim) takeAssigned(dev string) []shaper.Assignment {
	list := c.earlier.Assigned[dev]
	delete(c.earlier.Assigned, dev)
	return list
}

func (c *Claim) write(devs, sources []string, made map[string]string, assigned map[string][]shaper.Assignment) error {
	next := c.text
	next.Devs, next.Sources, next.Made, next.Assigned = devs, sources, made, assigned
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

// replace writes the text in place, because the lock is on this file and no other. At any moment
// there is a whole one in it: the new one is first written behind all that is there, as a line of
// its own.
func (c *Claim) replace(text []byte) error {
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

// mostClaim has room for hundreds of thousands of connections, twice.
const mostClaim = 128 << 20

// readClaim reads what replace writes, at whatever moment; an empty or damaged file claims nothing.
func readClaim(f *os.File) claimText {
	for range claimTries {
		text, _ := io.ReadAll(io.NewSectionReader(f, 0, mostClaim))
		lines := bytes.Split(text, []byte{'\n'}) // JSON has no newlines
		for _, line := range slices.Backward(lines) {
			var t claimText
			if json.Unmarshal(line, &t) == nil {
				return t
			}
		}
		var t claimText
		if len(text) == 0 || json.NewDecoder(bytes.NewReader(lines[0])).Decode(&t) == nil {
			return t // with the rest of a longer one, or with nothing, behind it
		}
	}
	return claimText{}
}

// claimTries: who reads while it is written may see parts of two.
const claimTries = 10

// Owner tells which agent, that runs now, has a device, and from where: a file, or the controller.
func Owner(dir, dev string) (pid int, source string, ok bool) {
	name, err := claimPath(dir)
	if err != nil {
		return 0, "", false
	}
	f, err := os.Open(name)
	if err != nil {
		return 0, "", false
	}
	defer f.Close()
	if !flock.Held(f) {
		return 0, "", false
	}
	t := readClaim(f)
	at := group.Names{dev: ifname.Of(dev)}.Of(dev, t.Devs)
	if at < 0 {
		return 0, "", false
	}
	if at < len(t.Sources) {
		return t.PID, t.Sources[at], true
	}
	return t.PID, strings.Join(t.Files, " "), true // an agent of an earlier version
}
