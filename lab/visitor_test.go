package lab_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

const visitEnv = "LAB_TO_VISIT"

func init() {
	if os.Getenv(visitEnv) == "" {
		return
	}
	// The first thread, to which /proc/PID/ns refers.
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

// A program that visits every namespace of the machine is not killed when a lab that it visits is
// taken down; it is listed among the processes that keep a namespace.
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
		t.Fatalf("unexpected output %q", lines.Text())
	}
	go func() { ended <- c.Wait() }()
	defer func() { c.Process.Kill(); <-ended }()

	// The error of a namespace that is not released lists these.
	var conn net.PacketConn
	if err := l.Node("server").Do(func() (err error) { conn, err = net.ListenPacket("udp", "127.0.0.1:0"); return err }); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	who := strings.Join(l.Holding(), "; ")
	for _, want := range []string{
		fmt.Sprintf("process %d (a thread in %s)", c.Process.Pid, l.Node("client").Namespace()),
		fmt.Sprintf("process %d (a socket in %s)", os.Getpid(), l.Node("server").Namespace()),
		fmt.Sprintf("process %d (an open file in %s)", os.Getpid(), l.Node("router").Namespace()),
	} {
		if !strings.Contains(who, want) {
			t.Errorf("%s is not listed as a user: %s", want, who)
		}
	}
	conn.Close()
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	select {
	case err := <-ended:
		ended <- err
		t.Errorf("the process exited with %v", err)
	case <-time.After(time.Second):
	}
	c.Process.Kill() // the namespace stays while it has a user
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A program that listens in a lab, as those of Go do with MPTCP, does not stop the lab from being taken down once the program has closed.
func TestDownBesideListener(t *testing.T) {
	labtest.NeedRoot(t)
	l, err := lab.Up(t.Context(), lab.Rig(lab.RigOptions{Name: lab.UniqueName("listened")}))
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	if err := l.Node("server").Do(func() (err error) { listener, err = net.Listen("tcp", "127.0.0.1:0"); return err }); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Second, func() { listener.Close() })
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
