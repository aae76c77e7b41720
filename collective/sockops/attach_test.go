package sockops_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/lab/labtest"
)

// A connection whose clamp is lifted continues with its window: it is not in slow start,
// in which TCP_BPF_SNDCWND_CLAMP alone leaves it. The congestion control is unregistered
// with the table.
func TestThreshold(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	for _, congestion := range []string{"reno", "cubic"} {
		labtest.Try(t, func(t *labtest.Check) {
			tab := table(t, cgroup, 16)
			s := start(t, rig(t), 1, 10*time.Second, congestion)
			defer func() { s.Stop(); s.Wait() }()
			time.Sleep(500 * time.Millisecond)
			tab.Cap(sending(tab)[0], 0, 6, sockops.Now()+time.Second)
			time.Sleep(500 * time.Millisecond)
			tab.Lift()
			time.Sleep(200 * time.Millisecond) // ten round trips: slow start would double 6 packets ten times
			if c := sending(tab)[0]; c.Clamped != 0 || c.Threshold > 12 || c.Window > 40 {
				t.Errorf("%s: 200 ms after the release: window %d, threshold %d, clamp %d", congestion, c.Window, c.Threshold, c.Clamped)
			}
			if !registered(t) {
				t.Errorf("%s: the congestion control of the table is not registered", congestion)
			}
		})
		for since := time.Now(); registered(t); time.Sleep(20 * time.Millisecond) {
			if time.Since(since) > 5*time.Second {
				t.Fatalf("%s: the congestion control is registered 5 s after the table was removed", congestion)
			}
		}
	}
}

// registered reports whether the congestion control of this process's table is
// registered.
func registered(t testing.TB) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	hash := fnv.New32a()
	hash.Write([]byte(tableName()))
	return slices.Contains(strings.Fields(string(text)), fmt.Sprintf("hg_%08x", hash.Sum32()))
}

// A connection that was made in a removed cgroup is released like any other. A new cgroup
// with the same name is followed.
func TestFollow(t *testing.T) {
	labtest.NeedRoot(t)
	cgroup := labtest.Cgroup(t)
	labtest.Try(t, func(t *labtest.Check) {
		tab := table(t, cgroup, 64)
		l := rig(t)
		s := start(t, l, 1, 30*time.Second, "cubic")
		defer func() { s.Stop(); s.Wait() }()
		time.Sleep(500 * time.Millisecond)
		tab.Cap(sending(tab)[0], 1e6/8, 0, sockops.Now()+3*time.Second)
		labtest.Enter(t, filepath.Dir(cgroup))
		if err := os.Remove(cgroup); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		if c := sending(tab)[0]; c.Paced != 1e6/8 {
			t.Errorf("pace in force is %d", c.Paced)
		}
		time.Sleep(3500 * time.Millisecond)
		if c := sending(tab)[0]; c.Paced != 0 {
			t.Errorf("pace in force a second after the lease is %d", c.Paced)
		}
		if err := os.Mkdir(cgroup, 0o755); err != nil {
			t.Fatal(err)
		}
		labtest.Enter(t, cgroup)
		open := func(want int, when string) {
			again := start(t, l, 1, 10*time.Second, "cubic")
			defer func() { again.Stop(); again.Wait() }()
			time.Sleep(300 * time.Millisecond)
			if n := len(sending(tab)); n != want {
				t.Errorf("%s: %d connections are in the table, want %d", when, n, want)
			}
		}
		open(1, "before Follow")
		if err := tab.Follow(7, below(cgroup)); err != nil {
			t.Fatal(err)
		}
		open(2, "after Follow")
	})
}

