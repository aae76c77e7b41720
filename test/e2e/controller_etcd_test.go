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
	"headgate.dev/headgate/store/backend"
	"headgate.dev/headgate/store/etcd"
	"headgate.dev/headgate/unit"
)

// etcdOn runs an etcd in a node's namespace. The returned function stops it and waits for its end.
func etcdOn(t *labtest.Check, node *lab.Node, m etcd.Member) (stop func()) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(m.Dir, "member.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c := (&serviceTest{t: t, node: node}).command("controller", "store", file)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		if c.ProcessState == nil {
			in.Close()
			c.Wait()
		}
	}
	t.Cleanup(stop)
	return stop
}

// A controller uses an external etcd. When the etcd is reset to an earlier state, the controller reports it
// and exits, and hosts accept the earlier state only after "headgate controller restore --etcd".
func TestControllerEtcd(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit})
		node := l.Node("server")
		dev, err := node.Device("router")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		m := etcd.Member{Name: "e1", Peers: map[string]string{"e1": "127.0.0.1"}, Dir: filepath.Join(dir, "etcd"), ClientPort: 23790, PeerPort: 23800}
		if err := m.Prepare(); err != nil {
			t.Fatal(err)
		}
		stop := etcdOn(t, node, m)
		tls := func(name string) string { return filepath.Join(m.Dir, "tls", name) }
		args := []string{"--etcd", m.URL(), "--etcd-ca", tls("authority.pem"), "--etcd-cert", tls("member.pem"), "--etcd-key", tls("member.key"), "--etcd-prefix", "/prod"}
		s := serve(t, node, dir, args...)
		s.credentials()
		if _, err := os.Stat(filepath.Join(dir, "controller", "store")); !os.IsNotExist(err) {
			t.Errorf("the controller created a store of its own: %v", err)
		}
		file := filepath.Join(dir, "groups.yaml")
		apply := func(guarantee string) {
			t.Helper()
			text := fmt.Sprintf("kind: Interface\ndev: %s\nout:\n  limit: 40Mbit\n  groups:\n    - {name: web, guarantee: %s, match: [{dport: 443}]}\n    - {name: rest, default: true}\n", dev, guarantee)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s.checkOutput(0, "out group web", onH1("apply", "-f", file)...)
		}
		inForce := func(rate string) {
			t.Helper()
			var out string
			for range 150 {
				if out = labtest.Run(t, node, "tc", "class", "show", "dev", dev); strings.Contains(out, "rate "+rate) {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Fatalf("rate %s is not in force: %s: %s", rate, out, s.notes.String())
		}
		s.checkOutput(1, "certificate required", "controller", "restore", "--etcd", m.URL(), "--etcd-ca", tls("authority.pem"))
		apply("10Mbit")
		inForce("10Mbit")
		stop()
		if err := os.CopyFS(filepath.Join(dir, "yesterday"), os.DirFS(m.DataDir())); err != nil {
			t.Fatal(err)
		}
		stop = etcdOn(t, node, m)
		for range 100 { // the controller survives the restart
			if status, _ := s.do("GET", "/v1/hosts", ""); status == 200 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		apply("15Mbit")
		apply("20Mbit")
		inForce("20Mbit")
		time.Sleep(backend.PositionInterval + time.Second) // until the controller has stored the position

		stop()
		if err := os.Rename(m.DataDir(), filepath.Join(dir, "today")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "yesterday"), m.DataDir()); err != nil {
			t.Fatal(err)
		}
		etcdOn(t, node, m)
		ended := make(chan struct{})
		go func() { s.controller.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatalf("the controller continues with an etcd whose revision went backwards: %s", s.notes.String())
		}
		const what = "etcd revision went backwards"
		if code := s.controller.ProcessState.ExitCode(); code != 1 || !strings.Contains(s.notes.String(), what) {
			t.Errorf("controller: exit %d: %s", code, s.notes.String())
		}
		again := append([]string{"controller", "--data", filepath.Join(dir, "controller")}, args...)
		s.checkOutput(1, what, again...)
		s.checkOutput(1, "has no data of a service", "controller", "restore", "--etcd", m.URL(), "--etcd-ca", tls("authority.pem"), "--etcd-cert", tls("member.pem"), "--etcd-key", tls("member.key"))
		s.checkOutput(0, "as of epoch", append([]string{"controller", "restore"}, args...)...)
		s.start(again...)
		for until := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) { // with the token of this start
			out, code := s.run("login", "https://127.0.0.1:8420", "--pin", s.pin, "--token-file", filepath.Join(dir, "controller", "operator.token"))
			if code == 0 {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("login after the restore: %s", out)
			}
		}
		s.checkOutput(0, "are permitted", "controller", "confirm-restore", "--yes")
		inForce("10Mbit")
	})
}

// Commands that are not supported with --etcd, and invalid flags of the external etcd.
func TestControllerEtcdRefused(t *testing.T) {
	t.Parallel() // the test mostly waits
	for _, c := range []struct {
		code int
		want string
		args string
	}{
		{exitUsage, "in the clear", "--etcd http://192.0.2.1:2379"},
		{exitUsage, "not the URL of an etcd", "--etcd 192.0.2.1"},
		{exitUsage, "use one scheme", "--etcd http://127.0.0.1:2379,https://127.0.0.1:2380"},
		{exitUsage, "set for example /prod", "--etcd https://127.0.0.1:2379 --etcd-prefix prod/"},
		{exitUsage, "--etcd is missing", "--etcd-prefix /prod"},
		{exitUsage, "etcd-key", "--etcd https://127.0.0.1:2379 --etcd-cert x"},
		{exitUsage, "require https", "--etcd http://[::1]:2379 --etcd-ca x"},
		{exitFailed, "no such file", "--etcd https://127.0.0.1:2379 --etcd-ca /nonexistent"},
		{exitUsage, "snapshot save", "backup x --etcd https://127.0.0.1:2379"},
		{exitUsage, "--bump-revision", "restore x --etcd https://127.0.0.1:2379"},
		{exitUsage, "backup file is missing", "restore"},
		{exitUsage, "member remove", "replace-member c2 --etcd https://127.0.0.1:2379"},
	} {
		out, code := runSelf(t, strings.Fields("controller "+c.args+" --data "+t.TempDir())...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("controller %s: %d %s, want %q", c.args, code, out, c.want)
		}
	}
}
