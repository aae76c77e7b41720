package packaging

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/cgroup2"
	"headgate/lab"
	"headgate/lab/labtest"
)

// machine is one of its own in namespaces of this one: with the same files, of which it changes copies in
// memory, and a systemd as its first process. Its network is a node's.
type machine struct {
	testing.TB
	node    *lab.Node
	changed string // the files that it has changed, as they are there
	first   int    // the number of its first process
	said    bytes.Buffer
}

// work is the folder in which its operator types commands.
const work = "/srv/headgate"

// bootWithin and commandWithin are for a busy machine.
const bootWithin, commandWithin = 60 * time.Second, 5 * time.Minute

// boot starts a machine that has these files in its operator's folder.
func boot(t testing.TB, node *lab.Node, files ...string) *machine {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.Mount("headgate-test", dir, "tmpfs", 0, "mode=755"))
	t.Cleanup(func() { must(unix.Unmount(dir, unix.MNT_DETACH)) })
	m := &machine{TB: t, node: node, changed: filepath.Join(dir, "changed")}
	for _, d := range []string{"work", "root", filepath.Join("changed", work)} {
		must(os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	for _, file := range files {
		run(t, "cp", "-r", file, filepath.Join(m.changed, work))
	}
	// Systemd has the cgroups below its own.
	root, err := cgroup2.Mount()
	must(err)
	group := filepath.Join(root, fmt.Sprintf("headgate-machine-%d", os.Getpid()))
	must(os.Mkdir(group, 0o755))
	t.Cleanup(func() { must(removeGroup(group)) })
	fd, err := os.Open(group)
	must(err)
	defer fd.Close()
	script, err := filepath.Abs("testdata/boot")
	must(err)
	c := node.Command(context.Background(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc", "sh", script, dir)
	c.Stdout, c.Stderr = &m.said, &m.said
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(fd.Fd())}
	must(c.Start())
	var ended sync.WaitGroup
	ended.Go(func() { c.Wait() })
	t.Cleanup(func() {
		c.Process.Kill()
		ended.Wait()
	})
	for until := time.Now().Add(bootWithin); ; time.Sleep(50 * time.Millisecond) {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.Process.Pid))
		if words := strings.Fields(string(children)); len(words) == 1 {
			m.first, _ = strconv.Atoi(words[0])
			if _, err := m.try("systemctl is-active multi-user.target"); err == nil {
				return m
			}
		}
		if time.Now().After(until) {
			c.Process.Kill()
			ended.Wait()
			t.Fatalf("the machine does not start: %s", m.said.String())
		}
	}
}

// removeGroup removes a cgroup whose processes have ended, or are about to.
func removeGroup(path string) (err error) {
	for range 100 {
		var all []string
		filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, p)
			}
			return nil
		})
		slices.Reverse(all)
		err = nil
		for _, p := range all {
			if e := os.Remove(p); e != nil {
				err = e
			}
		}
		if err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// try has its operator's shell run something.
func (m *machine) try(script string) (said string, err error) {
	ctx, cancel := context.WithTimeout(m.Context(), commandWithin)
	defer cancel()
	c := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(m.first), "--mount", "--uts", "--ipc", "--net", "--pid", "bash", "-ec", "cd "+work+"\n"+script)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"}
	c.WaitDelay = time.Second // what it has left behind may hold its output
	out, err := c.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: it has not ended within %v", err, commandWithin)
	}
	return string(out), err
}

// must is for what has to succeed.
func (m *machine) must(script string) string {
	m.Helper()
	said, err := m.try(script)
	if err != nil {
		journal, _ := m.try("journalctl --no-pager -n 60 -u 'headgate*'; systemctl --no-pager --failed")
		m.Fatalf("%v\n%s\n%s", err, said, journal)
	}
	return said
}

// until waits for what comes by itself.
func (m *machine) until(script string) {
	m.Helper()
	m.must("for n in $(seq 200); do { " + script + "; } >/dev/null 2>&1 && exit; sleep 0.1; done; set -x; " + script)
}

// notOurs are files that others write as packages come and go, and those of users.
var notOurs = []string{
	"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock", "/root", "/srv", "/var/backups",
	"/var/cache", "/var/lib/PackageKit", "/var/lib/apt", "/var/lib/dpkg", "/var/log", "/var/lib/systemd/catalog", "/var/lib/systemd/timers", "/var/tmp",
}

// traces are what a package could leave: files that are not as they were, devices, what is on them,
// pinned objects, users, and units.
func (m *machine) traces() map[string]string {
	m.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(m.changed, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, m.changed)
		if slices.Contains(notOurs, name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if _, err := os.Lstat(name); err == nil {
				return nil // it has been there before
			}
		}
		now, err := described(path)
		if before, e := described(name); e == nil && before == now {
			return nil // written anew, as it was
		}
		out[name] = now
		return err
	})
	if err != nil {
		m.Fatal(err)
	}
	for _, command := range []string{
		"find /run/headgate /sys/fs/bpf -mindepth 0", "ip -o link | cut -d: -f 2", "tc qdisc", "tc filter show dev eth0",
		"getent passwd headgate", "getent group headgate", "systemctl list-units --all --plain --no-legend 'headgate*'",
		"systemctl list-unit-files --no-legend 'headgate*'", "pgrep -a headgate",
	} {
		said, _ := m.try(command)
		out["$ "+command] = said
	}
	return out
}

// described is a file's kind and rights, and a sum of what is in it.
func described(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return info.Mode().String(), nil
	}
	text, err := os.ReadFile(path)
	return fmt.Sprintf("%v %x", info.Mode(), sha256.Sum256(text)), err
}

// clean compares traces with those of before.
func (m *machine) clean(before map[string]string) {
	m.Helper()
	now := m.traces()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] != before[name] {
			m.Errorf("%s is %q, and was %q", name, now[name], before[name])
		}
	}
	for name := range before {
		if _, there := now[name]; !there {
			m.Errorf("%s is as it was before there was a machine: %q", name, before[name])
		}
	}
}

// follow does what a section of a document says, or all of it, in this way: each block of shell commands
// to its end. After a block, what is given for it is done.
func (m *machine) follow(doc, section string, between ...func()) {
	m.Helper()
	n := 0
	for _, b := range blocks(m.TB, filepath.Join("../docs", doc), section) {
		said, err := m.try(b.script())
		if err != nil {
			journal, _ := m.try("journalctl --no-pager -n 40 -u 'headgate*'")
			m.Fatalf("docs/%s, %q: %v\n%s\n%s\n%s", doc, section, err, b.text, said, journal)
		}
		if b.language != "sh" {
			continue
		}
		if n < len(between) && between[n] != nil {
			between[n]()
		}
		n++
	}
	if n == 0 || n < len(between) {
		m.Fatalf("docs/%s, %q has %d blocks of commands", doc, section, n)
	}
}

// machineOf is a machine that has one neighbour: its device eth0, at 10.0.0.1, leads to 10.0.0.2.
func machineOf(t testing.TB, files ...string) (*machine, *lab.Lab) {
	t.Helper()
	l := labtest.Up(t, &lab.Topology{
		// A device is called by the node that it leads to.
		Nodes: []lab.NodeSpec{{Name: "web1"}, {Name: "eth0"}},
		Links: []lab.LinkSpec{{Ends: [2]string{"web1", "eth0"}}},
	})
	m := boot(t, l.Node("web1"), files...)
	m.must("ip route replace default via 10.0.0.2 && ping -c 1 10.0.0.2")
	return m, l
}
