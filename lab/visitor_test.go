package lab_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/lab"
	"headgate/lab/labtest"
)

const visitEnv = "LAB_TO_VISIT"

func init() {
	if os.Getenv(visitEnv) == "" {
		return
	}
	// The first thread, which is what /proc/PID/ns says.
	runtime.LockOSThread()
	err := func() error {
		ns, err := os.Open(os.Getenv(visitEnv))
		if err != nil {
			return err
		}
		return errors.Join(unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET), ns.Close())
	}()
	fmt.Println("there", err)
	time.Sleep(30 * time.Second)
	os.Exit(1)
}

// A program that visits every namespace of the machine is not killed as a lab that it looks at is
// taken down.
func TestVisitorLives(t *testing.T) {
	labtest.NeedRoot(t)
	l, err := lab.Up(t.Context(), lab.Rig(lab.RigOptions{Name: lab.UniqueName("visited")}))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), visitEnv+"=/run/netns/"+l.Node("client").Namespace())
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "there <nil>" {
		t.Fatalf("it says %q", lines.Text())
	}
	go func() { ended <- c.Wait() }()
	defer func() { c.Process.Kill(); <-ended }()
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	select {
	case err := <-ended:
		ended <- err
		t.Errorf("it ended with %v", err)
	case <-time.After(time.Second):
	}
	c.Process.Kill() // the namespace stays for as long as somebody is there
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
