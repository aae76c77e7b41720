package service

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab/labtest"
)

// A process has its own time of day, which can change. The shell's date(1) uses the vDSO, so the test
// uses a program that makes the system call.
func TestClock(t *testing.T) {
	labtest.NeedRoot(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	// syscall(SYS_clock_gettime, CLOCK_REALTIME, &timespec)
	const asks = `import ctypes, platform
number = {"x86_64": 228, "aarch64": 113}[platform.machine()]
at = (ctypes.c_long * 2)()
assert ctypes.CDLL(None).syscall(number, 0, at) == 0
print(at[0])`
	var c clock
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		c.set(ahead)
		var out strings.Builder
		cmd := exec.Command(python, "-c", asks)
		cmd.Stdout = &out
		if err := c.keeping(cmd.Start); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		got, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Until(time.Unix(got, 0)) - ahead; off < -10*time.Second || off > 10*time.Second {
			t.Errorf("ahead by %v: it is off by %v", ahead, off)
		}
	}
}
