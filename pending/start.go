package pending

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Ready is the line that a process started by StartWaiter prints when Wait calls ready.
const Ready = "ready"

// StartWaiter starts the process that calls Wait, in a new session, so that the process outlives the caller's
// session. Its errors are appended to rollback.log in dir. It returns when the process is ready.
func StartWaiter(cmd *exec.Cmd, dir string) error {
	log, err := os.OpenFile(filepath.Join(dir, "rollback.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Dir = "/"
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != Ready+"\n" {
		err := cmd.Wait()
		return fmt.Errorf("the process exited early (%v): see %s", err, log.Name())
	}
	return cmd.Process.Release()
}
