// Package controllers runs controllers as processes for benches: "headgate controller" with its own store, and the commands of a user who is
// logged in at each.
package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/lab"
)

// Place is the controllers of a network, in nodes of a lab.
type Place struct {
	// Dir is removed when the place is closed.
	Dir string
	// Pin is that of the certificate of the API.
	Pin         string
	token       string // the file of an operator's token
	file        string // of the controllers; "" for one
	args        []string
	Controllers []*Controller
	agents      []*agent
}

// Seat is where a controller runs.
type Seat struct {
	Name string
	// Address is of its API.
	Address string
	// Do calls a function in its namespace.
	Do func(func() error) error
}

// Alone is the seat of the only controller of a network, in a node.
func Alone(n *lab.Node) Seat { return Seat{n.Name, "127.0.0.1", n.Do} }

// Controller is a controller, which may be running.
type Controller struct {
	Seat
	dir   string
	place *Place

	cmd  *exec.Cmd
	said *bench.Tail
	gone chan struct{}
}

const (
	// OpenFlowPort is where controllers accept switches.
	OpenFlowPort = "6653"
	apiPort      = "8420"
	// keptOutput is how many bytes of a process's output are kept.
	keptOutput = 1 << 20
	// startPatience is the time limit for controllers to start on a busy machine.
	startPatience = 60 * time.Second
)

// AcceptSwitches are the arguments of a controller that accepts any switch.
var AcceptSwitches = []string{"--openflow", "0.0.0.0:" + OpenFlowPort}

// Start starts a controller with further arguments at each seat, and logs in at all of them.
func Start(ctx context.Context, args []string, seats ...Seat) (_ *Place, err error) {
	p := &Place{args: args}
	if p.Dir, err = os.MkdirTemp("", "headgate-controllers-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	var members []string
	for _, at := range seats {
		p.Controllers = append(p.Controllers, &Controller{Seat: at, dir: filepath.Join(p.Dir, at.Name), place: p})
		members = append(members, fmt.Sprintf("  - {name: %s, address: %s}", at.Name, at.Address))
	}
	if len(seats) > 1 {
		p.file = filepath.Join(p.Dir, "controllers.yaml")
		if err := os.WriteFile(p.file, []byte("kind: Controllers\nmembers:\n"+strings.Join(members, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
		if _, err := p.Controllers[0].Headgate(ctx, "controller", "prepare", "-f", p.file, "--to", p.Dir); err != nil {
			return nil, err
		}
	}
	for _, c := range p.Controllers {
		if err := c.Start(); err != nil {
			return nil, err
		}
	}
	return p, p.Login(ctx)
}

// Start starts the controller, and does not wait until it serves.
func (c *Controller) Start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"controller", "--data", c.dir, "--name", c.Name}
	args = append(args, c.place.args...)
	if c.place.file != "" {
		args = append(args, "-f", c.place.file)
	}
	c.cmd, c.said, c.gone = exec.Command(self, args...), &bench.Tail{Keep: keptOutput}, make(chan struct{})
	c.cmd.Stderr = c.said
	if err := c.Do(c.cmd.Start); err != nil {
		c.cmd = nil
		return err
	}
	go func(cmd *exec.Cmd, gone chan struct{}) {
		_ = cmd.Wait()
		close(gone)
	}(c.cmd, c.gone)
	return nil
}

// Stop sends a signal to the controller, if it runs, and waits until it has exited.
func (c *Controller) Stop(signal syscall.Signal) error {
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
		return fmt.Errorf("controller %s does not exit: %s", c.Name, bench.LastLines(c.said.String()))
	}
}

// Running reports whether the controller was started and not stopped.
func (c *Controller) Running() bool { return c.cmd != nil }

// Client returns a client of the controller's API, as its operator. Its connections stay open.
func (c *Controller) Client() (*api.Client, error) {
	secret, err := os.ReadFile(c.place.token)
	if err != nil {
		return nil, err
	}
	bearer := "Bearer " + strings.TrimSpace(string(secret))
	transport := &http.Transport{
		TLSClientConfig: pki.Pinned(c.Address, c.place.Pin), ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 100,
		DialContext: func(_ context.Context, network, to string) (conn net.Conn, err error) {
			err = c.Do(func() (err error) {
				conn, err = net.DialTimeout(network, to, 5*time.Second)
				return err
			})
			return conn, err
		},
	}
	return api.NewClient("https://"+net.JoinHostPort(c.Address, apiPort), api.WithHTTPClient(&http.Client{Timeout: 30 * time.Second, Transport: transport}),
		api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", bearer)
			return nil
		}))
}

