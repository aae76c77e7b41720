package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/lab"
)

// place is a network with controllers, and nodes for clients:
//
//	caller ──┐
//	host ────┼── router ── c1, c2, c3
//
// host is a node for an enforcing agent.
type place struct {
	dir string
	// hosts has agents' folders, in memory: real agents have their own disks, and 2,000 that write the
	// desired state to the disk of the controllers delayed etcd's writes by 200 ms.
	hosts       string
	lab         *lab.Lab
	caller      *lab.Node
	file        string // of the controllers; "" for one
	controllers []*control
	token, pin  string

	mu     sync.Mutex
	shares map[string]*asking // by controller
}

// control is a controller, which may be running.
type control struct {
	name, address, dir string
	node               *lab.Node
	place              *place
	clock              *clock // nil is the machine's
	mounted            bool   // its folder

	cmd  *lab.Cmd
	said *bench.Tail
	gone chan struct{}
}

// inMemory is where every Linux has a tmpfs.
const inMemory = "/dev/shm"

const (
	// keptOutput is how many bytes of a process's output are kept.
	keptOutput  = 4000
	apiPort     = "8420"
	metricsPort = "9421"
	// startPatience is the time limit for controllers to start on a busy machine.
	startPatience = 60 * time.Second
)

// build creates a network with running controllers.
func build(ctx context.Context, n int) (*place, error) { return setting{}.build(ctx, n) }

// setting has the special properties of a place.
type setting struct {
	// exact links have no offload: each captured frame is one on the wire.
	exact bool
	// clocks: each controller has its own clock.
	clocks bool
	// ahead is by how much it is ahead at the start.
	ahead time.Duration
	// unready: build does not wait until the controllers serve.
	unready bool
	// disk is the size of each controller's disk, in bytes; 0 is the machine's disk.
	disk int
}

