package once

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Process is a running child.
type Process struct {
	cmd    *exec.Cmd
	answer *json.Decoder
	rest   io.Reader
	stderr strings.Builder
}

// Start starts a child, a command that calls Run, and sends the request.
func Start(c *exec.Cmd, r Request) (*Process, error) {
	p := &Process{cmd: c}
	c.Stderr = &p.stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if p.rest, err = c.StdoutPipe(); err != nil {
		return nil, err
	}
	p.answer = json.NewDecoder(p.rest)
	if err := c.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(in).Encode(r); err != nil {
		return nil, errors.Join(err, p.Wait())
	}
	return p, nil
}

// Answer reads the next answer of the child.
func (p *Process) Answer() (a Answer, err error) {
	err = p.answer.Decode(&a)
	return a, err
}

// Wait waits until the child has ended. It must be called after Start.
func (p *Process) Wait() error {
	io.Copy(io.Discard, p.rest)
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("measurement failed: %w: %s", err, strings.TrimSpace(p.stderr.String()))
	}
	return nil
}
