package inmemory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
)

// ChildCommand are the arguments with which this program runs Child.
var ChildCommand = []string{"bench", "switches-in-memory"}

// Process is the child process.
type Process struct {
	cmd     *exec.Cmd
	wait    func() error
	orders  io.WriteCloser
	answers *json.Decoder
	said    *bench.Tail
}

// Start starts the child. do calls a function in the namespace of its network.
func Start(do func(func() error) error) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, ChildCommand...)
	return adopt(c, func() error { return do(c.Start) }, c.Wait)
}

// StartAt starts the child beside the real switches of a lab.
func StartAt(s *lab.Switch) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := s.Command(context.Background(), self, ChildCommand...)
	return adopt(c.Cmd, c.Start, c.Wait)
}

func adopt(c *exec.Cmd, start, wait func() error) (_ *Process, err error) {
	o := &Process{cmd: c, wait: wait, said: &bench.Tail{Keep: 1 << 20}}
	o.cmd.Stderr = o.said
	if o.orders, err = o.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	o.answers = json.NewDecoder(answers)
	return o, start()
}

// Tell gives an order, and returns the report after it.
func (o *Process) Tell(what Order) (r Report, err error) {
	if err := json.NewEncoder(o.orders).Encode(what); err != nil {
		return r, fmt.Errorf("the switches in memory have ended: %w: %s", err, bench.LastLines(o.said.String()))
	}
	if err := o.answers.Decode(&r); err != nil {
		return r, fmt.Errorf("the switches in memory have ended: %w: %s", err, bench.LastLines(o.said.String()))
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

// Usage is the processor time in seconds of the child.
func (o *Process) Usage() float64 { return bench.Ran(o.cmd.Process.Pid).Seconds() }

// PID is the id of the child process.
func (o *Process) PID() int { return o.cmd.Process.Pid }

// Close ends the child.
func (o *Process) Close() error {
	if o == nil {
		return nil
	}
	o.orders.Close()
	_ = o.cmd.Process.Kill() // it keeps nothing
	_ = o.wait()
	return nil
}