// Process is that of a running controller.
func (c *Controller) Process() *os.Process { return c.cmd.Process }

// Login waits until all controllers serve, and logs in.
func (p *Place) Login(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		err := p.tryLogin(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the controllers do not serve: %w: %s", err, bench.LastLines(p.Controllers[0].said.String()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *Place) tryLogin(ctx context.Context) error {
	pin, token := "", ""
	for _, c := range p.Controllers {
		if c.cmd == nil {
			continue
		}
		select {
		case <-c.gone:
			return fmt.Errorf("controller %s has exited: %s", c.Name, bench.LastLines(c.said.String()))
		default:
		}
		_, after, ok := strings.Cut(c.said.String(), "certificate pin ")
		if !ok {
			return fmt.Errorf("controller %s is not ready", c.Name)
		}
		pin, _, _ = strings.Cut(after, "\n")
		if file := filepath.Join(c.dir, "operator.token"); exists(file) {
			token = file
		}
	}
	if token == "" {
		return errors.New("there is no operator token")
	}
	p.Pin, p.token = strings.TrimSpace(pin), token
	for _, c := range p.Controllers {
		if c.cmd == nil {
			continue
		}
		if _, err := c.Headgate(ctx, "login", "https://"+netip.MustParseAddr(c.Address).String()+":"+apiPort, "--pin", p.Pin, "--token-file", token); err != nil {
			return err
		}
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Command is one of this program's commands as a user who is logged in at the controller runs it. Seat.Do starts it in the controller's node.
func (c *Controller) Command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(c.place.Dir, "login-"+c.Name))
	return cmd, nil
}

// Headgate runs a Command in the controller's node, and returns its output.
func (c *Controller) Headgate(ctx context.Context, args ...string) ([]byte, error) {
	cmd, err := c.Command(ctx, args...)
	if err != nil {
		return nil, err
	}
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := c.Do(cmd.Start); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("headgate %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(problems.Bytes()))
	}
	return out.Bytes(), nil
}

// Ask runs a command with -o json at a controller, and decodes its output.
func Ask[T any](ctx context.Context, c *Controller, args ...string) (out T, err error) {
	text, err := c.Headgate(ctx, append(args, "-o", "json")...)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

// Show returns what "headgate network show" prints.
func (c *Controller) Show(ctx context.Context) (api.Network, error) {
	return Ask[api.Network](ctx, c, "network", "show")
}

// Usage is the processor time in seconds of a controller and its etcd.
func (c *Controller) Usage() (sum float64) {
	for _, pid := range bench.Family(c.cmd.Process.Pid) {
		sum += bench.Ran(pid).Seconds()
	}
	return sum
}

// Cores returns the processors that a controller and its etcd use while do runs.
func (c *Controller) Cores(do func() error) (float64, error) {
	before, began := c.Usage(), time.Now()
	err := do()
	return (c.Usage() - before) / time.Since(began).Seconds(), err
}

// Close stops the agents and the controllers, and removes their data.
func (p *Place) Close() (err error) {
	if p == nil {
		return nil
	}
	err = p.stopAgents()
	for _, c := range p.Controllers {
		err = errors.Join(err, c.Stop(syscall.SIGTERM))
	}
	return errors.Join(err, os.RemoveAll(p.Dir))
}
