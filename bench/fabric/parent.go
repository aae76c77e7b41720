package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"headgate.dev/headgate/bench"
)

// ChildCommand are the arguments with which this program runs Child.
var ChildCommand = []string{"bench", "switches-in-memory"}

// offspring is the child process, which has switches in memory: its processor time is not the controller's, nor the bench's.
type offspring struct {
	cmd     *exec.Cmd
	wait    func() error
	orders  io.WriteCloser
	answers *json.Decoder
	said    *bench.Tail
}

// beget starts the child. do calls a function in the namespace of its network.
func beget(do func(func() error) error) (*offspring, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, ChildCommand...)
	return adopt(c, func() error { return do(c.Start) }, c.Wait)
}

// begetAtSwitches starts the child beside the real switches.
func begetAtSwitches(n *network) (*offspring, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	c := n.Switch(n.Topology.Switches[0].Name).Command(context.Background(), self, ChildCommand...)
	return adopt(c.Cmd, c.Start, c.Wait)
}

func adopt(c *exec.Cmd, start, wait func() error) (_ *offspring, err error) {
	o := &offspring{cmd: c, wait: wait, said: &bench.Tail{Keep: keptOutput}}
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

// tell gives an order, and returns the report after it.
func (o *offspring) tell(what order) (r report, err error) {
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

// usage is the processor time in seconds of the child.
func (o *offspring) usage() float64 { return bench.Ran(o.cmd.Process.Pid).Seconds() }

func (o *offspring) close() error {
	if o == nil {
		return nil
	}
	o.orders.Close()
	_ = o.cmd.Process.Kill() // it keeps nothing
	_ = o.wait()
	return nil
}
