// Package storetest runs a store for tests: a real etcd as a child process of the test.
package storetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/etcd"
)

// childEnv makes a test binary run as the store's child process.
const childEnv = "HEADGATE_TEST_STORE"

// parallel is how many tests run in parallel: they mostly wait for disks, elections and leases.
const parallel = "4"

// Main must be called first in TestMain. In the child process it does not return.
func Main() {
	if os.Getenv(childEnv) == "" {
		if err := flag.Set("test.parallel", parallel); err != nil { // a flag on the command line overrides this
			panic(err)
		}
		return
	}
	if err := etcd.RunChild(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Member is a running member.
type Member struct {
	etcd.Member
	// Stop stops the member as its parent would.
	Stop func()
}

// firstPort starts a range below the kernel's ephemeral ports, so that a member's port stays free while
// the member is stopped. Each test binary starts at a random port of the range and uses each port once.
const firstPort, somePorts = 20_000, 12_000

var lastPort atomic.Int32

func init() { lastPort.Store(rand.Int32N(somePorts)) }

// Ports returns n ports on loopback without a listener.
func Ports(t testing.TB, n int) (ports []int) {
	t.Helper()
	for len(ports) < n {
		port := firstPort + int(lastPort.Add(1))%somePorts
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			ports = append(ports, port)
		} else if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
	return ports
}

// Start runs a single-member store in a temporary directory.
func Start(t testing.TB) *Member {
	t.Helper()
	ports := Ports(t, 2)
	return Run(t, etcd.Member{Name: "c1", Peers: map[string]string{"c1": "127.0.0.1"}, Dir: t.TempDir(), ClientPort: ports[0], PeerPort: ports[1]})
}

// Command returns the command for etcd.Member.Run: this test binary, of which Main runs the store.
func Command(t testing.TB) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"env", childEnv + "=1", self}
}

// Run runs a member.
func Run(t testing.TB, m etcd.Member) *Member {
	t.Helper()
	if err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	command := Command(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx, command) }()
	out := &Member{Member: m}
	out.Stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		out.Stop = func() {}
	}
	t.Cleanup(func() { out.Stop() })
	return out
}

// Kill ends the member's process as kill -9 does. Run starts it again.
func (m *Member) Kill(t testing.TB) {
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Error(err)
	}
	killed := 0
	for _, file := range found {
		args, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(args), m.Dir+"/") {
			continue // it has ended, or is another
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Error(err)
		}
		killed++
	}
	if killed != 1 {
		t.Errorf("%d processes have %s, want 1", killed, m.Dir)
	}
}

// Open connects to a member.
func Open(t testing.TB, m *Member) *store.Store {
	t.Helper()
	tls, err := m.TLS()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := store.Open(ctx, store.Endpoint{URLs: m.URLs(), TLS: tls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
