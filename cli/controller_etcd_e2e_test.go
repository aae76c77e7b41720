package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/store/etcd"
	"headgate/unit"
)

// etcdOn runs an etcd in a node's namespace; what it gives ends it, and waits.
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
	c := (&serving{t: t, node: node}).command("controller", "store", file)
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

// A controller keeps what is wanted in an etcd that runs beside it. When that is put back to what it
// was, the controller says so and ends, and hosts obey what is in it as soon as somebody says that
// this is meant.
func TestControllerEtcd(t *testing.T) {
	t.Parallel() // it waits for most of its time
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
		s.login()
		if _, err := os.Stat(filepath.Join(dir, "controller", "store")); !os.IsNotExist(err) {
			t.Errorf("the controller has a store of its own: %v", err)
		}
		file := filepath.Join(dir, "groups.yaml")
		apply := func(guarantee string) {
			t.Helper()
			text := fmt.Sprintf("kind: Interface\ndev: %s\nout:\n  limit: 40Mbit\n  groups:\n    - {name: web, guarantee: %s, match: [{dport: 443}]}\n    - {name: rest, default: true}\n", dev, guarantee)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s.says(0, "out group web", onH1("apply", "-f", file)...)
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
			t.Fatalf("%s is not in force: %s: %s", rate, out, s.notes.String())
		}
		s.says(1, "certificate required", "controller", "restore", "--etcd", m.URL(), "--etcd-ca", tls("authority.pem"))
		apply("10Mbit")
		inForce("10Mbit")
		stop()
		if err := os.CopyFS(filepath.Join(dir, "yesterday"), os.DirFS(m.DataDir())); err != nil {
			t.Fatal(err)
		}
		stop = etcdOn(t, node, m)
		for range 100 { // the controller comes through that
			if status, _ := s.do("GET", "/v1/hosts", ""); status == 200 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		apply("15Mbit")
		apply("20Mbit")
		inForce("20Mbit")
		time.Sleep(positionEvery + time.Second) // so that it is noted

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
			t.Fatalf("the controller goes on with an etcd that has gone back: %s", s.notes.String())
		}
		const what = "the etcd has gone back"
		if code := s.controller.ProcessState.ExitCode(); code != 1 || !strings.Contains(s.notes.String(), what) {
			t.Errorf("it ended with %d: %s", code, s.notes.String())
		}
		again := append([]string{"controller", "--data", filepath.Join(dir, "controller")}, args...)
		s.says(1, what, again...)
		s.says(1, "there is no service", "controller", "restore", "--etcd", m.URL(), "--etcd-ca", tls("authority.pem"), "--etcd-cert", tls("member.pem"), "--etcd-key", tls("member.key"))
		s.says(0, "as of epoch", append([]string{"controller", "restore"}, args...)...)
		s.start(again...)
		inForce("10Mbit")
	})
}

// What an etcd of others is not to be asked for, and how it is not to be spoken to.
func TestControllerEtcdRefused(t *testing.T) {
	t.Parallel() // it waits for most of its time
	for _, c := range []struct {
		code int
		want string
		args string
	}{
		{wrong, "in the clear", "--etcd http://192.0.2.1:2379"},
		{wrong, "not the URL of an etcd", "--etcd 192.0.2.1"},
		{wrong, "write one of them", "--etcd http://127.0.0.1:2379,https://127.0.0.1:2380"},
		{wrong, "write for example /prod", "--etcd https://127.0.0.1:2379 --etcd-prefix prod/"},
		{wrong, "write --etcd", "--etcd-prefix /prod"},
		{wrong, "etcd-key", "--etcd https://127.0.0.1:2379 --etcd-cert x"},
		{wrong, "of no use", "--etcd http://[::1]:2379 --etcd-ca x"},
		{failed, "no such file", "--etcd https://127.0.0.1:2379 --etcd-ca /nonexistent"},
		{wrong, "snapshot save", "backup x --etcd https://127.0.0.1:2379"},
		{wrong, "--bump-revision", "restore x --etcd https://127.0.0.1:2379"},
		{wrong, "the file of a backup", "restore"},
		{wrong, "member remove", "replace-member c2 --etcd https://127.0.0.1:2379"},
	} {
		r := newWorld(t).run(strings.Fields("controller " + c.args + " --data " + t.TempDir())...)
		if r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("controller %s: %d %s, want %q", c.args, r.code, r.err, c.want)
		}
	}
}
