// Package storetest runs a store for tests: a real etcd, as a child of the test.
package storetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"headgate/store"
	"headgate/store/etcd"
)

// childEnv makes a test's binary the store's child.
const childEnv = "HEADGATE_TEST_STORE"

// atOnce is how many tests run at once: they wait, for disks, elections and leases, for most of their time.
const atOnce = "4"

// Main is to be called first in TestMain: in the child it does not return.
func Main() {
	if os.Getenv(childEnv) == "" {
		if err := flag.Set("test.parallel", atOnce); err != nil { // unless the command line says it
			panic(err)
		}
		return
	}
	if err := etcd.Child(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Member is one that runs.
type Member struct {
	etcd.Member
	// Stop ends it as its parent would.
	Stop func()
}

// Ports from firstPort on are below those that the kernel gives to connections, and to who listens at any: a
// member's stays free while it is away. Programs begin somewhere, and give none twice.
const firstPort, somePorts = 20_000, 12_000

var lastPort atomic.Int32

func init() { lastPort.Store(rand.Int32N(somePorts)) }

// Ports are so many that nobody listens at on loopback.
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

// Start runs a member of its own in a folder of the test's.
func Start(t testing.TB) *Member {
	t.Helper()
	ports := Ports(t, 2)
	return Run(t, etcd.Member{Name: "c1", Peers: map[string]string{"c1": "127.0.0.1"}, Dir: t.TempDir(), ClientPort: ports[0], PeerPort: ports[1]})
}

// Run runs a member.
func Run(t testing.TB, m etcd.Member) *Member {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx, []string{"env", childEnv + "=1", self}) }()
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
