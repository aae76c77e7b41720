// Package labtest makes labs for tests: as root, for the length of one test.
package labtest

import (
	"os"
	"sync"
	"testing"

	"headgate.dev/headgate/internal/awake"
	"headgate.dev/headgate/lab"
)

// keepAwake is for the length of the test program.
var keepAwake = sync.OnceValue(func() error { _, err := awake.Start(); return err })

// NeedRoot skips the test for an ordinary user, and says what it needs; also
// under -short, which is for tests that need neither root nor time. A virtual
// machine's processors stay awake from then on.
func NeedRoot(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("makes network namespaces: not with -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root (CAP_NET_ADMIN, CAP_SYS_ADMIN) to make network namespaces")
	}
	if err := keepAwake(); err != nil {
		t.Fatal(err)
	}
}

// Up makes the lab; the test's end removes it. A topology without a name gets a
// unique one.
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

// Rig makes the client, router, server network of the benches.
func Rig(t testing.TB, o lab.RigOptions) *lab.Lab {
	t.Helper()
	return Up(t, lab.Rig(o))
}

// Run runs a command inside a node, which must succeed, and returns its output.
func Run(t testing.TB, n *lab.Node, name string, args ...string) string {
	t.Helper()
	out, err := n.Command(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s in %s: %v\n%s", name, n.Name, err, out)
	}
	return string(out)
}
