package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/agent"
	"headgate.dev/headgate/rollout"
)

func TestAgentExitCodes(t *testing.T) {
	w := newWorld(t)
	bad := w.write("bad.yaml", "kind: Interface\ndev: eth0\nout: {limit: 1000}\n")
	for _, c := range []struct{ args, stderr string }{
		{"agent", "configuration is missing"},
		{"agent -f -", "cannot reload standard input"},
		{"agent -f /no/such/file", "cannot read file"},
		{"agent -f " + bad, "bad.yaml:3: out.limit"},
		{"agent --log-level loud -f " + bad, "debug, info, warn or error"},
	} {
		if r := w.run(strings.Fields(c.args)...); r.code != exitUsage || !strings.Contains(r.err, c.stderr) {
			t.Errorf("headgate %s: exit %d, want %d with %q\n%s", c.args, r.code, exitUsage, c.stderr, r.err)
		}
	}
}

// A directory without configuration files is an error, except on a host that has joined a service: there
// the systemd unit's reload must succeed.
func TestNoFilesIfJoined(t *testing.T) {
	w := newWorld(t)
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"check --offline", "agent --dir " + w.dir} {
		if r := w.run(append(strings.Fields(verb), "-f", empty)...); r.code != exitUsage || !strings.Contains(r.err, "no *.yaml") {
			t.Errorf("headgate %s: exit %d, %s", verb, r.code, r.err)
		}
	}
	w.write("state/agent/identity.json", "{}")
	if r := w.run("check", "--offline", "-f", empty); r.code != exitOK || !strings.Contains(r.err, "the controller configures") {
		t.Errorf("on a joined host: exit %d, %s", r.code, r.err)
	}
	bad := filepath.Join(empty, "bad.yaml")
	if err := os.WriteFile(bad, []byte("kind: None\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, files := range []string{empty, bad, filepath.Join(empty, "none")} {
		if r := w.run("check", "--offline", "-f", files); r.code != exitUsage {
			t.Errorf("with %s: exit %d, %s", files, r.code, r.err)
		}
	}
}

// A command that changes a device of a running agent warns about it.
func TestManualChangeWarning(t *testing.T) {
	w := newWorld(t)
	var out, said bytes.Buffer
	a := fakeApp(w.dir)
	a.err = &out
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		root := a.root()
		root.SetArgs([]string{"agent", "-f", w.config("lo", "1Gbit"), "--dir", t.TempDir(), "--socket", ""})
		ended <- root.ExecuteContext(ctx)
	}()
	// Count attempts, not seconds: the test machine was seen to stall for 14 s.
	for looks := 0; ; looks++ {
		if _, _, ok := agent.Owner(a.state, "lo"); ok {
			break
		}
		if looks > 5_000 {
			t.Fatal("the agent did not claim its device")
		}
		time.Sleep(time.Millisecond)
	}
	other := fakeApp(w.dir)
	other.err = &said
	other.local().NoteOwner(rollout.ClearUndoneByAgent, "eth0", "lo")
	if text := said.String(); !strings.Contains(text, "warning: the agent owns lo (process") || strings.Contains(text, "eth0") {
		t.Errorf("warning: %q", text)
	}
	if r := w.run("agent", "-f", w.config("lo", "1Gbit")); r.code != exitFailed || !strings.Contains(r.err, "another agent is running") {
		t.Errorf("a second agent: exit %d\n%s", r.code, r.err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopping the agent: %v", err)
	}
	said.Reset()
	other.local().NoteOwner(rollout.ApplyUndoneAtReload, "lo")
	if said.Len() > 0 {
		t.Errorf("warning about a stopped agent: %s", said.String())
	}
}
