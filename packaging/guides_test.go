package packaging

import (
	"io"
	"net"
	"path/filepath"
	"testing"

	"headgate.dev/headgate/lab/labtest"
)

// guideMachine boots a machine with the program in its command path, and the examples. A server of the neighbour discards what is sent to
// its port 873.
func guideMachine(t *testing.T) *machine {
	t.Helper()
	labtest.NeedRoot(t)
	program := filepath.Join(t.TempDir(), "headgate")
	run(t, "cp", binary(release(t, newer), newer), program)
	m, l := machineOf(t, program, "../examples")
	m.must("install headgate /usr/bin")
	serveNeighbour(t, l, "10.0.0.2:873", func(c net.Conn) { io.Copy(io.Discard, c) })
	return m
}

// The commands of the README run a service, with a tenant and its group.
func TestReadmeService(t *testing.T) {
	m := guideMachine(t)
	m.follow("../README.md", "Run a service")
	m.until("headgate show --server default --host web1 | grep shop && headgate show | grep shop && grep ^hg_ shop.token")
}

// The commands of docs/service.md that one machine can run: operate.md and tenants.md have those of several controllers, and of restores.
func TestServiceGuide(t *testing.T) {
	m := guideMachine(t)
	m.must("mkdir -p /backup /etc/headgate && headgate relay key /etc/headgate/relay.key")
	m.must("cat >relay.yaml <<'END'\n" + relayFile + "END\n" + inBackground("headgate relay run -f relay.yaml"))
	for _, part := range []struct{ section, until string }{
		{"Start a controller", ""},
		{"Join a host", ""},
		{"Create a tenant", ""},
		{"Shape an interface and give a group to a tenant", ""},
		// What a section changes on the controller is in force on the host some time later, which its reader does not notice.
		{"Divide a tenant's group", "headgate show | grep backup"},
		{"Assign a connection from a program", ""},
		{"Show history, roll back and audit changes", ""},
		{"Report usage per tenant", ""},
		{"Run connection sets on a host", "headgate collective clear --instance service"},
		{"Remove what a stopped agent left", ""},
		{"Show the relay agents of a host", ""},
		{"Back up and restore the controller", "headgate show --server default --host web1 | grep backup"},
	} {
		m.follow("service.md", part.section)
		if part.until != "" {
			m.until(part.until)
		}
	}
}
