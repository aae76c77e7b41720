// Package labtest creates labs for tests: as root, for the duration of one test.
package labtest

import (
	"os"
	"sync"
	"testing"

	"headgate.dev/headgate/internal/awake"
	"headgate.dev/headgate/lab"
)

// keepAwake applies for the duration of the test program.
var keepAwake = sync.OnceValue(func() error { _, err := awake.Start(); return err })

// NeedRoot skips the test for an ordinary user, and reports the required privileges. It also skips
// under -short, which is for tests that need neither root nor time. From then on it keeps a virtual
// machine's processors awake.
func NeedRoot(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("creates network namespaces: not with -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root (CAP_NET_ADMIN, CAP_SYS_ADMIN) to create network namespaces")
	}
	if err := keepAwake(); err != nil {
		t.Fatal(err)
	}
}

// Up creates the lab and removes it at the end of the test. A topology without a name gets a unique
// one.
func Up(t testing.TB, topology *lab.Topology) *lab.Lab {
	t.Helper()
	NeedRoot(t)
	if topology.Name == "" {
		topology.Name = lab.UniqueName("test")
	}
	l, err := lab.Up(t.Context(), topology)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

// Rig creates the client, router, server network of the benchmarks.
func Rig(t testing.TB, o lab.RigOptions) *lab.Lab {
	t.Helper()
	return Up(t, lab.Rig(o))
}

// Run runs a command in a node and returns its output. The test fails if the command does.
func Run(t testing.TB, n *lab.Node, name string, args ...string) string {
	t.Helper()
	out, err := n.Command(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s in %s: %v\n%s", name, n.Name, err, out)
	}
	return string(out)
}
