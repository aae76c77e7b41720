package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"headgate/lab"
)

// demoProcess is a part of the service that runs in a node.
type demoProcess struct {
	name string
	cmd  *lab.Cmd
	log  string        // the file that it writes to
	gone chan struct{} // closed when it has ended
}

// inside is a command of this program in a node, as a user of the demo's service there
// would run it.
func (p *play) inside(ctx context.Context, node string, args ...string) (*lab.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := p.lab.Node(node).Command(ctx, self, args...)
	c.Dir = p.dir
	// Logins, and what agents and commands keep of this network namespace, are the demo's.
	c.Env = append(append(os.Environ(), "XDG_CONFIG_HOME="+p.dir, stateEnv+"="+filepath.Join(p.dir, "state")), p.env...)
	// A terminal's Ctrl-C is for us: we end it in order. Not in a session of its own: the
	// scheduler divides the processors among sessions (sched(7), autogroup), and what keeps
	// them awake in ours would take its turn before it: an agent waited for a second each second.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c, nil
}

// start starts a part of the service, which writes to a file: it may outlive us.
func (p *play) start(ctx context.Context, name, node string, args ...string) (*demoProcess, error) {
	d := &demoProcess{name: name, log: filepath.Join(p.dir, node+".log"), gone: make(chan struct{})}
	log, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if d.cmd, err = p.inside(context.WithoutCancel(ctx), node, args...); err != nil {
		return nil, err
	}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("the %s cannot be started: %w", name, err)
	}
	go func() {
		_ = d.cmd.Wait()
		close(d.gone)
	}()
	p.processes = append(p.processes, d)
	return d, nil
}

// said is what it has written.
func (d *demoProcess) said() string {
	text, _ := os.ReadFile(d.log)
	return strings.TrimSpace(string(text))
}

// alive is an error with the last that it said, if it has ended.
func (d *demoProcess) alive() error {
	select {
	case <-d.gone:
		lines := strings.Split(d.said(), "\n")
		return fmt.Errorf("the %s has ended: %s", d.name, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	default:
		return nil
	}
}

// await polls until something is so, the process has ended, or it takes too long.
func (d *demoProcess) await(ctx context.Context, what string, so func() bool) error {
	deadline := time.Now().Add(demoPatience)
	// A look takes a millisecond or two of a processor that others need.
	for pause := 2 * time.Millisecond; !so(); pause = min(pause*5/4, 50*time.Millisecond) {
		if err := d.alive(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v %s: the %s says: %s", demoPatience, what, d.name, d.said())
		}
		if !sleepUntil(ctx, time.Now().Add(pause)) {
			return ctx.Err()
		}
	}
	return nil
}

// Ours.
const (
	// demoPatience is for parts of the service that start on a busy machine.
	demoPatience = 30 * time.Second
	// demoEnding is how long they may take to end by themselves.
	demoEnding = 3 * time.Second
)

// stopProcesses ends the service: the agents first, which have to say nothing to a
// controller that is gone.
func (p *play) stopProcesses() {
	for i := len(p.processes) - 1; i >= 0; i-- {
		_ = p.processes[i].cmd.Process.Signal(syscall.SIGTERM)
	}
	late := time.After(demoEnding)
	for _, d := range p.processes {
		select {
		case <-d.gone:
		case <-late:
			return // the rest ends with the lab
		}
	}
}

// headgate runs one of our own commands in a node, shows it, and gives what it printed.
func (p *play) headgate(ctx context.Context, node string, args ...string) (string, error) {
	p.shows(node, args, "")
	return p.quietly(ctx, node, args...)
}

// shows shows a command, in lines of at most 80 cells, as one would type it in a node.
func (p *play) shows(node string, args []string, end string) {
	words := make([]string, len(args))
	for i := range args { // what is quoted stays in one line
		words[i] = strings.ReplaceAll(shellWords(args[i:i+1]), " ", "\x00")
	}
	lines := wrapped(node+"$ headgate "+strings.Join(words, " ")+end, "      ", 78)
	lines[0] = "  " + strings.TrimSpace(lines[0])
	for i, line := range lines {
		line = strings.ReplaceAll(line, "\x00", " ")
		if i+1 < len(lines) {
			line += " \\"
		}
		p.stage.say(line)
	}
}

// quietly does not show it.
func (p *play) quietly(ctx context.Context, node string, args ...string) (string, error) {
	c, err := p.inside(ctx, node, args...)
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
	p.stage.say(indented(strings.TrimSpace(errs.String()))...)
	return strings.TrimRight(out.String(), "\n"), nil
}

// indented are the lines of an answer.
func indented(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, "    "+strings.TrimRight(line, "\n"))
	}
	return lines
}

// shellWords writes arguments as one would type them.
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

// writeFile writes one of the demo's files; commands know it by its name alone.
func (p *play) writeFile(name, text string) error {
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		return fmt.Errorf("a file of the demo cannot be written: %w", err)
	}
	return nil
}
