package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/api/local"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/shaper"
)

// python is Debian's interpreter: one in root's home directory would not be accessible to other
// users.
const python = "/usr/bin/python3"

// nobody is an unprivileged user.
const nobody = 65534

const joined = `kind: Interface
dev: far
out:
  limit: 100Mbit
  groups:
    - {name: a, join: 65534}
    - {name: shop, join: nobody, groups: [{name: web}]}
    - {name: closed, join: 1}
    - {name: rest, default: true}
`

// as runs a command of the program as a user, with a file as descriptor 3.
func (h *host) as(user uint32, f *os.File, args ...string) (said string, exit int) {
	h.Helper()
	// The user may have no access to the path of the test binary.
	c := exec.Command("/proc/self/exe", append(args, "--socket", h.socket())...)
	c.Env = append(os.Environ(), programEnv+"=1")
	c.ExtraFiles = []*os.File{f}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := c.CombinedOutput()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		h.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// dialled returns a connection from a node to a listener on another node, as a file.
func dialled(t *testing.T, from, to *lab.Node, network, address string) *os.File {
	t.Helper()
	var f *os.File
	dial := func(at string) error {
		c, err := net.Dial(network, at)
		if err != nil {
			return err
		}
		defer c.Close()
		f, err = c.(interface{ File() (*os.File, error) }).File()
		return err
	}
	if strings.HasPrefix(network, "udp") {
		if err := from.Do(func() error { return dial(net.JoinHostPort(address, "9")) }); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	var l net.Listener
	if err := to.Do(func() (err error) { l, err = net.Listen(network, net.JoinHostPort(address, "0")); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := from.Do(func() error { return dial(l.Addr().String()) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	go io.Copy(io.Discard, peer)
	return f
}

// mapped returns a TCP connection over IPv4 from an IPv6 socket.
func mapped(t *testing.T, from, to *lab.Node, address string) *os.File {
	t.Helper()
	var l net.Listener
	if err := to.Do(func() (err error) { l, err = net.Listen("tcp4", address+":0"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		if peer, err := l.Accept(); err == nil {
			io.Copy(io.Discard, peer)
			peer.Close()
		}
	}()
	sa := &unix.SockaddrInet6{Port: l.Addr().(*net.TCPAddr).Port}
	copy(sa.Addr[:], net.ParseIP(address).To16())
	var f *os.File
	err := from.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			f = os.NewFile(uintptr(fd), "mapped")
			err = unix.Connect(fd, sa)
		}
		return err
	})
	if f != nil {
		t.Cleanup(func() { f.Close() })
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A program of a user with permission assigns its connection to a group by passing the descriptor.
// The group then counts the connection's packets until the connection is unassigned.
func TestSocket(t *testing.T) {
	h := newHost(t, joined)
	far := h.lab.Node("far")
	h.open()
	six, err := far.Addr(true)
	if err != nil {
		t.Fatal(err)
	}
	// goes sends packets and checks that they are counted in a group.
	goes := func(f *os.File, group string) {
		t.Helper()
		before := h.hasLimit("far", "100Mbit")
		for range 60 { // some UDP packets are refused instead of sent
			if _, err := f.Write(make([]byte, 500)); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		h.has("far", "traffic in "+group, func(s shaper.State) bool {
			for i, g := range s.Out.Groups {
				if g.Path == group {
					return g.Bytes-before.Out.Groups[i].Bytes >= 10_000
				}
			}
			return false
		})
	}
	for name, f := range map[string]*os.File{
		"tcp": dialled(t, h.node, far, "tcp", h.far), "tcp6": dialled(t, h.node, far, "tcp", six.String()),
		"udp": dialled(t, h.node, far, "udp", h.far), "udp6": dialled(t, h.node, far, "udp", six.String()),
		"mapped": mapped(t, h.node, far, h.far),
	} {
		goes(f, "rest")
		if said, exit := h.as(nobody, f, "assign", "shop/web", "--fd", "3"); exit != 0 || !strings.HasPrefix(said, "far: "+name[:3]) && name != "mapped" || strings.Contains(said, "::ffff") || !strings.Contains(said, "in group shop/web") {
			t.Errorf("%s: exit %d, %s", name, exit, said)
		}
		goes(f, "shop/web")
		if said, exit := h.as(nobody, f, "assign", "a", "--fd", "3", "--dev", "far", "-o", "json"); exit != 0 || !strings.Contains(said, `"group": "a"`) {
			t.Errorf("%s, assigned to another group: exit %d, %s", name, exit, said)
		}
		goes(f, "a")
		if said, exit := h.as(nobody, f, "unassign", "--fd", "3"); exit != 0 || !strings.Contains(said, "unassigned") {
			t.Errorf("%s, unassigned: exit %d, %s", name, exit, said)
		}
		goes(f, "rest")
	}
	f := dialled(t, h.node, far, "tcp", h.far)
	var plain net.ListenConfig
	plain.SetMultipathTCP(false)
	listens, err := plain.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listens.Close()
	listening, err := listens.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	for _, c := range []struct {
		user uint32
		f    *os.File
		args string
		exit int
		want string
	}{
		{nobody, f, "assign closed --fd 3", 3, `user 65534 has no permission to assign connections to group closed of far: add the user under "join"`},
		{nobody, f, "assign none --fd 3", 1, `there is no group "none"`},
		{nobody, f, "assign a --fd 3 --dev eth7", 1, `does not shape device "eth7"`},
		{nobody, f, "unassign --fd 3", 1, "is not assigned to any group"},
		{nobody, listening, "assign a --fd 3", 1, "is not connected"},
		{nobody, os.Stdin, "assign a --fd 3", 1, "is not a socket"},
		{nobody, f, "assign a --fd 99", 1, "descriptor 99"},
		{nobody, f, "assign a --fd 3 --conn x", 2, "exclude each other"},
		{nobody, f, "assign a --pid 3", 2, "--fd is missing"},
		{nobody, f, "assign a --fd 3 --pid 1", 3, ""}, // a process of another user
		{0, f, "assign closed --fd 3", 0, "in group closed"},
		{nobody, f, "assign a --fd 3", 3, "user 65534 has no permission to remove it"},
		{nobody, f, "unassign --fd 3", 3, "user 65534 has no permission to remove it"},
		{0, f, "assign a --pid " + fmt.Sprint(os.Getpid()) + " --fd " + fmt.Sprint(f.Fd()), 0, "in group a"},
	} {
		if said, exit := h.as(c.user, c.f, strings.Fields(c.args)...); exit != c.exit || !strings.Contains(said, c.want) {
			t.Errorf("user %d, %s: exit %d, want %d with %q\n%s", c.user, c.args, exit, c.exit, c.want, said)
		}
	}
	// Assignments outlive the agent, and the socket of a killed agent does not block a new one.
	if err := h.agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.agent.Wait()
	goes(f, "a")
	if said, exit := h.as(nobody, f, "assign a --fd 3"); exit != 2 { // a single argument
		t.Errorf("exit %d, %s", exit, said)
	}
	if said, exit := h.as(nobody, f, "assign", "shop/web", "--fd", "3"); exit != 1 || !strings.Contains(said, "headgate agent") {
		t.Errorf("without an agent: exit %d, %s", exit, said)
	}
	h.start()
	h.open()
	goes(f, "a")
	if said, exit := h.as(nobody, f, "assign", "shop/web", "--fd", "3"); exit != 0 {
		t.Errorf("exit %d, %s", exit, said)
	}
	goes(f, "shop/web")
	// A reload changes the permissions.
	h.write(strings.ReplaceAll(joined, "nobody", "1"))
	if err := h.agent.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	h.lastReport("RELOADING=1")
	h.lastReport("READY=1")
	if said, exit := h.as(nobody, f, "assign", "a", "--fd", "3"); exit != 3 || !strings.Contains(said, "user 65534 has no permission") {
		t.Errorf("exit %d, %s", exit, said)
	}
	// Two agents cannot share a socket.
	second := far.Command(t.Context(), os.Args[0], "agent", "-f", h.dir, "--socket", h.socket())
	second.Env = append(os.Environ(), programEnv+"=1", "HEADGATE_STATE="+h.state)
	if out, err := second.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("another program is listening on it")) {
		t.Errorf("a second agent at the socket: %v\n%s", err, out)
	}
}

// The agent trusts the addresses of a network namespace that root created, such as a container's,
// and rejects those of one that a user created.
func TestSocketNamespaces(t *testing.T) {
	h := newHost(t, joined)
	h.open()
	far := h.lab.Node("far")
	contained := dialled(t, far, h.node, "tcp", mustAddr(t, h.node))
	if said, exit := h.as(nobody, contained, "assign", "a", "--fd", "3"); exit != 0 || !strings.Contains(said, "in group a") {
		t.Errorf("from a namespace that root created: exit %d, %s", exit, said)
	}
	f := dialled(t, h.node, far, "tcp", h.far)
	own, err := unix.Getsockname(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	// The same addresses as f's, in a namespace that the user created.
	const forge = `
import json, os, socket, subprocess, sys
path, own, far, port = sys.argv[1:]
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
for a in own, far:
    subprocess.run(["ip", "address", "add", a + "/32", "dev", "lo"], check=True)
l = socket.create_server((far, 7))
c = socket.create_connection((far, 7), source_address=(own, int(port)))
with socket.socket(socket.AF_UNIX) as s:
    s.connect(path)
    socket.send_fds(s, [json.dumps({"assign": "a"}).encode()], [c.fileno()])
    print(s.makefile().read())
`
	c := exec.Command(python, "-c", forge, h.socket(), ip4(own), h.far, fmt.Sprint(own.(*unix.SockaddrInet4).Port))
	c.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: 0, Gid: 0}, Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: nobody, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: nobody, Size: 1}},
	}
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "root did not create") || !strings.Contains(string(out), `"denied":true`) {
		t.Errorf("from a namespace that the user created: %v %s", err, out)
	}
	// An address that no device has.
	const bound = `
import json, socket, sys
c = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
c.setsockopt(socket.IPPROTO_IPV6, 78, 1) # IPV6_FREEBIND
c.bind(("fd00:dead::1", 9999))
c.connect((sys.argv[2], 9))
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sys.argv[1])
    socket.send_fds(s, [json.dumps({"assign": "a"}).encode()], [c.fileno()])
    print(s.makefile().read())
`
	for _, from := range []struct{ in, to *lab.Node }{{h.node, far}, {far, h.node}} { // the agent's namespace, and a container's
		six, err := from.to.Addr(true)
		if err != nil {
			t.Fatal(err)
		}
		b := from.in.Command(t.Context(), "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", python, "-c", bound, h.socket(), six.String())
		if out, err := b.CombinedOutput(); err != nil || !strings.Contains(string(out), "not an address of its network namespace") || !strings.Contains(string(out), `"denied":true`) {
			t.Errorf("from a foreign address, in %s: %v %s", from.in.Name, err, out)
		}
	}
}

// open gives other users access to the socket.
func (h *host) open() {
	h.Helper()
	for _, dir := range []string{filepath.Dir(h.state), h.state} {
		if err := os.Chmod(dir, 0o755); err != nil {
			h.Fatal(err)
		}
	}
	if info, err := os.Stat(h.socket()); err != nil || info.Mode().Perm() != 0o666 {
		h.Fatalf("the socket has the mode %v, %v, want 0666", info, err)
	}
	if _, err := (local.Agent{Path: h.socket()}).Do(local.Request{}, 0); err == nil || !strings.Contains(err.Error(), "not a JSON object") {
		h.Fatalf("an empty request: %v", err)
	}
}

func mustAddr(t *testing.T, n *lab.Node) string {
	t.Helper()
	a, err := n.Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	return a.String()
}

func ip4(sa unix.Sockaddr) string { return net.IP(sa.(*unix.SockaddrInet4).Addr[:]).String() }