func (s setting) build(ctx context.Context, n int) (_ *place, err error) {
	dir, err := os.MkdirTemp("", "headgate-service-")
	if err != nil {
		return nil, err
	}
	hosts, err := os.MkdirTemp(inMemory, "headgate-service-")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p := &place{dir: dir, hosts: hosts}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	t := &lab.Topology{Name: lab.UniqueName("bench"), Nodes: []lab.NodeSpec{{Name: "router", Router: true}, {Name: "caller"}, {Name: "host"}}}
	names := []string{"caller", "host"}
	for i := range n {
		name := fmt.Sprint("c", i+1)
		names = append(names, name)
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: name})
	}
	for _, name := range names {
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{name, "router"}, NoOffload: s.exact})
	}
	if p.lab, err = lab.Up(ctx, t); err != nil {
		return nil, err
	}
	p.caller = p.lab.Node("caller")
	if s.clocks {
		if err := asksTheKernel(p.program()); err != nil {
			return nil, err
		}
	}
	var members []string
	for _, name := range names[2:] {
		node := p.lab.Node(name)
		a, err := node.Addr(false)
		if err != nil {
			return nil, err
		}
		c := &control{name: name, address: a.String(), dir: filepath.Join(dir, name), node: node, place: p}
		p.controllers = append(p.controllers, c)
		if s.clocks {
			c.clock = &clock{}
			c.clock.set(s.ahead)
		}
		if s.disk > 0 {
			if err := c.mount(s.disk); err != nil {
				return nil, err
			}
		}
		members = append(members, fmt.Sprintf("  - {name: %s, address: %s}", name, a))
	}
	if n > 1 {
		p.file = filepath.Join(dir, "controllers.yaml")
		if err := os.WriteFile(p.file, []byte("kind: Controllers\nmembers:\n"+strings.Join(members, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
		if err := p.run(p.caller, "controller", "prepare", "-f", p.file, "--to", dir); err != nil {
			return nil, err
		}
	}
	for _, c := range p.controllers {
		if err := c.start(ctx); err != nil {
			return nil, err
		}
	}
	if s.unready {
		return p, nil
	}
	return p, p.ready(ctx)
}

// program is a copy of this one that reads the time by system calls.
func (p *place) program() string { return filepath.Join(p.dir, "headgate") }

// run runs one of this program's commands to its end.
func (p *place) run(node *lab.Node, args ...string) error {
	c, err := command(context.Background(), node, args...)
	if err != nil {
		return err
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("headgate %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func command(ctx context.Context, node *lab.Node, args ...string) (*lab.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return node.Command(ctx, self, args...), nil
}

func (p *place) close() (err error) {
	for _, c := range p.controllers {
		err = errors.Join(err, c.stop(syscall.SIGTERM), c.unmount())
	}
	if p.lab != nil {
		err = errors.Join(err, p.lab.Close())
	}
	return errors.Join(err, os.RemoveAll(p.dir), os.RemoveAll(p.hosts))
}

// start starts the controller, and does not wait until it serves.
func (c *control) start(ctx context.Context) (err error) {
	args := []string{"controller", "--data", c.dir, "--name", c.name, "--listen", c.address, "--metrics", net.JoinHostPort(c.address, metricsPort), "--log-level", "warn"}
	if c.place.file != "" {
		args = append(args, "-f", c.place.file)
	}
	if c.cmd, err = command(context.WithoutCancel(ctx), c.node, args...); err != nil {
		return err
	}
	c.said, c.gone = &bench.Tail{Keep: keptOutput}, make(chan struct{})
	c.cmd.Stderr = c.said
	start := c.cmd.Start
	if c.clock != nil {
		c.cmd.Path = c.place.program()
		start = func() error { return c.clock.keeping(c.cmd.Start) }
	}
	if err := start(); err != nil {
		c.cmd = nil
		return err
	}
	go func(cmd *lab.Cmd, gone chan struct{}) {
		_ = cmd.Wait()
		close(gone)
	}(c.cmd, c.gone)
	return nil
}

// stop stops the controller, if it runs, and waits until it has exited.
func (c *control) stop(signal syscall.Signal) error {
	if c.cmd == nil {
		return nil
	}
	_ = c.cmd.Process.Signal(signal)
	select {
	case <-c.gone:
		c.cmd = nil
		return nil
	case <-time.After(20 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.gone
		c.cmd = nil
		return fmt.Errorf("controller %s does not exit: %s", c.name, c.said)
	}
}

// ready waits until all controllers answer, and reads the first token and the pin.
func (p *place) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for _, c := range p.controllers {
		for p.pin == "" || p.token == "" || c.health(ctx) != nil {
			if _, after, ok := strings.Cut(c.said.String(), "certificate pin "); ok {
				p.pin, _, _ = strings.Cut(after, "\n")
			}
			for _, any := range p.controllers {
				if text, err := os.ReadFile(filepath.Join(any.dir, "operator.token")); err == nil {
					p.token = strings.TrimSpace(string(text))
				}
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("controller %s does not serve: %s", c.name, c.said)
			case <-c.gone:
				return fmt.Errorf("controller %s has exited: %s", c.name, c.said)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// health checks a controller's health.
func (c *control) health(ctx context.Context) error {
	if c.place.pin == "" {
		return errors.New("the certificate pin is unknown")
	}
	a := c.place.ask(c)
	defer a.client.CloseIdleConnections()
	status, text, err := a.do(ctx, http.MethodGet, "/v1/health", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d %s", status, text)
	}
	return err
}

// dial returns a dial function for a node's namespace.
func dial(node *lab.Node) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (c net.Conn, err error) {
		var d net.Dialer
		err = node.Do(func() (err error) { c, err = d.DialContext(ctx, network, address); return err })
		return c, err
	}
}

// leader waits for a controller that is the leader.
func (p *place) leader(ctx context.Context) (*control, error) {
	for until := time.Now().Add(startPatience); ; time.Sleep(50 * time.Millisecond) {
		if all := leading(ctx, p.controllers); len(all) > 0 {
			return all[0], nil
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return nil, errors.New("no controller is the leader")
		}
	}
}

// leading returns the running controllers that are the leader, by their metrics. All are read in
// parallel, because a stopped one does not answer.
func leading(ctx context.Context, of []*control) (all []*control) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	leads := make([]bool, len(of))
	var asked sync.WaitGroup
	for i, c := range of {
		if c.cmd == nil {
			continue
		}
		asked.Go(func() {
			v, err := c.metric(ctx, "headgate_controller_leader")
			leads[i] = err == nil && v == 1
		})
	}
	asked.Wait()
	for i, c := range of {
		if leads[i] {
			all = append(all, c)
		}
	}
	return all
}

// join registers a host: it creates its agent's folder, with a certificate.
func (p *place) join(ctx context.Context, a *asking, host string) (dir string, err error) {
	dir = filepath.Join(p.hosts, host)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	token, err := a.tokenOf(ctx, map[string]any{"name": "join", "role": "agent", "host": host})
	if err != nil {
		return "", err
	}
	return dir, remote.Join(ctx, dir, remote.Controller{URL: a.url, Host: host, Token: token, Pin: p.pin, Dial: dial(p.caller)})
}

// pinned returns an HTTP transport that verifies the service by its pin.
func (p *place) pinned(address string) *http.Transport {
	return &http.Transport{TLSClientConfig: pki.Pinned(address, p.pin), DialContext: dial(p.caller), ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 100}
}
