package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/view"
)

// run runs a command of a logged-in user, and returns output and exit code.
func (s *serviceTest) run(args ...string) (out string, code int) {
	s.t.Helper()
	c := s.command(args...)
	c.Env = append(c.Env, "XDG_CONFIG_HOME="+s.dir)
	text, err := c.CombinedOutput()
	if c.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(text), c.ProcessState.ExitCode()
}

// checkOutput checks a command's exit code, and that the output contains want.
func (s *serviceTest) checkOutput(code int, want string, args ...string) string {
	s.t.Helper()
	out, got := s.run(args...)
	if got != code || !strings.Contains(out, want) {
		s.t.Errorf("headgate %s: %d %s, want %d with %q", strings.Join(args, " "), got, out, code, want)
	}
	return out
}

// credentials logs the first operator in.
func (s *serviceTest) credentials() {
	s.t.Helper()
	s.checkOutput(0, "logged in as first, operator", "login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", filepath.Join(s.dir, "controller", "operator.token"))
}

// onH1 adds the flags for the only host of the service.
func onH1(args ...string) []string { return append(args, "--server", "default", "--host", "h1") }

// Read-only commands with --server do on a host of a service what they do locally: rates of a flow that
// a ceiling limits, the rule of a packet, check of a file, and probe.
func TestServerReadOnlyCommands(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		node := l.Node("server")
		dev, err := node.Device("router")
		if err != nil {
			t.Fatal(err)
		}
		const altname = "another-name-of-the-device"
		labtest.Run(t, node, "ip", "link", "property", "add", "dev", dev, "altname", altname)
		s := serve(t, node, t.TempDir())
		s.credentials()
		file := filepath.Join(s.dir, "groups.yaml")
		write := func(dev, guarantee string) {
			t.Helper()
			text := fmt.Sprintf("kind: Interface\ndev: %s\nout:\n  limit: 40Mbit\n  groups:\n    - {name: web, guarantee: %s, ceiling: 30Mbit, match: [{dport: 5001}]}\n    - {name: rest, default: true}\n", dev, guarantee)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}

		write(altname, "25%")
		if out := s.checkOutput(0, "web", onH1("check", "-f", file)...); strings.Contains(out, "no such device") || !strings.Contains(string(s.must("GET", "/v1/hosts/h1", "")), altname) {
			t.Errorf("check of a device by its alternative name prints %s", out)
		}
		write(dev, "25%")
		s.checkOutput(0, "web", onH1("check", "-f", file)...)
		s.checkOutput(0, "add    out group web", onH1("plan", "-f", file)...) // check changed nothing
		s.checkOutput(0, "nosuch: no such device on host h1", onH1("check", "-f", file, "-f", other(t, s.dir))...)
		s.checkOutput(1, `host "h2" not found`, "check", "-f", file, "--server", "default", "--host", "h2")
		s.checkOutput(2, `headgate rollback`, onH1("apply", "-f", file, "--confirm-within", "60s")...)
		s.checkOutput(1, "the service has no configuration for", onH1("explain", "--packet", "tcp 10.0.0.1:443 10.0.0.2:5001", "--dev", dev)...)
		s.checkOutput(0, "add    out group web", onH1("apply", "-f", file)...)

		s.checkOutput(0, "out: rule 0 (dport 5001): group web", onH1("explain", "--packet", "tcp 10.0.0.1:443 10.0.0.2:5001", "--dev", dev)...)
		s.checkOutput(0, "the desired state of h1", onH1("explain", "--packet", "tcp 10.0.0.1:443 10.0.0.2:5001", "--dev", dev)...)
		s.checkOutput(0, "web    10Mbit     30Mbit   max     30Mbit", onH1("explain", "--demand", "web=max", "--dev", dev)...)
		s.checkOutput(0, "", onH1("assign", "rest", "--dev", dev, "--conn", "tcp 10.0.0.1:443 10.0.0.2:5001")...)
		s.checkOutput(0, "assigned at run time: group rest", onH1("explain", "--packet", "tcp 10.0.0.2:5001 10.0.0.1:443", "--dev", dev)...)
		s.checkOutput(0, "tcp 10.0.0.1:443 10.0.0.2:5001", onH1("show", "assignments")...)

		flow := traffic.Flow{Name: "web", From: "server", To: "client", Protocol: traffic.TCP, DstPort: 5001, Congestion: "cubic", Schedule: traffic.Constant(traffic.Unlimited)}
		f, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{flow}, traffic.Options{Duration: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { f.Stop(); f.Wait() }()
		var out string
		for range 20 {
			out, _ = s.run(onH1("top", "--once", "-o", "json")...)
			var frame view.Frame
			if json.Unmarshal([]byte(out), &frame) != nil || len(frame.Devices) != 1 || len(frame.Devices[0].Directions) != 1 {
				time.Sleep(200 * time.Millisecond) // the agent has not reported yet
				continue
			}
			d := frame.Devices[0].Directions[0]
			web := d.Groups[0]
			if d.Total.Ceiling == 40e6 && web.Guarantee == 10e6 && web.Ceiling == 30e6 && web.Rate > 25e6 && web.Rate < 31e6 && web.Borrowed > 15e6 && web.Backlog > 0 && d.Control.Path == "" {
				out = ""
				break
			}
		}
		if out != "" {
			t.Errorf("top prints %s: %s", out, s.notes.String())
		}
		// While top runs, the agent reports ten times per second.
		began := time.Now()
		lines := s.command(onH1("top", "--interval", "100ms", "--dev", dev)...)
		lines.Env = append(lines.Env, "XDG_CONFIG_HOME="+s.dir)
		text := &syncBuffer{}
		lines.Stdout = text
		if err := lines.Start(); err != nil {
			t.Fatal(err)
		}
		for strings.Count(text.String(), "group=web") < 20 && time.Since(began) < 15*time.Second {
			time.Sleep(20 * time.Millisecond)
		}
		end(lines)
		if n := strings.Count(text.String(), "group=web"); n < 20 || time.Since(began) > 8*time.Second {
			t.Errorf("after %v top has %d lines: %s", time.Since(began), n, text.String())
		}
		s.checkOutput(1, "has no bandwidth groups", onH1("top", "--once", "--dev", "lo")...)
		s.checkOutput(1, `connected host "h2" not found`, "top", "--once", "--server", "default", "--host", "h2")
		f.Stop()

		client := l.Node("client")
		address, err := client.Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		server := newProbed(t, l, "client").command(client, "probe", "serve", "--open")
		heard := &lineWaiter{wanted: "listening for clients", heard: make(chan struct{})}
		server.Stderr = heard
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		defer end(server)
		select {
		case <-heard.heard:
		case <-time.After(10 * time.Second):
			t.Fatal("the probe server is not ready after 10 s")
		}
		s.checkOutput(2, "--bytes cannot be used with --server", onH1("probe", "capacity", address.String(), "--bytes", "1MB")...)
		out = s.checkOutput(0, `"capacity"`, onH1("probe", "capacity", address.String(), "-o", "json")...)
		var r path.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil || r.Directions[probe.In] == nil {
			t.Errorf("the report is %s: %v", out, err)
		}
		s.checkOutput(1, "cannot measure", onH1("probe", "capacity", "127.0.0.1:1")...)
	})
}

