package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
)

// agent is the agent of a host, "headgate agent".
type agent struct {
	cmd  *lab.Cmd
	said *bench.Tail
}

// Join lets a node join the service of the first controller, whose address it reaches, as a host with the name of the node, and starts its agent, which Close
// stops.
func (p *Place) Join(ctx context.Context, n *lab.Node, at netip.Addr) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := p.Controllers[0]
	if _, err := c.Headgate(ctx, "host", "create", n.Name); err != nil {
		return err
	}
	token, err := c.Headgate(ctx, "token", "create", n.Name, "--role", "agent", "--host", n.Name)
	if err != nil {
		return err
	}
	secret, dir := filepath.Join(p.Dir, n.Name+".token"), filepath.Join(p.Dir, "agent-"+n.Name)
	if err := os.WriteFile(secret, token, 0o600); err != nil {
		return err
	}
	join := n.Command(ctx, self, "agent", "join", "https://"+at.String()+":"+apiPort, "--host", n.Name, "--token-file", secret, "--pin", p.Pin, "--dir", dir)
	if out, err := join.CombinedOutput(); err != nil {
		return fmt.Errorf("agent join at %s: %w: %s", n.Name, err, out)
	}
	a := &agent{n.Command(context.Background(), self, "agent", "--dir", dir, "--socket", filepath.Join(p.Dir, n.Name+".sock")), &bench.Tail{Keep: 1 << 16}}
	a.cmd.Stderr = a.said
	if err := a.cmd.Start(); err != nil {
		return err
	}
	p.agents = append(p.agents, a)
	return nil
}

// stopAgents stops all agents at the same time.
func (p *Place) stopAgents() error {
	errs := make([]error, len(p.agents))
	var all sync.WaitGroup
	for i, a := range p.agents {
		all.Go(func() {
			if err := Terminate(a.cmd); err != nil {
				errs[i] = fmt.Errorf("agent: %w: %s", err, bench.LastLines(a.said.String()))
			}
		})
	}
	all.Wait()
	p.agents = nil
	return errors.Join(errs...)
}

// Terminate ends a process, by force if it takes more than 10 s, and returns the error of its exit.
func Terminate(c *lab.Cmd) error {
	_ = c.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(10*time.Second, func() { _ = c.Process.Kill() })
	defer kill.Stop()
	return c.Wait()
}
