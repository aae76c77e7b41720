package lab_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/unit"
)

// The chain topology:
//
//	a ── r1 ── r2 ── b
//	      └── c
func chain() *lab.Topology {
	link := func(a, b string) lab.LinkSpec { return lab.LinkSpec{Ends: [2]string{a, b}} }
	return &lab.Topology{
		Nodes: []lab.NodeSpec{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "r1", Router: true}, {Name: "r2", Router: true}},
		Links: []lab.LinkSpec{link("a", "r1"), link("r1", "r2"), link("r2", "b"), link("r1", "c")},
	}
}

// Every address of every node answers every other node immediately after Up, without waiting for
// carriers or duplicate address detection.
func TestReachability(t *testing.T) {
	l := labtest.Up(t, chain())
	for _, from := range l.Topology.Nodes {
		for _, d := range l.Topology.Devices() {
			for _, to := range []string{d.IPv4.Addr().String(), d.IPv6.Addr().String()} {
				labtest.Run(t, l.Node(from.Name), "ping", "-q", "-c", "1", "-W", "1", to)
			}
		}
	}
}

// Two labs with different names, with kernel and emulated links:
//
//	client ── router ── server      client ── router ── server
func TestTwoLabsDoNotCollide(t *testing.T) {
	for _, rtt := range []time.Duration{0, time.Millisecond} {
		one, two := labtest.Rig(t, lab.RigOptions{RTT: rtt}), labtest.Rig(t, lab.RigOptions{RTT: rtt})
		for _, l := range []*lab.Lab{one, two} {
			labtest.Run(t, l.Node("client"), "ping", "-q", "-c", "1", "-W", "1", "10.0.1.2")
		}
		if a, b := one.Node("client").Namespace(), two.Node("client").Namespace(); a == b {
			t.Errorf("both clients are %s", a)
		}
		// The name of a lab in use is rejected, and the lab is unchanged.
		if l, err := lab.Up(t.Context(), lab.Rig(lab.RigOptions{Name: one.Topology.Name})); !errors.Is(err, lab.ErrConfig) {
			t.Errorf("Up of a name in use: %v", err)
			if err == nil {
				l.Close()
			}
		}
		labtest.Run(t, one.Node("client"), "ping", "-q", "-c", "1", "-W", "1", "10.0.1.2")
	}
}

// Close removes everything that Up created.
func TestCloseLeavesNothing(t *testing.T) {
	labtest.NeedRoot(t)
	name := lab.UniqueName("close")
	l, err := lab.Up(t.Context(), lab.Rig(lab.RigOptions{Name: name, RTT: 1e6, Bottleneck: 100 * unit.Mbit}))
	if err != nil {
		t.Fatal(err)
	}
	// A process that still runs in the lab is killed.
	sleep := l.Node("client").Command(t.Context(), "sleep", "1000")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sleep.Wait(); err == nil {
		t.Error("the process in the lab exited by itself")
	}
	nothingLeft(t, name)
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// nothingLeft checks that the lab has no files, names and namespaces.
func nothingLeft(t *testing.T, name string) {
	t.Helper()
	for _, pattern := range []string{"/run/netns/hg-" + name + "-*", "/run/headgate/lab/" + name + ".json", "/run/headgate/lab/." + name + ".tmp", "/run/headgate/lab/" + name + ".ovs"} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(mounts, []byte("hg-"+name+"-")) {
		t.Error("a namespace is still mounted")
	}
}

func TestUpFailureRemovesAll(t *testing.T) {
	labtest.NeedRoot(t)
	topology := lab.Rig(lab.RigOptions{Name: lab.UniqueName("fails"), Sysctl: map[string]string{"net.ipv4.tcp_ecn": "many"}})
	_, err := lab.Up(t.Context(), topology)
	if !errors.Is(err, lab.ErrConfig) || !strings.Contains(fmt.Sprint(err), "node client: cannot set net.ipv4.tcp_ecn") {
		t.Errorf("error is %v", err)
	}
	nothingLeft(t, topology.Name)
}

// Sysctls and offloads apply only to their own namespace, in the chain with offload off between a and
// r1.
func TestNodeSettings(t *testing.T) {
	topology := chain()
	topology.Nodes[0].Sysctl = map[string]string{"net.ipv4.tcp_ecn": "1"}
	topology.Links[0].NoOffload = true
	l := labtest.Up(t, topology)
	for node, want := range map[string]string{"a": "1", "b": "2"} {
		var got []byte
		err := l.Node(node).Do(func() (err error) { got, err = os.ReadFile("/proc/sys/net/ipv4/tcp_ecn"); return err })
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("tcp_ecn of %s is %s (%v), want %s", node, got, err, want)
		}
	}
	for node, want := range map[string]string{"a": "off", "c": "on"} {
		out := labtest.Run(t, l.Node(node), "ethtool", "-k", "r1")
		for _, feature := range []string{"tx-tcp-segmentation", "generic-segmentation-offload", "tx-checksumming"} {
			if !strings.Contains(out, feature+": "+want) {
				t.Errorf("%s of %s is not %s", feature, node, want)
			}
		}
	}
}

