package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// The backup of a controller that listens on an address needs only its data directory, and the service
// continues from a restored data directory.
func TestControllerBackup(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		node := labtest.Rig(t, lab.RigOptions{}).Node("server")
		address, err := node.Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		s := &serviceTest{t: t, node: node, dir: t.TempDir()}
		first, second, file := filepath.Join(s.dir, "controller"), filepath.Join(s.dir, "restored"), filepath.Join(s.dir, "backup")
		begin := func(dir string) *lab.Cmd {
			t.Helper()
			said := len(s.notes.String())
			c := s.start("controller", "--data", dir, "--listen", address.String())
			for until := time.Now().Add(30 * time.Second); !strings.Contains(s.notes.String()[said:], "serving https://"); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("the controller did not start: %s", s.notes.String())
				}
			}
			_, s.pin, _ = strings.Cut(s.notes.String()[said:], "certificate pin ")
			s.pin, _, _ = strings.Cut(s.pin, "\n")
			return c
		}
		running := begin(first)
		pin := s.pin
		s.checkOutput(0, file, "controller", "backup", "--data", first, file)
		s.checkOutput(1, "is not a controller's data directory", "controller", "backup", "--data", s.dir, file+"2")
		if err := running.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = running.Wait()
		s.checkOutput(0, "start the controller", "controller", "restore", file, "--data", second)
		begin(second)
		if s.pin != pin {
			t.Errorf("certificate pin after restore: %s, want %s", s.pin, pin)
		}
		url, old, fresh := "https://"+address.String()+":8420", filepath.Join(first, "operator.token"), filepath.Join(second, "operator.token")
		s.checkOutput(3, "confirm-restore", "login", url, "--pin", pin, "--token-file", old)
		s.checkOutput(0, "logged in as first, operator", "login", url, "--pin", pin, "--token-file", fresh)
		s.checkOutput(0, "refused until confirmed", "controller", "confirm-restore")
		s.checkOutput(2, "--yes is missing", "controller", "confirm-restore", "--revoke-host", "web1")
		s.checkOutput(0, "are permitted", "controller", "confirm-restore", "--yes")
		s.checkOutput(0, "logged in as first, operator", "login", url, "--pin", pin, "--token-file", old)
	})
}
