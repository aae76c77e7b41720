package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
)

// agents are the processes of a method.
type agents struct {
	dir string
	all []*agent
}

// agent is one process.
type agent struct {
	cmd  *lab.Cmd
	mu   sync.Mutex
	said strings.Builder
	done chan struct{}
}

// start starts a program, and waits until it says that it is ready, unless ready is "".
func (a *agents) start(ctx context.Context, n *lab.Node, ready, name string, args ...string) error {
	one := &agent{cmd: n.Command(ctx, name, args...), done: make(chan struct{})}
	one.cmd.Cancel = func() error { return one.cmd.Process.Signal(syscall.SIGTERM) }
	errs, err := one.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := one.cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	a.all = append(a.all, one)
	is := make(chan struct{})
	go one.read(errs, ready, is)
	if ready == "" {
		return nil
	}
	select {
	case <-is:
		return nil
	case <-one.done:
	case <-time.After(20 * time.Second):
	}
	return fmt.Errorf("%s %s does not start: %s", filepath.Base(name), strings.Join(args, " "), one.output())
}

func (a *agent) read(errs io.Reader, ready string, is chan<- struct{}) {
	defer close(a.done)
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		a.mu.Lock()
		if a.said.Len() < 64<<10 {
			a.said.WriteString(lines.Text() + "\n")
		}
		a.mu.Unlock()
		if ready != "" && strings.Contains(lines.Text(), ready) {
			close(is)
			ready = ""
		}
	}
}

func (a *agent) output() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.said.String()
}

// end ends the processes. A process that had ended before is an error.
func (a *agents) end() error {
	var errs []error
	for n := len(a.all) - 1; n >= 0; n-- {
		one := a.all[n]
		early := one.cmd.Process.Signal(syscall.SIGTERM) != nil
		select {
		case <-one.done:
		case <-time.After(20 * time.Second):
			errs = append(errs, fmt.Errorf("%s does not end", one.cmd.Path))
			one.cmd.Process.Kill()
			<-one.done
		}
		_ = one.cmd.Wait()
		if early {
			errs = append(errs, fmt.Errorf("%s has ended: %s", one.cmd.Path, one.output()))
		}
	}
	if a.dir != "" {
		errs = append(errs, os.RemoveAll(a.dir))
	}
	return errors.Join(errs...)
}

// usage is what the processes have used.
type usage struct {
	cpu     float64   // seconds
	each    []float64 // of each process
	busiest float64   // the most of a process
	streams int       // connections between the agents, at the end
}

func (u usage) minus(o usage) usage {
	out := usage{streams: u.streams}
	for n := range u.each {
		used := u.each[n] - o.each[n]
		out.each = append(out.each, used)
		out.cpu, out.busiest = out.cpu+used, max(out.busiest, used)
	}
	return out
}

// usage returns the processor time of the processes, and how many connections to the exit are open.
func (a *agents) usage() (u usage) {
	for _, one := range a.all {
		u.each = append(u.each, bench.ProcessTime(one.cmd.Process.Pid))
		u.streams = max(u.streams, streamsOf(one.cmd.Process.Pid))
	}
	return u
}

// streamsOf returns how many established connections to port 8424 the namespace of a process has.
func streamsOf(pid int) (n int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return 0
	}
	const port, established = ":20E8", "01"
	for _, line := range strings.Split(string(b), "\n") {
		if f := strings.Fields(line); len(f) > 3 && strings.HasSuffix(f[2], port) && f[3] == established {
			n++
		}
	}
	return n
}
