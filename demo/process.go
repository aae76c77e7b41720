package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/lab"
)

// process is a process of the service that runs in a node.
type process struct {
	name string
	cmd  *lab.Cmd
	log  string        // the file with its output
	gone chan struct{} // closed when it has exited
}

// nodeProgram returns a command of this program in a node, with the environment of the demo's
// service.
func (d *deployment) nodeProgram(ctx context.Context, node string, args ...string) (*lab.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := d.lab.Node(node).Command(ctx, self, args...)
	c.Dir = d.dir
	// Logins, the state of agents and commands, and the sockets of relay agents are in the demo's directory.
	c.Env = append(append(os.Environ(), "XDG_CONFIG_HOME="+d.dir), d.Env(filepath.Join(d.dir, "state"), filepath.Join(d.dir, node, "relay"))...)
	// A process group of its own, so that a terminal's Ctrl-C reaches only this process, which
	// stops the others in order. Not a session of its own: the scheduler divides the processors among
	// sessions (sched(7), autogroup), and this session's threads that keep the processors awake
	// would delay the process: an agent waited for one second of each second.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c, nil
}

// start starts a process of the service. Its output goes to a file, because it may outlive this process.
func (d *deployment) start(ctx context.Context, name, node string, args ...string) (*process, error) {
	one := &process{name: name, log: filepath.Join(d.dir, node+".log"), gone: make(chan struct{})}
	log, err := os.Create(one.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if one.cmd, err = d.nodeProgram(context.WithoutCancel(ctx), node, args...); err != nil {
		return nil, err
	}
	one.cmd.Stdout, one.cmd.Stderr = log, log
	if err := one.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the %s: %w", name, err)
	}
	go func() {
		_ = one.cmd.Wait()
		close(one.gone)
	}()
	d.processes = append(d.processes, one)
	return one, nil
}

// output returns the output of the process so far.
func (d *process) output() string {
	text, _ := os.ReadFile(d.log)
	return strings.TrimSpace(string(text))
}

// exitError returns an error with the last lines of output if the process has exited.
func (d *process) exitError() error {
	select {
	case <-d.gone:
		lines := strings.Split(d.output(), "\n")
		return fmt.Errorf("%s exited: %s", d.name, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	default:
		return nil
	}
}

// await polls until so returns true. It fails with the description what when the process has exited, or
// after the timeout.
func (d *process) await(ctx context.Context, what string, so func() bool) error {
	deadline := time.Now().Add(timeout)
	// Back off, because a poll takes 1 to 2 ms of a processor that other processes need.
	for pause := 2 * time.Millisecond; !so(); pause = min(pause*5/4, 50*time.Millisecond) {
		if err := d.exitError(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("timed out after %v: %s; output of the %s: %s", timeout, what, d.name, d.output())
		}
		if !sleep.Until(ctx, time.Now().Add(pause)) {
			return ctx.Err()
		}
	}
	return nil
}

// Timeouts of the service's processes.
const (
	// timeout is the timeout of a start, on a busy machine.
	timeout = 30 * time.Second
	// stopTimeout is the timeout of an exit after SIGTERM.
	stopTimeout = 3 * time.Second
)

// stopProcesses stops the service. It stops the agents before the controller, so that they do not
// log errors about it.
func (d *deployment) stopProcesses() {
	for i := len(d.processes) - 1; i >= 0; i-- {
		_ = d.processes[i].cmd.Process.Signal(syscall.SIGTERM)
	}
	late := time.After(stopTimeout)
	for _, one := range d.processes {
		select {
		case <-one.gone:
		case <-late:
			return // removing the lab kills the others
		}
	}
}

// headgate shows a headgate command, runs it in a node, and returns its output.
func (d *deployment) headgate(ctx context.Context, node string, args ...string) (string, error) {
	d.showCommand(node, args, "")
	return d.runSilently(ctx, node, args...)
}

// showCommand shows a command as typed in a shell, in lines of at most 80 cells.
func (d *deployment) showCommand(node string, args []string, end string) {
	words := make([]string, len(args))
	for i := range args { // do not break quoted arguments
		words[i] = strings.ReplaceAll(shellWords(args[i:i+1]), " ", "\x00")
	}
	lines := text.Wrap(node+"$ headgate "+strings.Join(words, " ")+end, "      ", 78)
	lines[0] = "  " + strings.TrimSpace(lines[0])
	for i, line := range lines {
		line = strings.ReplaceAll(line, "\x00", " ")
		if i+1 < len(lines) {
			line += " \\"
		}
		d.stage.say(line)
	}
}

// runSilently runs a headgate command in a node and returns its output, without showing the command.
func (d *deployment) runSilently(ctx context.Context, node string, args ...string) (string, error) {
	c, err := d.nodeProgram(ctx, node, args...)
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("headgate %s: %w: %s", shellWords(args), err, strings.TrimSpace(errs.String()+out.String()))
	}
	for _, line := range indented(strings.TrimSpace(errs.String())) {
		d.stage.say(text.Wrap(strings.TrimSpace(line), "    ", 78)...)
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// indented returns the lines of a text, indented.
func indented(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, "    "+strings.TrimRight(line, "\n"))
	}
	return lines
}

// shellWords formats arguments for a shell.
func shellWords(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if strings.ContainsAny(a, " '\"$") {
			a = "'" + a + "'"
		}
		out[i] = a
	}
	return strings.Join(out, " ")
}

// writeFile writes a file in the demo's directory, which is the working directory of commands.
func (d *deployment) writeFile(name, text string) error {
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot write a file of the demo: %w", err)
	}
	return nil
}
