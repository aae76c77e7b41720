package view

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminalEnv makes the test binary a program that only starts and exits.
const terminalEnv = "HEADGATE_TEST_TERMINAL"

func TestMain(m *testing.M) {
	if os.Getenv(terminalEnv) != "" {
		fmt.Printf("started, CI=%q\n", os.Getenv("CI"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestTerminalNotQueried checks that a program with this package starts without a
// query of the terminal, and without CI in its environment.
func TestTerminalNotQueried(t *testing.T) {
	ours, theirs := pseudoTerminal(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{terminalEnv + "=1", "TERM=xterm-256color"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := ours.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(buf[:n])); got != `started, CI=""` {
		t.Errorf("the terminal got %q", got)
	}
}

// pseudoTerminal opens a pseudo-terminal and returns both ends.
func pseudoTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("cannot open a pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { ours.Close() })
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("cannot open a pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}
