package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// confinement is the sandbox of a systemd unit, as far as a process that systemd did not start can
// reproduce it.
type confinement struct {
	Program  string   // executed inside the sandbox
	User     int      // 0 is root
	Caps     []int    // that stay in the bounding set
	Families []uint32 // allowed socket address families
	Net      bool     // network namespaces may be entered and created, and no others
	Calls    []uint32 // allowed system calls; empty allows all
	Write    []string // writable directories
	Hide     bool     // hide other users' processes
}

// confineEnv is an environment variable that makes this program confine itself.
const confineEnv = "HEADGATE_TEST_CONFINE"

func init() {
	text := os.Getenv(confineEnv)
	if text == "" {
		return
	}
	var c confinement
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		os.Unsetenv(confineEnv)
		err = c.enter()
	}
	if err == nil {
		err = syscall.Exec(c.Program, os.Args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "cannot confine the process:", err)
	os.Exit(1)
}

// env returns the environment variable that confines a command.
func (c confinement) env(t testing.TB) string {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return confineEnv + "=" + string(text)
}

// enter confines the current thread, which then executes the program.
func (c confinement) enter() error {
	if err := c.mounts(); err != nil {
		return fmt.Errorf("mounts: %w", err)
	}
	for cap := range unix.CAP_LAST_CAP + 1 {
		if slices.Contains(c.Caps, cap) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(cap), 0, 0, 0); err != nil {
			return fmt.Errorf("capability %d: %w", cap, err)
		}
	}
	if c.User != 0 { // raw system calls, because package syscall would change all threads
		for _, call := range [][4]uintptr{{unix.SYS_SETGROUPS}, {unix.SYS_SETRESGID, uintptr(c.User), uintptr(c.User), uintptr(c.User)}, {unix.SYS_SETRESUID, uintptr(c.User), uintptr(c.User), uintptr(c.User)}} {
			if _, _, e := unix.RawSyscall(call[0], call[1], call[2], call[3]); e != 0 {
				return fmt.Errorf("user: %w", e)
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_MDWE, unix.PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0); err != nil && err != unix.EINVAL { // Linux 6.3
		return fmt.Errorf("deny write-execute memory: %w", err)
	}
	return c.filter()
}

// mounts makes all file systems read-only, except the writable directories.
func (c confinement) mounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	writable := append([]string{"/proc", "/dev"}, c.Write...)
	for _, dir := range writable {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return err
	}
	for _, dir := range writable {
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	if c.Hide {
		return unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=invisible")
	}
	return nil
}

// otherNamespaces has the flags of all namespace types except network.
const otherNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID | unix.CLONE_NEWUSER | unix.CLONE_NEWCGROUP

// filter installs a seccomp filter that refuses what is not allowed, like systemd's filter.
func (c confinement) filter() error {
	refuse := func(e unix.Errno) bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)} }
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	number, argument := bpf.LoadAbsolute{Off: 0, Size: 4}, func(n uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: 16 + 8*n, Size: 4} }
	// of applies instructions to an argument of one system call; other system calls skip them.
	of := func(call, arg uint32, decide ...bpf.Instruction) []bpf.Instruction {
		decide = append([]bpf.Instruction{argument(arg)}, decide...)
		return append([]bpf.Instruction{number, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(decide))}}, decide...)
	}
	flags := uint32(otherNamespaces)
	if !c.Net {
		flags |= unix.CLONE_NEWNET
	}
	var families []bpf.Instruction
	for _, f := range c.Families {
		families = append(families, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: f, SkipTrue: 1}, allow)
	}
	enters := []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.CLONE_NEWNET, SkipTrue: 1}, allow}
	if !c.Net {
		enters = nil
	}
	var all []bpf.Instruction
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		all = append(all, of(call, 0, bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: flags, SkipTrue: 1}, refuse(unix.EPERM))...)
	}
	all = append(all, number, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1}, refuse(unix.ENOSYS))
	all = append(all, of(unix.SYS_SETNS, 1, append(enters, refuse(unix.EPERM))...)...)
	all = append(all, of(unix.SYS_SOCKET, 0, append(families, refuse(unix.EAFNOSUPPORT))...)...)
	all = append(all, number)
	for _, call := range c.Calls {
		all = append(all, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, allow)
	}
	if len(c.Calls) > 0 {
		all = append(all, refuse(unix.EPERM))
	}
	raw, err := bpf.Assemble(append(all, allow))
	if err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(raw)), Filter: (*unix.SockFilter)(unsafe.Pointer(unsafe.SliceData(raw)))}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// unitConfinement reads the sandbox of a unit file. The test sets the writable directories and the user
// itself.
func unitConfinement(t testing.TB, file string) (c confinement) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var filters []string
	for _, m := range regexp.MustCompile(`(?m)^([A-Za-z]+)=(.*)$`).FindAllStringSubmatch(string(text), -1) {
		switch words := strings.Fields(m[2]); m[1] {
		case "CapabilityBoundingSet":
			for _, name := range words {
				c.Caps = append(c.Caps, capabilities[name])
			}
		case "RestrictAddressFamilies":
			for _, name := range words {
				c.Families = append(c.Families, families[name])
			}
		case "RestrictNamespaces":
			c.Net = m[2] == "net"
		case "ProtectProc":
			c.Hide = m[2] == "invisible"
		case "SystemCallFilter":
			filters = append(filters, m[2])
		}
	}
	c.Calls = systemCalls(t, filters)
	return c
}

var (
	capabilities = map[string]int{
		"CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_BPF": unix.CAP_BPF, "CAP_PERFMON": unix.CAP_PERFMON,
		"CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN, "CAP_SYS_PTRACE": unix.CAP_SYS_PTRACE,
		"CAP_NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE,
	}
	families = map[string]uint32{"AF_UNIX": unix.AF_UNIX, "AF_INET": unix.AF_INET, "AF_INET6": unix.AF_INET6, "AF_NETLINK": unix.AF_NETLINK}
)

// systemCalls returns the system calls that a unit's filters allow, by systemd's named sets and the
// numbers in the C headers. If either is not installed, it returns none, which allows all.
func systemCalls(t testing.TB, filters []string) (calls []uint32) {
	t.Helper()
	said, err := exec.Command("systemd-analyze", "syscall-filter", "--no-pager").Output()
	header, e := os.ReadFile("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
	if err != nil || e != nil {
		t.Logf("no system call filter: %v, %v", err, e)
		return nil
	}
	sets, of := map[string][]string{}, ""
	for lines := bufio.NewScanner(strings.NewReader(string(said))); lines.Scan(); {
		line := lines.Text()
		if word := strings.TrimSpace(line); word == "" || word[0] == '#' {
			continue
		} else if word == line {
			of = word
		} else {
			sets[of] = append(sets[of], word)
		}
	}
	left := map[string]bool{}
	var mark func(name string, to bool)
	mark = func(name string, to bool) {
		left[name] = to
		for _, n := range sets[name] {
			mark(n, to)
		}
	}
	mark("@default", true)
	for _, f := range filters {
		names, to := strings.CutPrefix(f, "~")
		for _, name := range strings.Fields(names) {
			mark(name, !to)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^#define __NR_(\w+) (\d+)$`).FindAllStringSubmatch(string(header), -1) {
		if n, err := strconv.Atoi(m[2]); err == nil && left[m[1]] {
			calls = append(calls, uint32(n))
		}
	}
	return calls
}
