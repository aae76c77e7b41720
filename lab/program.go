package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab/traffic"
)

// Program is a command that runs in a node while the lab runs: from the start, before the flows
// connect, or from an event of the timeline.
type Program struct {
	Name string
	// Node is the name of a node, or of a switch (see Switch.Command).
	Node    string
	Command []string
}

// programPatience is the time between SIGTERM and SIGKILL.
const programPatience = 2 * time.Second

func (t *Topology) programProblems(nodes map[string]bool, add adder) {
	names := map[string]bool{}
	for _, f := range t.Flows {
		names[f.Name] = true
	}
	for i, p := range t.Programs {
		at := fmt.Sprintf("programs[%d]", i)
		switch {
		case !linkName.MatchString(p.Name): // it becomes a file name
			add(at+".name", "%q is not a valid program name: use 1 to 31 letters, digits, dots and dashes, a letter first", p.Name)
		case names[p.Name]:
			add(at+".name", "duplicate flow or program name %q", p.Name)
		}
		names[p.Name] = true
		if !nodes[p.Node] {
			add(at+".node", "unknown node %q: add it to nodes, or correct the name", p.Node)
		}
		if len(p.Command) == 0 || p.Command[0] == "" {
			add(at+".command", "no command: write for example [iperf3, -s]")
		}
	}
}

// ProgramResult is the result of a program.
type ProgramResult struct {
	Name    string   `json:"name"`
	Node    string   `json:"node"`
	Command []string `json:"command"`
	// StartedSeconds and EndedSeconds are since the start of the run; a program that runs from the
	// start began a little earlier.
	StartedSeconds float64 `json:"started_s"`
	EndedSeconds   float64 `json:"ended_s"`
	// Ended is "by itself", "by the timeline", "with the run", or "" if it never
	// started.
	Ended string `json:"ended,omitempty"`
	// ExitStatus is the exit status, or -1; Signal is the signal that terminated it.
	ExitStatus int    `json:"exit_status"`
	Signal     string `json:"signal,omitempty"`
	// Output and Errors are the files with its standard output and standard error.
	Output string `json:"output_file,omitempty"`
	Errors string `json:"errors_file,omitempty"`
	Error  string `json:"error,omitempty"` // the reason why it did not start
}

// failed reports whether the program exited by itself with an error.
func (p ProgramResult) failed() bool {
	return p.Error != "" || p.Ended == "by itself" && (p.ExitStatus != 0 || p.Signal != "")
}

// running is a started program.
type running struct {
	cmd    *Cmd
	result ProgramResult
	files  []*os.File
	done   chan struct{} // closed when it has exited
	// CLOCK_MONOTONIC ns.
	started, ended int64
}

// startProgram starts p, which writes to files in dir.
func (l *Lab) startProgram(p Program, dir string) (*running, error) {
	r := &running{result: ProgramResult{Name: p.Name, Node: p.Node, Command: p.Command, ExitStatus: -1}, done: make(chan struct{})}
	fail := func(err error) (*running, error) {
		for _, f := range r.files {
			f.Close()
		}
		r.result.Error = err.Error()
		close(r.done)
		return r, fmt.Errorf("program %s: %w", p.Name, err)
	}
	for _, to := range []struct {
		name *string
		end  string
	}{{&r.result.Output, ".out"}, {&r.result.Errors, ".err"}} {
		*to.name = filepath.Join(dir, p.Name+to.end)
		f, err := os.Create(*to.name)
		if err != nil {
			return fail(err)
		}
		r.files = append(r.files, f)
	}
	cmd, err := l.Command(context.Background(), p.Node, p.Command[0], p.Command[1:]...)
	if err != nil {
		return fail(err)
	}
	r.cmd = cmd
	r.cmd.Stdout, r.cmd.Stderr = r.files[0], r.files[1]
	// The program has its own process group, so that its children are stopped with it, and a
	// terminal's Ctrl-C does not reach it before the run has ended.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.started = traffic.MonotonicNow()
	if err := r.cmd.Start(); err != nil {
		return fail(err)
	}
	go func() {
		// Until it is waited for, its pid and its group cannot be reused.
		pid := r.cmd.Process.Pid
		if waitExited(pid) == nil {
			unix.Kill(-pid, unix.SIGKILL)
		}
		err := r.cmd.Wait()
		r.ended = traffic.MonotonicNow()
		if status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			r.result.Signal = unix.SignalName(status.Signal())
		} else {
			r.result.ExitStatus = r.cmd.ProcessState.ExitCode()
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			r.result.Error = err.Error()
		}
		for _, f := range r.files {
			f.Close()
		}
		close(r.done)
	}()
	return r, nil
}

// waitExited returns when a child has exited, and does not reap it.
func waitExited(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// outcome returns the result of a program that was stopped, in a run that began at start.
func (r *running) outcome(start int64) ProgramResult {
	if r.started != 0 {
		r.result.StartedSeconds = float64(r.started-start) / 1e9
		r.result.EndedSeconds = float64(r.ended-start) / 1e9
	}
	return r.result
}

// stop terminates the program and its children, and waits for it. why goes into its result, unless it
// has exited by itself.
func (r *running) stop(why string) {
	select {
	case <-r.done:
		if r.result.Ended == "" && r.result.Error == "" {
			r.result.Ended = "by itself"
		}
		return
	default:
	}
	pid := r.cmd.Process.Pid
	unix.Kill(-pid, unix.SIGTERM)
	select {
	case <-r.done:
	case <-time.After(programPatience):
		unix.Kill(-pid, unix.SIGKILL)
		<-r.done
	}
	r.result.Ended = why
}
