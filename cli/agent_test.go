package cli

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/agent"
)

func TestAgentExitCodes(t *testing.T) {
	w := newWorld(t)
	bad := w.write("bad.yaml", "kind: Interface\ndev: eth0\nout: {limit: 1000}\n")
	for _, c := range []struct{ args, stderr string }{
		{"agent", "write -f"},
		{"agent -f -", "standard input cannot be read again"},
		{"agent -f /no/such/file", "the file cannot be read"},
		{"agent -f " + bad, "bad.yaml:3: out.limit"},
		{"agent --log-level loud -f " + bad, "debug, info, warn or error"},
	} {
		if r := w.run(strings.Fields(c.args)...); r.code != wrong || !strings.Contains(r.err, c.stderr) {
			t.Errorf("headgate %s: exit %d, want %d with %q\n%s", c.args, r.code, wrong, c.stderr, r.err)
		}
	}
}

// A folder without files is a mistake, but on a host that has joined a service: there the unit's
// reload goes on.
func TestNoFilesIfJoined(t *testing.T) {
	w := newWorld(t)
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"check --offline", "agent --dir " + w.dir} {
		if r := w.run(append(strings.Fields(verb), "-f", empty)...); r.code != wrong || !strings.Contains(r.err, "no *.yaml") {
			t.Errorf("headgate %s: exit %d, %s", verb, r.code, r.err)
		}
	}
	w.write("state/agent/identity.json", "{}")
	if r := w.run("check", "--offline", "-f", empty); r.code != done || !strings.Contains(r.err, "the service's to say") {
		t.Errorf("where the host has joined: exit %d, %s", r.code, r.err)
	}
	bad := filepath.Join(empty, "bad.yaml")
	if err := os.WriteFile(bad, []byte("kind: None\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, files := range []string{empty, bad, filepath.Join(empty, "none")} {
		if r := w.run("check", "--offline", "-f", files); r.code != wrong {
			t.Errorf("with %s: exit %d, %s", files, r.code, r.err)
		}
	}
}

// Whoever changes a device by hand hears whose it is.
func TestWarnsOfAgent(t *testing.T) {
	w := newWorld(t)
	var out, said bytes.Buffer
	a := fakeApp(w.dir)
	a.err = &out
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- a.agent(ctx, []string{w.config("lo", "1Gbit")}, "", "", agentSocket{}, slog.LevelInfo)
	}()
	// Looks are counted, not seconds: this machine was seen to stand still for 14.
	for looks := 0; ; looks++ {
		if _, _, ok := agent.Owner(a.state, "lo"); ok {
			break
		}
		if looks > 5_000 {
			t.Fatal("the agent does not claim its device")
		}
		time.Sleep(time.Millisecond)
	}
	other := fakeApp(w.dir)
	other.err = &said
	other.warnAgent(clearedByHand, "eth0", "lo")
	if text := said.String(); !strings.Contains(text, "warning: lo is the agent's (process") || strings.Contains(text, "eth0") {
		t.Errorf("the warning is %q", text)
	}
	if r := w.run("agent", "-f", w.config("lo", "1Gbit")); r.code != failed || !strings.Contains(r.err, "an agent runs already") {
		t.Errorf("a second agent: exit %d\n%s", r.code, r.err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("told to stop, the agent ended with %v", err)
	}
	said.Reset()
	other.warnAgent(appliedByHand, "lo")
	if said.Len() > 0 {
		t.Errorf("a warning of an agent that is gone: %s", said.String())
	}
}
