package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/cli/view"
	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/lab/traffic"
	"headgate/probe"
	"headgate/probe/path"
	"headgate/unit"
)

// run is a command of somebody who is logged in, and its exit code.
func (s *serving) run(args ...string) (out string, code int) {
	s.t.Helper()
	c := s.command(args...)
	c.Env = append(c.Env, "XDG_CONFIG_HOME="+s.dir)
	text, err := c.CombinedOutput()
	if c.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(text), c.ProcessState.ExitCode()
}

// says wants a command to end with a code, and to say some words.
func (s *serving) says(code int, want string, args ...string) string {
	s.t.Helper()
	out, got := s.run(args...)
	if got != code || !strings.Contains(out, want) {
		s.t.Errorf("headgate %s: %d %s, want %d with %q", strings.Join(args, " "), got, out, code, want)
	}
	return out
}

// login logs the first operator in.
func (s *serving) login() {
	s.t.Helper()
	s.says(0, "logged in as first, operator", "login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", filepath.Join(s.dir, "controller", "operator.token"))
}

// onH1 is a command for the one host of the service.
func onH1(args ...string) []string { return append(args, "--server", "default", "--host", "h1") }

// Verbs that look do on a host of a service what they do on their own: rates of a flow that is held
// to a group's ceiling, which rule a packet gets, whether a file may be, and what a path gives.
func TestServerLooks(t *testing.T) {
	t.Parallel() // it waits for most of its time
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
		s.login()
		file := filepath.Join(s.dir, "groups.yaml")
		write := func(dev, guarantee string) {
			t.Helper()
			text := fmt.Sprintf("kind: Interface\ndev: %s\nout:\n  limit: 40Mbit\n  groups:\n    - {name: web, guarantee: %s, ceiling: 30Mbit, match: [{dport: 5001}]}\n    - {name: rest, default: true}\n", dev, guarantee)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}

		write(altname, "25%")
		if out := s.says(0, "web", onH1("check", "-f", file)...); strings.Contains(out, "no such device") || !strings.Contains(string(s.must("GET", "/v1/hosts/h1", "")), altname) {
			t.Errorf("check of a device by its other name says %s", out)
		}
		write(dev, "25%")
		s.says(0, "web", onH1("check", "-f", file)...)
		s.says(0, "add    out group web", onH1("plan", "-f", file)...) // nothing was put
		s.says(0, "nosuch: h1 has no such device", onH1("check", "-f", file, "-f", other(t, s.dir))...)
		s.says(1, `there is no host "h2"`, "check", "-f", file, "--server", "default", "--host", "h2")
		s.says(2, `headgate rollback`, onH1("apply", "-f", file, "--confirm-within", "60s")...)
		s.says(1, "wants nothing of", onH1("explain", "--packet", "tcp 10.0.0.1:443 10.0.0.2:5001", "--dev", dev)...)
		s.says(0, "add    out group web", onH1("apply", "-f", file)...)

		s.says(0, "out: rule 0 (dport 5001): group web", onH1("explain", "--packet", "tcp 10.0.0.1:443 10.0.0.2:5001", "--dev", dev)...)
		s.says(0, "what the service wants of h1", onH1("explain", "--packet", "tcp 10.0.0.1:443 10.0.0.2:5001", "--dev", dev)...)
		s.says(0, "", onH1("assign", "rest", "--dev", dev, "--conn", "tcp 10.0.0.1:443 10.0.0.2:5001")...)
		s.says(0, "assigned at run time: group rest", onH1("explain", "--packet", "tcp 10.0.0.2:5001 10.0.0.1:443", "--dev", dev)...)
		s.says(0, "tcp 10.0.0.1:443 10.0.0.2:5001", onH1("show", "assignments")...)

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
				time.Sleep(200 * time.Millisecond) // the agent has not told yet
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
			t.Errorf("top says %s: %s", out, s.notes.String())
		}
		// Ten times a second while it is watched.
		began := time.Now()
		lines := s.command(onH1("top", "--interval", "100ms", "--dev", dev)...)
		lines.Env = append(lines.Env, "XDG_CONFIG_HOME="+s.dir)
		text := &notes{}
		lines.Stdout = text
		if err := lines.Start(); err != nil {
			t.Fatal(err)
		}
		for strings.Count(text.String(), "group=web") < 20 && time.Since(began) < 15*time.Second {
			time.Sleep(20 * time.Millisecond)
		}
		end(lines)
		if n := strings.Count(text.String(), "group=web"); n < 20 || time.Since(began) > 8*time.Second {
			t.Errorf("in %v there are %d lines: %s", time.Since(began), n, text.String())
		}
		s.says(1, "has no bandwidth groups", onH1("top", "--once", "--dev", "lo")...)
		s.says(1, `there is no connected host "h2"`, "top", "--once", "--server", "default", "--host", "h2")
		f.Stop()

		client := l.Node("client")
		address, err := client.Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		server := newProbed(t, l, "client").command(client, "probe", "serve", "--open")
		heard := &heardLine{wanted: "may measure", heard: make(chan struct{})}
		server.Stderr = heard
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		defer end(server)
		select {
		case <-heard.heard:
		case <-time.After(10 * time.Second):
			t.Fatal("the server of probes does not serve")
		}
		s.says(2, "--bytes is of this machine", onH1("probe", "capacity", address.String(), "--bytes", "1MB")...)
		out = s.says(0, `"capacity"`, onH1("probe", "capacity", address.String(), "-o", "json")...)
		var r path.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil || r.Directions[probe.In] == nil {
			t.Errorf("measured is %s: %v", out, err)
		}
		s.says(1, "cannot measure", onH1("probe", "capacity", "127.0.0.1:1")...)
	})
}

