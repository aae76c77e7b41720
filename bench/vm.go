package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const vmScript = "scripts/test-vm"

// InVM runs a shell script in the virtual machine of scripts/test-vm, whose kernel is Debian's, and returns its output. It needs the source
// tree as working directory. $CACHE is the folder of the compiled tests and of the program. The machine has limit to boot and to run the
// script.
func InVM(ctx context.Context, limit time.Duration, script string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(vmScript); err != nil {
		return "", fmt.Errorf("cannot find %s: run the benchmark in the source tree", vmScript)
	}
	// The machine sees the source tree, and nothing else of this one.
	if err := os.MkdirAll(".cache", 0o755); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(dir+"/.cache", "bench-vm-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	fmt.Fprintf(file, "#!/bin/sh\nCACHE='%s/.cache/vm'\n%s\n", dir, script)
	if err := errors.Join(file.Chmod(0o755), file.Close()); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, vmScript, file.Name())
	// QEMU is a grandchild: the whole process group is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("cannot run the virtual machine: %w: %s", err, LastLines(out.String()))
	}
	return out.String(), nil
}