// paceOf returns the maximum pacing rate of a connection, in bytes per second.
func paceOf(t testing.TB, c *net.TCPConn) int {
	t.Helper()
	pace, err := unix.GetsockoptInt(int(file(t, c).Fd()), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
	if err != nil {
		t.Fatal(err)
	}
	return pace
}

// capped returns a connection with a pace in force for the time lease.
func capped(t testing.TB, tab *sockops.Table, lease time.Duration) *net.TCPConn {
	t.Helper()
	a, _ := pipe(t)
	tab.Cap(sending(tab)[0], 1e6/8, 0, sockops.Now()+lease)
	write(t, a)
	if got := paceOf(t, a); got != 1e6/8 {
		t.Fatalf("pace in force is %d bytes/s, want 125000", got)
	}
	return a
}

// write sends data, so that there is something to acknowledge.
func write(t testing.TB, c *net.TCPConn) {
	t.Helper()
	if _, err := c.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
}

// The programs of the other sets release a connection whose set was removed.
func TestAbandon(t *testing.T) {
	labtest.NeedRoot(t)
	tab := table(t, labtest.Cgroup(t), 16)
	a := capped(t, tab, time.Hour)
	if err := tab.Attach(sockops.Set{Number: 8}); err != nil {
		t.Fatal(err)
	}
	if err := tab.Detach(8); err != nil {
		t.Fatal(err)
	}
	tab.RemoveConnections(func(c *sockops.Connection) bool { return c.Set == 8 })
	tab.Lift()
	write(t, a)
	if got := paceOf(t, a); got == 1e6/8 {
		t.Error("the connection is capped although it is in no set")
	}
}

// The table of another build is left to its programs. They add no more connections,
// release theirs, and are then removed.
func TestAnotherBuild(t *testing.T) {
	labtest.NeedRoot(t)
	tab := table(t, labtest.Cgroup(t), 16)
	a := capped(t, tab, 500*time.Millisecond)
	pinned := func(name string) *ebpf.Map {
		m, err := ebpf.LoadPinnedMap("/sys/fs/bpf/headgate/collective/"+tableName()+"/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	if err := pinned("counts").Put(uint32(2), uint64(1)); err != nil {
		t.Fatal(err)
	}
	slots := pinned("slots")
	used := func() (n int) {
		for i := range slots.MaxEntries() {
			value, err := slots.LookupBytes(i)
			if err != nil {
				t.Fatal(err)
			}
			if binary.NativeEndian.Uint64(value) != 0 {
				n++
			}
		}
		return n
	}
	left := func(want int, when string) {
		t.Helper()
		pins, err := filepath.Glob("/sys/fs/bpf/headgate/collective/" + tableName() + "/before-*")
		if err != nil || len(pins) != want {
			t.Errorf("%s: pins of the other build are %v, %v, want %d", when, pins, err, want)
		}
	}
	tab.Close()
	again := open(t, 32)
	if again.Size() != 32 || len(sending(again)) != 0 {
		t.Errorf("the new table has %d slots and %d connections", again.Size(), len(sending(again)))
	}
	if got := paceOf(t, a); got != 1e6/8 {
		t.Errorf("pace in force before the end of the lease is %d bytes/s", got)
	}
	had := used()
	pipe(t)
	if now := used(); had != 2 || now != had {
		t.Errorf("the other build's table had %d ends of connections, and has %d after another connection", had, now)
	}
	again.Close()
	time.Sleep(500 * time.Millisecond)
	open(t, 32).Close()
	left(1, "while a connection is capped")
	again = open(t, 32)
	if held, err := again.RetireOtherBuilds(); held != 1 || err != nil {
		t.Errorf("the other build's program holds %d connections, %v", held, err)
	}
	again.Close()
	write(t, a)
	if got := paceOf(t, a); got == 1e6/8 {
		t.Error("the connection is capped after the lease")
	}
	open(t, 32).Close()
	left(0, "when none is")
}

// A socket that is disconnected and connects again is a new connection without a cap.
func TestReconnect(t *testing.T) {
	labtest.NeedRoot(t)
	tab := table(t, labtest.Cgroup(t), 16)
	a := capped(t, tab, time.Hour)
	var seen, gone []collective.ID
	look := func() {
		tab.Look(func(c *sockops.Connection) {
			if !c.Passive {
				seen = append(seen, c.ID)
			}
		}, func(e sockops.Ended) { gone = append(gone, e.ID) })
	}
	look()
	f := int(file(t, a).Fd())
	remote, err := unix.Getpeername(f)
	if err != nil {
		t.Fatal(err)
	}
	// The standard library does not support AF_UNSPEC here.
	unspecified := [16]byte{}
	if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(f), uintptr(unsafe.Pointer(&unspecified)), 16); e != 0 {
		t.Fatal(e)
	}
	if got := paceOf(t, a); got == 1e6/8 {
		t.Error("the connection is capped after it ended")
	}
	l, err := net.Listen("tcp", a.RemoteAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := unix.Connect(f, remote); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	look()
	if len(seen) != 2 || seen[0] != seen[1] || !slices.Contains(gone, seen[0]) {
		t.Errorf("changed connections are %d, ended ones %d", seen, gone)
	}
}
