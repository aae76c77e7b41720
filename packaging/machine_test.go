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

	"headgate.dev/headgate/internal/cgroup2"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// machine is a test machine in namespaces of the test's machine. It has the same files in an overlay whose
// changes are in memory, its own systemd as the first process, and the network of a lab node.
type machine struct {
	testing.TB
	node     *lab.Node
	upperDir string       // the overlay's directory of changed files
	initPID  int          // the process id of its first process
	output   bytes.Buffer // the console output
}

// work is the working directory of the operator's commands.
const work = "/srv/headgate"

// bootWithin and commandWithin are the timeouts for booting and for a command, long enough for a busy machine.
const bootWithin, commandWithin = 60 * time.Second, 5 * time.Minute

// boot starts a machine that has copies of the files in the directory work.
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
	m := &machine{TB: t, node: node, upperDir: filepath.Join(dir, "changed")}
	for _, d := range []string{"work", "root", filepath.Join("changed", work)} {
		must(os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	for _, file := range files {
		run(t, "cp", "-r", file, filepath.Join(m.upperDir, work))
	}
	// The machine's systemd manages the cgroups below this one.
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
	c.Stdout, c.Stderr = &m.output, &m.output
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
			m.initPID, _ = strconv.Atoi(words[0])
			if _, err := m.try("systemctl is-active multi-user.target"); err == nil {
				return m
			}
		}
		if time.Now().After(until) {
			c.Process.Kill()
			ended.Wait()
			t.Fatalf("the machine did not boot: %s", m.output.String())
		}
	}
}

// removeGroup removes a cgroup whose processes have ended or will end soon.
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

// try runs a shell script on the machine as root.
func (m *machine) try(script string) (said string, err error) {
	ctx, cancel := context.WithTimeout(m.Context(), commandWithin)
	defer cancel()
	c := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(m.initPID), "--mount", "--uts", "--ipc", "--net", "--pid", "bash", "-ec", "cd "+work+"\n"+script)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"}
	c.WaitDelay = time.Second // background processes may keep the output open
	out, err := c.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: timed out after %v", err, commandWithin)
	}
	return string(out), err
}

// must runs a script that has to succeed, and returns its output.
func (m *machine) must(script string) string {
	m.Helper()
	said, err := m.try(script)
	if err != nil {
		journal, _ := m.try("journalctl --no-pager -n 60 -u 'headgate*'; systemctl --no-pager --failed")
		m.Fatalf("%v\n%s\n%s", err, said, journal)
	}
	return said
}

// until repeats a script until it succeeds, up to 200 times at intervals of 0.1 s.
func (m *machine) until(script string) {
	m.Helper()
	m.must("for n in $(seq 200); do { " + script + "; } >/dev/null 2>&1 && exit; sleep 0.1; done; set -x; " + script)
}

// ignoredPaths are files that other programs write when packages are installed or removed, and files of users.
var ignoredPaths = []string{
	"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock", "/root", "/srv", "/var/backups",
	"/var/cache", "/var/lib/PackageKit", "/var/lib/apt", "/var/lib/dpkg", "/var/log", "/var/lib/systemd/catalog", "/var/lib/systemd/timers", "/var/tmp",
}

// snapshot returns everything that a package could leave behind: changed files, devices, their traffic control,
// pinned eBPF objects, users and units.
func (m *machine) snapshot() map[string]string {
	m.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(m.upperDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, m.upperDir)
		if slices.Contains(ignoredPaths, name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if _, err := os.Lstat(name); err == nil {
				return nil // the directory existed before
			}
		}
		now, err := describeFile(path)
		if before, e := describeFile(name); e == nil && before == now {
			return nil // rewritten with the same content
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

// describeFile returns the type and mode of a file, and the hash of its content.
func describeFile(path string) (string, error) {
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

// compareSnapshot compares the traces with the former ones.
func (m *machine) compareSnapshot(before map[string]string) {
	m.Helper()
	now := m.snapshot()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] != before[name] {
			m.Errorf("%s is %q, was %q", name, now[name], before[name])
		}
	}
	for name := range before {
		if _, there := now[name]; !there {
			m.Errorf("%s is no longer changed from the state before the boot, was %q", name, before[name])
		}
	}
}

// follow runs the code blocks of a section of a document, or of the whole document, one after the other.
// between[n], if not nil, is called after the shell block n.
func (m *machine) follow(doc, section string, between ...func()) {
	m.Helper()
	n := 0
	for _, b := range blocks(m.TB, filepath.Join("../docs", doc), section) {
		said, err := m.try(b.shellScript())
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
		m.Fatalf("docs/%s, %q has %d shell blocks, want at least one and at least %d", doc, section, n, len(between))
	}
}

// machineOf boots a machine with one neighbour: its device eth0 with 10.0.0.1 leads to 10.0.0.2.
func machineOf(t testing.TB, files ...string) (*machine, *lab.Lab) {
	t.Helper()
	l := labtest.Up(t, &lab.Topology{
		// The lab names a device after the node to which it leads.
		Nodes: []lab.NodeSpec{{Name: "web1"}, {Name: "eth0"}},
		Links: []lab.LinkSpec{{Ends: [2]string{"web1", "eth0"}}},
	})
	m := boot(t, l.Node("web1"), files...)
	m.must("ip route replace default via 10.0.0.2 && ping -c 1 10.0.0.2")
	return m, l
}
