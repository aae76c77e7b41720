package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/bench"
)

func restoreCases() []bench.Case {
	return []bench.Case{{
		Name: "restore", Run: restored, Takes: bench.Takes(20*time.Second, 30*time.Second), Alongside: smoke("bounds"),
		Claims: []bench.Claim{
			bench.NewClaim("restore/revoked", "of a token and a host that were revoked after the backup, those that the restored service accepts, before an operator has confirmed the restore and after, when it has named both", violations),
			bench.NewClaim("restore/confirmed", "of a token and a host that were not revoked, those that it refuses after the confirmation", violations),
			bench.NewClaim("restore/ahead", "until an agent that was ahead of the service has its desired state, from the one command that takes it back", back),
		},
	}}
}

// restored backs a service up, revokes, restores it, and takes an agent back, by the commands that an operator types.
func restored(ctx context.Context, r *bench.Run) (err error) {
	p, err := build(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	c, operator := p.controllers[0], p.ask(p.controllers[0])
	a, b, err := p.twoSides(ctx, "h1")
	if err != nil {
		return err
	}
	if _, err := operator.must(ctx, http.MethodPut, "/v1/hosts/h2", map[string]any{}); err != nil {
		return err
	}
	dirs := map[string]string{}
	for _, host := range []string{"h1", "h2"} {
		if dirs[host], err = p.join(ctx, operator, host); err != nil {
			return err
		}
	}
	file := filepath.Join(p.dir, "backup")
	if err := p.run(c.node, "controller", "backup", file, "--data", c.dir); err != nil {
		return err
	}
	var tokens struct{ Items []struct{ ID, Tenant string } }
	text, err := operator.must(ctx, http.MethodGet, "/v1/tokens", nil)
	if err == nil {
		err = json.Unmarshal(text, &tokens)
	}
	if err != nil {
		return err
	}
	id := ""
	for _, t := range tokens.Items {
		if t.Tenant == "a" {
			id = t.ID
		}
	}
	if _, err := operator.must(ctx, http.MethodDelete, "/v1/tokens/"+id, nil); err != nil {
		return err
	}
	if _, err := operator.must(ctx, http.MethodPut, "/v1/hosts/h1", map[string]any{"revoked": true}); err != nil {
		return err
	}
	if err := c.stop(syscall.SIGTERM); err != nil {
		return err
	}
	c.dir = filepath.Join(p.dir, "restored")
	if err := p.run(c.node, "controller", "restore", file, "--data", c.dir); err != nil {
		return err
	}
	old := p.token
	p.token = ""
	if err := c.start(ctx); err != nil {
		return err
	}
	if err := p.ready(ctx); err != nil {
		return err
	}
	if p.token == old {
		return errors.New("the restored service has no token of its own")
	}
	accepted, refused := 0.0, 0.0
	look := func(of *asking, dir string) (token, host bool, err error) {
		status, _, err := of.do(ctx, http.MethodGet, "/v1/session", nil)
		if err != nil {
			return false, false, err
		}
		host, err = p.accepts(ctx, dir)
		return status == http.StatusOK, host, err
	}
	count := func(to *float64, token, host bool) {
		for _, is := range []bool{token, host} {
			if is {
				*to++
			}
		}
	}
	token, host, err := look(a, dirs["h1"])
	if err != nil {
		return err
	}
	count(&accepted, token, host)
	// The operator logs in with the new token, and confirms.
	config := filepath.Join(p.dir, "config")
	run := func(args ...string) (string, error) {
		cmd, err := command(ctx, p.caller, args...)
		if err != nil {
			return "", err
		}
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+config)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("headgate %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return string(out), err
	}
	if _, err := run("login", "https://"+c.address+":"+apiPort, "--pin", p.pin, "--token-file", filepath.Join(c.dir, "operator.token")); err != nil {
		return err
	}
	if _, err := run("controller", "confirm-restore", "--revoke-token", id, "--revoke-host", "h1", "--yes"); err != nil {
		return err
	}
	if err := bench.Sleep(ctx, time.Second); err != nil { // until the controller has read it
		return err
	}
	if token, host, err = look(a, dirs["h1"]); err != nil {
		return err
	}
	count(&accepted, token, host)
	if token, host, err = look(b, dirs["h2"]); err != nil {
		return err
	}
	count(&refused, !token, !host)
	sheet := r.Sheet(bench.Ours)
	sheet.Set("restore/revoked", accepted)
	sheet.Set("restore/confirmed", refused)
	took, err := p.takenBack(ctx, dirs["h2"], func() error { _, err := run("controller", "take-back"); return err })
	if err != nil {
		return err
	}
	sheet.Set("restore/ahead", took.Seconds())
	return nil
}

// accepts reports whether a controller accepts the agent of an identity within 3 s.
func (p *place) accepts(ctx context.Context, dir string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	intent, err := remote.OpenIntent(dir)
	if err != nil {
		return false, err
	}
	l := p.still(dir, intent)
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	for ctx.Err() == nil {
		if _, n := p.streams(ctx); n > 0 {
			cancel()
			return true, <-done
		}
		_ = bench.Sleep(ctx, 50*time.Millisecond)
	}
	return false, <-done
}

// still is an agent's link that has nothing to report.
func (p *place) still(dir string, intent *remote.DesiredState) *remote.Link {
	l := remote.NewLink(dir, "bench", intent)
	l.Dial, l.Changed = dial(p.caller), func() {}
	l.Facts = func() *agents.Facts { return &agents.Facts{} }
	l.Report = func() *agents.Report { return nil }
	return l
}

// takenBack has an agent with a later desired state than the service's connect, and returns how long the command that takes it back takes until the agent has
// the service's state.
func (p *place) takenBack(ctx context.Context, dir string, command func() error) (took time.Duration, err error) {
	intent, err := remote.OpenIntent(dir)
	if err != nil {
		return 0, err
	}
	later := &agents.Fence{Epoch: uint64(time.Now().Add(48 * time.Hour).Unix()), Revision: 1}
	if _, err := intent.Store(&agents.Desired{Fence: later}); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	l := p.still(dir, intent)
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	defer func() { cancel(); err = errors.Join(err, <-done) }()
	operator := p.ask(p.controllers[0])
	for end := time.Now().Add(30 * time.Second); ; {
		text, err := operator.must(ctx, http.MethodGet, "/v1/hosts/h2", nil)
		if err != nil {
			return 0, err
		}
		if strings.Contains(string(text), `"ahead":"`) {
			break
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("after 30 s the agent is not shown as ahead: %s", text)
		}
		if err := bench.Sleep(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	if err := command(); err != nil {
		return 0, err
	}
	for intent.Fence().Epoch <= later.Epoch {
		if time.Since(began) > comeBack {
			return 0, fmt.Errorf("after %v the agent is still ahead", comeBack)
		}
		if err := bench.Sleep(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}
