package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Names of a lab can be removed after ip-netns created its first.
func TestNamesBesideIP(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	failed := make(chan string, 1)
	go func() {
		// In a mount namespace of its own, which ends with the thread.
		runtime.LockOSThread()
		failed <- func() string {
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return err.Error()
			}
			if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
				return err.Error()
			}
			if err := unix.Mount("none", filepath.Dir(netnsDir), "tmpfs", 0, ""); err != nil {
				return err.Error()
			}
			f, err := newNamespace("headgate-test")
			if err != nil {
				return err.Error()
			}
			f.Close()
			if out, err := exec.Command("ip", "netns", "add", "headgate-other").CombinedOutput(); err != nil {
				return err.Error() + string(out)
			}
			if err := dropName("headgate-test"); err != nil {
				return err.Error()
			}
			return ""
		}()
	}()
	if why := <-failed; why != "" {
		t.Error(why)
	}
}
