package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/store/storetest"
)

// runSelf runs this program with args and waits for its end.
func runSelf(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), selfEnv+"=1")
	text, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), c.ProcessState.ExitCode()
}

// Unusable addresses of controllers are rejected with a remedy.
func TestControllerAddresses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	three := func(address string) string {
		return "kind: Controllers\nmembers:\n  - {name: c1, address: 10.0.0.1}\n  - {name: c2, address: 10.0.0.2}\n  - {name: c3, address: \"" + address + "\"}\n"
	}
	named, all, fine := file("named.yaml", three("c3.example.org")), file("all.yaml", three("::")), file("fine.yaml", three("10.0.0.3"))
	data := filepath.Join(dir, "data")
	for _, c := range []struct {
		want string
		args []string
		code int
	}{
		{"set --certificate-for", []string{"controller", "--data", data, "--listen", "0.0.0.0"}, exitUsage},
		{"set --certificate-for", []string{"controller", "--data", data, "--listen", "::"}, exitUsage},
		{"set one such as 10.0.0.1", []string{"controller", "--data", data, "--listen", "ctl.example.org"}, exitUsage},
		{"c3.example.org", []string{"controller", "--data", data, "-f", named}, exitUsage},
		{"the address of c3", []string{"controller", "--data", data, "-f", all}, exitUsage},
		{"the address of c3", []string{"controller", "prepare", "-f", all, "--to", data}, exitUsage},
		{"headgate controller prepare -f " + fine, []string{"controller", "--data", data, "-f", fine}, exitFailed},
		{"headgate controller prepare -f " + fine, []string{"controller", "restore", fine, "--data", filepath.Join(dir, "new"), "-f", fine, "--name", "c2"}, exitFailed},
	} {
		if out, code := runSelf(t, c.args...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("headgate %s: %d %s, want %q", strings.Join(c.args, " "), code, out, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory exists: %v", err)
	}
}

// A controller that listens on all addresses is reachable at each, and announces the names of
// --certificate-for to agents. Its backup needs only its data directory.
func TestControllerEverywhere(t *testing.T) {
	dir := t.TempDir()
	ports := storetest.Ports(t, 4)
	file, data := filepath.Join(dir, "controllers.yaml"), filepath.Join(dir, "data")
	if err := os.WriteFile(file, fmt.Appendf(nil, "kind: Controllers\napi: %d\nagents: %d\nstore: %d\npeers: %d\nmembers:\n  - {name: c1, address: \"::\"}\n", ports[0], ports[1], ports[2], ports[3]), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "controller", "-f", file, "--data", data, "--certificate-for", "localhost,ctl.example.org")
	c.Env = append(os.Environ(), selfEnv+"=1")
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	var said syncBuffer
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Cancel()
	pin := ""
	for deadline := time.Now().Add(30 * time.Second); pin == ""; time.Sleep(50 * time.Millisecond) {
		if _, after, ok := strings.Cut(said.String(), "certificate pin "); ok && strings.Contains(after, "\n") {
			pin = after[:strings.IndexByte(after, '\n')]
		}
		if time.Now().After(deadline) {
			t.Fatalf("the controller did not start: %s", said.String())
		}
	}
	if want := fmt.Sprintf("headgate login https://localhost:%d", ports[0]); !strings.Contains(said.String(), want) {
		t.Errorf("notes: %s, want %s", said.String(), want)
	}
	for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
		conn, err := tls.Dial("tcp", net.JoinHostPort(host, fmt.Sprint(ports[0])), pki.Pinned(host, pin))
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		conn.Close()
	}
	url := fmt.Sprintf("https://127.0.0.1:%d", ports[0])
	t.Setenv("XDG_CONFIG_HOME", dir)
	token := filepath.Join(dir, "join.token")
	for _, args := range [][]string{
		{"login", url, "--pin", pin, "--token-file", filepath.Join(data, "operator.token")},
		{"host", "create", "h1", "--server", "default"},
	} {
		if out, code := runSelf(t, args...); code != 0 {
			t.Fatalf("headgate %s: %s", strings.Join(args, " "), out)
		}
	}
	out, code := runSelf(t, "token", "create", "join", "--role", "agent", "--host", "h1", "--server", "default")
	if err := os.WriteFile(token, []byte(out), 0o600); err != nil || code != 0 {
		t.Fatal(out, err)
	}
	if out, code := runSelf(t, "agent", "join", url, "--host", "h1", "--token-file", token, "--pin", pin, "--dir", filepath.Join(dir, "agent")); code != 0 {
		t.Fatal(out)
	}
	id, err := remote.ReadIdentity(filepath.Join(dir, "agent"))
	if want := fmt.Sprintf("[localhost:%d ctl.example.org:%[1]d]", ports[1]); err != nil || fmt.Sprint(id.Agents) != want {
		t.Errorf("announced addresses: %v, want %s: %v", id.Agents, want, err)
	}
	if out, code := runSelf(t, "controller", "backup", "--data", data, filepath.Join(dir, "backup")); code != 0 {
		t.Errorf("backup: %s", out)
	}
}