// A command sees the node's devices and this process's own mounts, however it is run.
func TestCommand(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	client := l.Node("client")
	list := func() *lab.Cmd { return client.Command(t.Context(), "ls", "/proc/self/net/dev_snmp6") }
	for name, run := range map[string]func() ([]byte, error){
		"Output":         func() ([]byte, error) { return list().Output() },
		"CombinedOutput": func() ([]byte, error) { return list().CombinedOutput() },
		"Run": func() ([]byte, error) {
			var b bytes.Buffer
			c := list()
			c.Stdout = &b
			err := c.Run()
			return b.Bytes(), err
		},
	} {
		if out, err := run(); err != nil || string(out) != "lo\nrouter\n" {
			t.Errorf("%s: devices %q, error %v", name, out, err)
		}
	}
	// The mounts of this thread: the process's first thread may have been left in a namespace of an
	// earlier lab.
	mounts, err := os.Readlink("/proc/thread-self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	if out := labtest.Run(t, client, "readlink", "/proc/self/ns/mnt"); strings.TrimSpace(out) != mounts {
		t.Errorf("mount namespace %s, want %s", out, mounts)
	}
	if _, err := client.Command(t.Context(), "false").Output(); err == nil {
		t.Error("a failing command gives no error")
	}
}

// A lab can be entered only when all of it is there.
func TestAttachWhileCreated(t *testing.T) {
	labtest.NeedRoot(t)
	topology := lab.Rig(lab.RigOptions{Name: lab.UniqueName("creating")})
	up := make(chan error, 1)
	go func() {
		l, err := lab.Up(t.Context(), topology)
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		up <- err
	}()
	early := false
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		l, err := lab.Attach(topology.Name)
		if err == nil {
			defer l.Close()
			labtest.Run(t, l.Node("client"), "ping", "-q", "-c", "1", "-W", "1", "10.0.1.2")
			break
		}
		if !errors.Is(err, lab.ErrConfig) {
			t.Fatal(err)
		}
		early = early || strings.Contains(err.Error(), "being created")
	}
	if err := <-up; err != nil || !early {
		t.Errorf("error %v, refused while it was created: %v", err, early)
	}
}

// Another process attaches to a lab that was left, and takes it down.
func TestLeaveAttachDown(t *testing.T) {
	labtest.NeedRoot(t)
	name := lab.UniqueName("leave")
	l, err := lab.Up(t.Context(), lab.Rig(lab.RigOptions{Name: name}))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Leave(), l.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := lab.Attach(name)
	if err != nil {
		t.Fatal(err)
	}
	labtest.Run(t, again.Node("client"), "ping", "-q", "-c", "1", "-W", "1", "10.0.1.2")
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Up(t.Context(), lab.Rig(lab.RigOptions{Name: name})); !errors.Is(err, lab.ErrConfig) {
		t.Errorf("Up over a lab that was left: %v", err)
	}
	if err := lab.Down(name); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, name)
	if err := lab.Down(name); !errors.Is(err, lab.ErrConfig) {
		t.Errorf("Down of nothing: %v", err)
	}
}
