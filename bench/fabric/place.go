package fabric

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
)

// place is the controllers of a network, in nodes of a lab.
type place struct {
	dir         string
	file        string // of the controllers; "" for one
	controllers []*control
}

// seat is where a controller runs.
type seat struct {
	name string
	// address is of its API.
	address string
	// do calls a function in its namespace.
	do func(func() error) error
}

// alone is the seat of the only controller of a network, in a node.
func alone(n *lab.Node) seat { return seat{n.Name, "127.0.0.1", n.Do} }

// control is a controller, which may be running.
type control struct {
	seat
	dir   string
	place *place

	cmd  *exec.Cmd
	said *bench.Tail
	gone chan struct{}
}

const (
	openflowPort = "6653"
	apiPort      = "8420"
	// keptOutput is how many bytes of a process's output are kept.
	keptOutput = 1 << 20
	// startPatience is the time limit for controllers to start on a busy machine.
	startPatience = 60 * time.Second
)

// startControllers starts a controller at each seat, and logs in at all of them.
func startControllers(ctx context.Context, seats ...seat) (_ *place, err error) {
	p := &place{}
	if p.dir, err = os.MkdirTemp("", "headgate-fabric-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	var members []string
	for _, at := range seats {
		p.controllers = append(p.controllers, &control{seat: at, dir: filepath.Join(p.dir, at.name), place: p})
		members = append(members, fmt.Sprintf("  - {name: %s, address: %s}", at.name, at.address))
	}
	if len(seats) > 1 {
		p.file = filepath.Join(p.dir, "controllers.yaml")
		if err := os.WriteFile(p.file, []byte("kind: Controllers\nmembers:\n"+strings.Join(members, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
		if _, err := p.controllers[0].headgate(ctx, "controller", "prepare", "-f", p.file, "--to", p.dir); err != nil {
			return nil, err
		}
	}
	for _, c := range p.controllers {
		if err := c.start(); err != nil {
			return nil, err
		}
	}
	return p, p.login(ctx)
}

// start starts the controller, and does not wait until it serves.
func (c *control) start() error {
	self, err := executable()
	if err != nil {
		return err
	}
	args := []string{"controller", "--data", c.dir, "--name", c.name, "--openflow", "0.0.0.0:" + openflowPort}
	if c.place.file != "" {
		args = append(args, "-f", c.place.file)
	}
	c.cmd, c.said, c.gone = exec.Command(self, args...), &bench.Tail{Keep: keptOutput}, make(chan struct{})
	c.cmd.Stderr = c.said
	if err := c.do(c.cmd.Start); err != nil {
		c.cmd = nil
		return err
	}
	go func(cmd *exec.Cmd, gone chan struct{}) {
		_ = cmd.Wait()
		close(gone)
	}(c.cmd, c.gone)
	return nil
}

// stop sends a signal to the controller, if it runs, and waits until it has exited.
func (c *control) stop(signal syscall.Signal) error {
	if c.cmd == nil {
		return nil
	}
	_ = c.cmd.Process.Signal(syscall.SIGCONT)
	_ = c.cmd.Process.Signal(signal)
	defer func() { c.cmd = nil }()
	select {
	case <-c.gone:
		return nil
	case <-time.After(20 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.gone
		return fmt.Errorf("controller %s does not exit: %s", c.name, bench.LastLines(c.said.String()))
	}
}

// login waits until all controllers serve, and logs in.
func (p *place) login(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		err := p.tryLogin(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the controllers do not serve: %w: %s", err, bench.LastLines(p.controllers[0].said.String()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *place) tryLogin(ctx context.Context) error {
	pin, token := "", ""
	for _, c := range p.controllers {
		if c.cmd == nil {
			continue
		}
		select {
		case <-c.gone:
			return fmt.Errorf("controller %s has exited: %s", c.name, bench.LastLines(c.said.String()))
		default:
		}
		_, after, ok := strings.Cut(c.said.String(), "certificate pin ")
		if !ok {
			return fmt.Errorf("controller %s is not ready", c.name)
		}
		pin, _, _ = strings.Cut(after, "\n")
		if file := filepath.Join(c.dir, "operator.token"); exists(file) {
			token = file
		}
	}
	if token == "" {
		return errors.New("there is no operator token")
	}
	for _, c := range p.controllers {
		if c.cmd == nil {
			continue
		}
		if _, err := c.headgate(ctx, "login", "https://"+netip.MustParseAddr(c.address).String()+":"+apiPort, "--pin", strings.TrimSpace(pin), "--token-file", token); err != nil {
			return err
		}
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// headgate runs one of this program's commands in the controller's node, as its user would, and returns its output.
func (c *control) headgate(ctx context.Context, args ...string) ([]byte, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(c.place.dir, "login-"+c.name))
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := c.do(cmd.Start); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("headgate %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(problems.Bytes()))
	}
	return out.Bytes(), nil
}

// ask runs a command with -o json at a controller, and decodes its output.
func ask[T any](ctx context.Context, c *control, args ...string) (out T, err error) {
	text, err := c.headgate(ctx, append(args, "-o", "json")...)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

// show returns what "headgate network show" prints.
func (c *control) show(ctx context.Context) (api.Network, error) {
	return ask[api.Network](ctx, c, "network", "show")
}

// usage is the processor time in seconds of a controller and its etcd.
func (c *control) usage() (sum float64) {
	for _, pid := range bench.Family(c.cmd.Process.Pid) {
		sum += bench.Ran(pid).Seconds()
	}
	return sum
}

// cores returns the processors that a controller and its etcd use while do runs.
func (c *control) cores(do func() error) (float64, error) {
	before, began := c.usage(), time.Now()
	err := do()
	return (c.usage() - before) / time.Since(began).Seconds(), err
}

func (p *place) close() (err error) {
	if p == nil {
		return nil
	}
	for _, c := range p.controllers {
		err = errors.Join(err, c.stop(syscall.SIGTERM))
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// executable returns the path of this program.
var executable = os.Executable
