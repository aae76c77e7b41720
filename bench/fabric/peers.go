package fabric

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/controllers"
)

// The other methods.
const (
	rstp        = "RSTP"
	osKen       = "os-ken"
	osKenSTP    = "os-ken STP"
	osKenSwitch = "os-ken switch"
)

// method connects a network of switches.
type method struct {
	name string
	// rstp: the switches do it by themselves. tree: it needs a network without loops.
	rstp, tree bool
	// kernel: the datapath is that of the kernel.
	kernel bool
	// start starts the controller; nil is Headgate's.
	start func(ctx context.Context, do func(func() error) error) (*runner, error)
	// settles is how long after the switches have their controllers the network is connected. A tree of os-ken's listens and
	// learns for 15 s each (IEEE 802.1D-1998, table 8-3).
	settles time.Duration
}

var (
	ours          = method{name: bench.Ours}
	withRSTP      = method{name: rstp, rstp: true}
	withSTP       = method{name: osKenSTP, start: application("os_ken.app.simple_switch_stp_13"), settles: 40 * time.Second}
	withSwitch    = method{name: osKenSwitch, tree: true, start: application("os_ken.app.simple_switch_13"), settles: 3 * time.Second}
	otherMethods  = []method{withRSTP, withSTP, withSwitch}
	loopedMethods = []method{withRSTP, withSTP}
)

// runner is a running application of os-ken.
type runner struct {
	dir   string
	cmd   *exec.Cmd
	lines *bufio.Scanner // of its standard output
	said  *bench.Tail
	gone  chan struct{}
}

// application returns what starts an application of os-ken.
func application(name string) func(ctx context.Context, do func(func() error) error) (*runner, error) {
	return func(ctx context.Context, do func(func() error) error) (*runner, error) {
		r, err := startOSKen(ctx, do, name)
		if err == nil {
			go r.drain(io.Discard)
		}
		return r, err
	}
}

//go:embed peers/topology.py
var topologyProgram string

// startTopology starts os-ken's topology application with a program that prints what it shows.
func startTopology(ctx context.Context, do func(func() error) error) (_ *runner, err error) {
	dir, err := os.MkdirTemp("", "headgate-osken-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "topology.py")
	if err := os.WriteFile(file, []byte(topologyProgram), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	r, err := startOSKen(ctx, do, "--observe-links", file)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	r.dir = dir
	return r, nil
}

// startOSKen starts os-ken's manager, and waits until it listens.
func startOSKen(ctx context.Context, do func(func() error) error, args ...string) (*runner, error) {
	manager, err := script(ctx, "scripts/osken", "manager")
	if err != nil {
		return nil, err
	}
	r := &runner{cmd: exec.Command(manager, append([]string{"--ofp-tcp-listen-port", controllers.OpenFlowPort}, args...)...), said: &bench.Tail{Keep: 1 << 20}, gone: make(chan struct{})}
	r.cmd.Stderr = r.said
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.lines = bufio.NewScanner(out)
	r.lines.Buffer(nil, 16<<20)
	if err := do(r.cmd.Start); err != nil {
		return nil, err
	}
	go func() { _, _ = r.cmd.Process.Wait(); close(r.gone) }()
	for limit := time.Now().Add(time.Minute); ; {
		c, err := dial(do, "127.0.0.1:"+controllers.OpenFlowPort)
		if err == nil {
			c.Close()
			return r, nil
		}
		select {
		case <-r.gone:
			return nil, fmt.Errorf("os-ken has exited: %s", bench.LastLines(r.said.String()))
		case <-time.After(50 * time.Millisecond):
		}
		if ctx.Err() != nil || time.Now().After(limit) {
			return nil, errors.Join(fmt.Errorf("os-ken does not listen: %w", err), r.close())
		}
	}
}

// drain reads what the application prints, so that it does not wait.
func (r *runner) drain(out io.Writer) {
	for r.lines.Scan() {
		fmt.Fprintln(out, r.lines.Text())
	}
}

func (r *runner) close() error {
	if r == nil {
		return nil
	}
	_ = r.cmd.Process.Signal(syscall.SIGKILL) // it does not end at other signals while it has connections
	select {
	case <-r.gone:
	case <-time.After(10 * time.Second):
		return errors.New("os-ken does not exit")
	}
	return os.RemoveAll(r.dir)
}
