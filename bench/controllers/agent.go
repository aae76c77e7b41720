package controllers

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
)

// Agent is the agent of a host, "headgate agent".
type Agent struct {
	cmd  *lab.Cmd
	said *bench.Tail
}

// Join lets a node join the service of the first controller, whose address it reaches, as a host with the name of the node, and starts its agent.
func (p *Place) Join(ctx context.Context, n *lab.Node, at netip.Addr) (*Agent, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := p.Controllers[0]
	if _, err := c.Headgate(ctx, "host", "create", n.Name); err != nil {
		return nil, err
	}
	token, err := c.Headgate(ctx, "token", "create", n.Name, "--role", "agent", "--host", n.Name)
	if err != nil {
		return nil, err
	}
	secret, dir := filepath.Join(p.Dir, n.Name+".token"), filepath.Join(p.Dir, "agent-"+n.Name)
	if err := os.WriteFile(secret, token, 0o600); err != nil {
		return nil, err
	}
	join := n.Command(ctx, self, "agent", "join", "https://"+at.String()+":"+apiPort, "--host", n.Name, "--token-file", secret, "--pin", p.Pin, "--dir", dir)
	if out, err := join.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("agent join at %s: %w: %s", n.Name, err, out)
	}
	a := &Agent{n.Command(context.Background(), self, "agent", "--dir", dir, "--socket", filepath.Join(p.Dir, n.Name+".sock")), &bench.Tail{Keep: 1 << 16}}
	a.cmd.Stderr = a.said
	return a, a.cmd.Start()
}

// Said returns the end of what the agent wrote to its log.
func (a *Agent) Said() string { return bench.LastLines(a.said.String()) }

// Stop ends the agent.
func (a *Agent) Stop() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(10*time.Second, func() { _ = a.cmd.Process.Kill() })
	defer kill.Stop()
	if err := a.cmd.Wait(); err != nil {
		return fmt.Errorf("agent: %w: %s", err, a.Said())
	}
	return nil
}