// other writes a configuration for a device that does not exist.
func other(t *labtest.Check, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "other.yaml")
	if err := os.WriteFile(file, []byte("kind: Interface\ndev: nosuch\nout: {limit: 1Mbit, groups: [{name: all, default: true}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Commands create, change and delete resources of a service, print the audit log, and roll back. A tenant
// may do only what its token permits.
func TestServerResources(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit})
		node := l.Node("server")
		s := serve(t, node, t.TempDir())
		s.credentials()

		watch := s.command("events", "-o", "json")
		watch.Env = append(watch.Env, "XDG_CONFIG_HOME="+s.dir)
		seen := &syncBuffer{}
		watch.Stdout = seen
		if err := watch.Start(); err != nil {
			t.Fatal(err)
		}
		defer end(watch)

		s.checkOutput(0, "tenant shop: would be created", "tenant", "set", "shop", "--dry-run")
		s.checkOutput(1, `tenant "shop" not found`, "tenant", "show", "shop")
		s.checkOutput(0, "tenant shop: created", "tenant", "create", "shop", "--description", "the web shop", "--requests", "70")
		s.checkOutput(0, "tenant shop: changed", "tenant", "set", "shop", "--requests", "80")
		s.checkOutput(0, "80          the web shop", "tenant", "show", "shop")
		s.checkOutput(0, `"description": "the web shop"`, "tenant", "list", "-o", "json")
		s.checkOutput(2, "requests", "tenant", "set", "shop", "--requests", "-1")
		s.checkOutput(0, "host h2: created", "host", "create", "h2", "--description", "another")
		s.checkOutput(0, "host h2: changed", "host", "set", "h2", "--revoked")
		s.checkOutput(0, "revoked", "host", "show", "h2")
		s.checkOutput(0, "h1    connected", "host", "list")
		s.checkOutput(0, "lo", "host", "show", "h1")
		s.checkOutput(0, "host h2: would be deleted", "host", "delete", "h2", "--dry-run")
		s.checkOutput(0, "h2\n", "__complete", "host", "delete", "")
		s.checkOutput(0, "host h2: deleted", "host", "delete", "h2")
		s.checkOutput(1, `host "h2" not found`, "host", "show", "h2")

		s.must("PUT", "/v1/hosts/h1/interfaces/eth0", `{"out": {"limit": "10Mbit", "groups": [{"name": "shop", "guarantee": "40%", "tenant": "shop", "match": [{"dport": ["873"]}]}, {"name": "rest", "default": true}]}}`)
		s.must("PATCH", "/v1/hosts/h1/interfaces/eth0/out/groups/shop", `{"guarantee": "50%"}`)
		var changes []struct{ Revision int64 }
		if err := json.Unmarshal([]byte(s.checkOutput(0, "PATCH", "history", "--host", "h1", "--dev", "eth0", "-o", "json")), &changes); err != nil || len(changes) != 2 {
			t.Fatalf("changes are %+v, %v", changes, err)
		}
		to := fmt.Sprint(changes[1].Revision)
		s.checkOutput(0, "would be rolled back to revision "+to, "rollback", "--host", "h1", "--dev", "eth0", "--to", to, "--dry-run")
		s.checkOutput(0, "eth0 of h1: rolled back", "rollback", "--host", "h1", "--dev", "eth0", "--to", to)
		if out := string(s.must("GET", "/v1/hosts/h1/interfaces/eth0", "")); !strings.Contains(out, `"40%"`) {
			t.Errorf("after the rollback the interface is %s", out)
		}
		s.checkOutput(2, "--to is not a revision", "rollback", "--host", "h1", "--dev", "eth0", "--to", "0")
		s.checkOutput(1, "the revision does not exist yet", "rollback", "--host", "h1", "--dev", "eth0", "--to", "999999999")
		s.checkOutput(0, "POST /v1/hosts/h1/interfaces/eth0/rollback", "audit", "--limit", "1")
		s.checkOutput(2, "--dev is missing", "history", "--host", "h1")

		// Apply of a file with a tenant's group does not change the tenant's child groups, and plan shows no change.
		s.must("PUT", "/v1/hosts/h1/interfaces/eth0/out/groups/shop%2Fweb", `{"guarantee": "1Mbit"}`)
		leaf := filepath.Join(s.dir, "leaf.yaml")
		if err := os.WriteFile(leaf, []byte("kind: Interface\ndev: eth0\nout: {limit: 10Mbit, groups: [{name: shop, guarantee: 60%, match: [{dport: 873}]}, {name: rest, default: true}]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"plan", "apply"} {
			if out := s.checkOutput(0, "change out group shop", onH1(verb, "-f", leaf)...); strings.Contains(out, "remove") {
				t.Errorf("%s prints %s", verb, out)
			}
		}
		s.must("GET", "/v1/hosts/h1/interfaces/eth0/out/groups/shop%2Fweb", "")
		s.checkOutput(0, "eth0: up to date", onH1("plan", "-f", leaf)...)

		token := filepath.Join(s.dir, "shop.token")
		if err := os.WriteFile(token, []byte(s.checkOutput(0, "hg_", "token", "create", "ci", "--role", "tenant", "--tenant", "shop")), 0o600); err != nil {
			t.Fatal(err)
		}
		s.checkOutput(0, "tenant of shop", "login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", token, "--profile", "shop")
		s.checkOutput(0, "the web shop", "tenant", "show", "shop", "--server", "shop")
		s.checkOutput(0, "h1", "host", "list", "--server", "shop")
		s.checkOutput(3, "does not permit this operation", "tenant", "list", "--server", "shop")
		s.checkOutput(3, "does not permit this operation", "host", "delete", "h1", "--server", "shop")
		s.checkOutput(3, "does not permit this operation", "rollback", "--host", "h1", "--dev", "eth0", "--to", to, "--server", "shop")
		s.checkOutput(3, "does not permit this operation", "check", "-f", other(t, s.dir), "--server", "shop", "--host", "h1")
		s.checkOutput(1, "tenant shop owns groups", "tenant", "delete", "shop", "--server", "default")

		for _, want := range []string{`"request":"PUT /v1/tenants/shop"`, `"request":"DELETE /v1/hosts/h2"`, "/rollback", `"event":"change"`} {
			s.eventually("an event with "+want, func() bool { return strings.Contains(seen.String(), want) })
		}
	})
}