// other is a file of a device that there is not.
func other(t *labtest.Check, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "other.yaml")
	if err := os.WriteFile(file, []byte("kind: Interface\ndev: nosuch\nout: {limit: 1Mbit, groups: [{name: all, default: true}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Resources of a service by commands: who is there, who changed what, and back. A tenant may do what
// its token lets it.
func TestServerResources(t *testing.T) {
	t.Parallel() // it waits for most of its time
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit})
		node := l.Node("server")
		s := serve(t, node, t.TempDir())
		s.login()

		watch := s.command("events", "-o", "json")
		watch.Env = append(watch.Env, "XDG_CONFIG_HOME="+s.dir)
		seen := &notes{}
		watch.Stdout = seen
		if err := watch.Start(); err != nil {
			t.Fatal(err)
		}
		defer end(watch)

		s.says(0, "tenant shop: would be made", "tenant", "set", "shop", "--dry-run")
		s.says(1, `there is no tenant "shop"`, "tenant", "show", "shop")
		s.says(0, "tenant shop: made", "tenant", "create", "shop", "--description", "the web shop", "--requests", "70")
		s.says(0, "tenant shop: changed", "tenant", "set", "shop", "--requests", "80")
		s.says(0, "80          the web shop", "tenant", "show", "shop")
		s.says(0, `"description": "the web shop"`, "tenant", "list", "-o", "json")
		s.says(2, "requests", "tenant", "set", "shop", "--requests", "-1")
		s.says(0, "host h2: made", "host", "create", "h2", "--description", "another")
		s.says(0, "host h2: changed", "host", "set", "h2", "--revoked")
		s.says(0, "revoked", "host", "show", "h2")
		s.says(0, "h1    connected", "host", "list")
		s.says(0, "lo", "host", "show", "h1")
		s.says(0, "host h2: would be removed", "host", "delete", "h2", "--dry-run")
		s.says(0, "h2\n", "__complete", "host", "delete", "")
		s.says(0, "host h2: removed", "host", "delete", "h2")
		s.says(1, `there is no host "h2"`, "host", "show", "h2")

		s.must("PUT", "/v1/hosts/h1/interfaces/eth0", `{"out": {"limit": "10Mbit", "groups": [{"name": "shop", "guarantee": "40%", "tenant": "shop", "match": [{"dport": ["873"]}]}, {"name": "rest", "default": true}]}}`)
		s.must("PATCH", "/v1/hosts/h1/interfaces/eth0/out/groups/shop", `{"guarantee": "50%"}`)
		var changes []struct{ Revision int64 }
		if err := json.Unmarshal([]byte(s.says(0, "PATCH", "history", "--host", "h1", "--dev", "eth0", "-o", "json")), &changes); err != nil || len(changes) != 2 {
			t.Fatalf("changes are %+v, %v", changes, err)
		}
		to := fmt.Sprint(changes[1].Revision)
		s.says(0, "would be what it was at revision "+to, "rollback", "--host", "h1", "--dev", "eth0", "--to", to, "--dry-run")
		s.says(0, "eth0 of h1: what it was", "rollback", "--host", "h1", "--dev", "eth0", "--to", to)
		if out := string(s.must("GET", "/v1/hosts/h1/interfaces/eth0", "")); !strings.Contains(out, `"40%"`) {
			t.Errorf("rolled back it is %s", out)
		}
		s.says(2, "--to is a revision", "rollback", "--host", "h1", "--dev", "eth0", "--to", "0")
		s.says(1, "no such revision yet", "rollback", "--host", "h1", "--dev", "eth0", "--to", "999999999")
		s.says(0, "POST /v1/hosts/h1/interfaces/eth0/rollback", "audit", "--limit", "1")
		s.says(2, "--dev is missing", "history", "--host", "h1")

		// A file that does not know what is in a tenant's group leaves it alone, and says so.
		s.must("PUT", "/v1/hosts/h1/interfaces/eth0/out/groups/shop%2Fweb", `{"guarantee": "1Mbit"}`)
		leaf := filepath.Join(s.dir, "leaf.yaml")
		if err := os.WriteFile(leaf, []byte("kind: Interface\ndev: eth0\nout: {limit: 10Mbit, groups: [{name: shop, guarantee: 60%, match: [{dport: 873}]}, {name: rest, default: true}]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"plan", "apply"} {
			if out := s.says(0, "change out group shop", onH1(verb, "-f", leaf)...); strings.Contains(out, "remove") {
				t.Errorf("%s says %s", verb, out)
			}
		}
		s.must("GET", "/v1/hosts/h1/interfaces/eth0/out/groups/shop%2Fweb", "")
		s.says(0, "eth0: up to date", onH1("plan", "-f", leaf)...)

		token := filepath.Join(s.dir, "shop.token")
		if err := os.WriteFile(token, []byte(s.says(0, "hg_", "token", "create", "ci", "--role", "tenant", "--tenant", "shop")), 0o600); err != nil {
			t.Fatal(err)
		}
		s.says(0, "tenant of shop", "login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", token, "--profile", "shop")
		s.says(0, "the web shop", "tenant", "show", "shop", "--server", "shop")
		s.says(0, "h1", "host", "list", "--server", "shop")
		s.says(3, "may not do that", "tenant", "list", "--server", "shop")
		s.says(3, "may not do that", "host", "delete", "h1", "--server", "shop")
		s.says(3, "may not do that", "rollback", "--host", "h1", "--dev", "eth0", "--to", to, "--server", "shop")
		s.says(3, "may not do that", "check", "-f", other(t, s.dir), "--server", "shop", "--host", "h1")
		s.says(1, "the tenant shop has groups", "tenant", "delete", "shop", "--server", "default")

		for range 50 {
			if strings.Contains(seen.String(), "/rollback") {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		for _, want := range []string{`"what":"PUT /v1/tenants/shop"`, `"what":"DELETE /v1/hosts/h2"`, "/rollback", `"event":"change"`} {
			if !strings.Contains(seen.String(), want) {
				t.Errorf("events are %s, want %s", seen.String(), want)
			}
		}
	})
}
