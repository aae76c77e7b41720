package bpfobj

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/cgroup2"
)

const hiddenEnv = "HEADGATE_TEST_HIDDEN"

// TestMain also runs as the process for which /sys is hidden, as `ip netns exec` does. It looks for
// a directory that the test created, and for the cgroups.
func TestMain(m *testing.M) {
	folder := os.Getenv(hiddenEnv)
	if folder == "" {
		os.Exit(m.Run())
	}
	err := func() error {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := unix.Unmount("/sys", unix.MNT_DETACH); err != nil {
			return err
		}
		if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
			return err
		}
		if isBPF(mountPoint) {
			return fmt.Errorf("%s is not hidden: the test proves nothing", mountPoint)
		}
		root, ok := FS()
		if !ok {
			return ErrNoFS
		}
		if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
			return fmt.Errorf("found a different file system: %w", err)
		}
		_, err := cgroup2.ID("/")
		return err
	}()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func TestOutsideOfIPNetnsExec(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root (CAP_SYS_ADMIN) to create a mount namespace")
	}
	folder := fmt.Sprintf("headgate-test-%d", os.Getpid())
	dir, err := PinDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	inside := exec.Command(os.Args[0])
	inside.Env = append(os.Environ(), hiddenEnv+"="+folder)
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if out, err := inside.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
