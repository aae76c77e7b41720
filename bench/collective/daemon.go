package collective

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/collective/host"
)

// The methods of control: none, the paper's, and Headgate's.
const (
	plain = "plain"
	seed  = "seed"
	ours  = "headgate"
)

// laws are the methods that are compared.
var laws = []string{plain, seed, ours}

// set is a set of connections of a daemon, selected by source port.
type set struct {
	name         string
	scaleControl string
	rules        []string // in YAML, "sport: 5001"
	// bottleneck is the link that sets have in common by weight; "" is none.
	bottleneck string
	weight     float64
	per        string // destination or bottleneck; "" is neither
}

// daemon is "headgate collective run", as a user would start it.
type daemon struct {
	cmd      *exec.Cmd
	instance string
	dir      string
	every    time.Duration
	done     chan struct{} // closed when the program has printed its last line

	mu     sync.Mutex
	states []host.State
}

var instances atomic.Int32

// every is the time between two states of a daemon; seldom is for daemons whose cost is measured,
// without that of printing.
const every, seldom = 100 * time.Millisecond, time.Minute

// watch starts a daemon and waits until it watches its sets. Sets without control are omitted; without
// any set there is no daemon.
func watch(ctx context.Context, sets ...set) (*daemon, error) { return watchEvery(ctx, every, sets...) }

func watchEvery(ctx context.Context, every time.Duration, sets ...set) (*daemon, error) {
	sets = slices.DeleteFunc(sets, func(s set) bool { return s.scaleControl == plain })
	if len(sets) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	d := &daemon{dir: dir}
	file := filepath.Join(dir, "collective.yaml")
	if err := os.WriteFile(file, []byte(configOf(sets)), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	d.instance, d.every = fmt.Sprintf("bench-%d-%d", os.Getpid(), instances.Add(1)), every
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(err, d.end())
	}
	return d, nil
}

// start starts the program, and waits until it watches its sets.
func (d *daemon) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d.done = make(chan struct{})
	d.cmd = exec.CommandContext(ctx, self, "collective", "run", "-f", filepath.Join(d.dir, "collective.yaml"), "-o", "json", "--interval", d.every.String(), "--instance", d.instance)
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGTERM) }
	var said strings.Builder
	d.cmd.Stderr = &said
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		close(d.done)
		return err
	}
	first := make(chan struct{})
	go d.read(out, first, d.done)
	select {
	case <-first:
		return nil
	case <-d.done:
	case <-time.After(10 * time.Second):
	}
	return fmt.Errorf("headgate collective run does not start: %s", said.String())
}

// restart ends the program, in order or not, and starts it again.
func (d *daemon) restart(ctx context.Context, inOrder bool) error {
	if d == nil {
		return nil
	}
	d.cmd.Process.Signal(bench.Pick(inOrder, syscall.SIGTERM, syscall.SIGKILL))
	<-d.done
	if err := d.cmd.Wait(); inOrder && err != nil {
		return err
	}
	return d.start(ctx)
}

func configOf(sets []set) string {
	var b strings.Builder
	for i, s := range sets {
		if i > 0 {
			b.WriteString("---\n")
		}
		fmt.Fprintf(&b, "kind: Collective\nname: %s\nlaw: %s\ncgroup: /\n", s.name, s.scaleControl)
		if s.bottleneck != "" {
			fmt.Fprintf(&b, "bottleneck: %s\nweight: %v\n", s.bottleneck, s.weight)
		}
		if s.per != "" {
			fmt.Fprintf(&b, "per: %s\n", s.per)
		}
		b.WriteString("match:\n")
		for _, r := range s.rules {
			fmt.Fprintf(&b, "  - {%s}\n", r)
		}
	}
	return b.String()
}

func (d *daemon) read(out io.Reader, first, done chan<- struct{}) {
	defer close(done)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for n := 0; lines.Scan(); n++ {
		var s []host.State
		if json.Unmarshal(lines.Bytes(), &s) != nil {
			continue
		}
		if n == 0 {
			close(first)
		}
		d.mu.Lock()
		d.states = append(d.states, s...)
		d.mu.Unlock()
	}
}

// of returns a set's states so far.
func (d *daemon) of(name string) (out []host.State) {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.states {
		if s.Set == name {
			out = append(out, s)
		}
	}
	return out
}

// end stops the daemon, which removes all caps.
func (d *daemon) end() error {
	if d == nil {
		return nil
	}
	var err error
	if d.cmd != nil && d.cmd.Process != nil && d.cmd.ProcessState == nil {
		d.cmd.Process.Signal(syscall.SIGTERM)
		<-d.done
		err = d.cmd.Wait()
	}
	// What it keeps for the next program of its name is for nobody.
	return errors.Join(err, os.RemoveAll(d.dir), host.Forget(d.instance))
}
