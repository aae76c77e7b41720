package shapertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"headgate.dev/headgate/shaper"
)

// Environment variables: the task of a child process, and the seed for reproducing a failure.
const (
	childEnv = "HEADGATE_SHAPERTEST_CHILD"
	seedEnv  = "HEADGATE_SHAPERTEST_SEED"
)

func envSeed() uint64 {
	n, _ := strconv.ParseUint(os.Getenv(seedEnv), 10, 64)
	return n
}

func init() {
	// The child works only in its first thread, which is the traced one. In an init function
	// this locks the thread that runs main.
	if os.Getenv(childEnv) != "" {
		runtime.LockOSThread()
	}
}

// Main is for an engine's TestMain: the suite runs the test binary again for cases that need a
// process of their own.
func Main(m *testing.M, engine func() shaper.Shaper) {
	task := os.Getenv(childEnv)
	if task == "" {
		os.Exit(m.Run())
	}
	if err := child(task, engine()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(task string, engine shaper.Shaper) error {
	switch task {
	case "apply":
		var p shaper.Plan
		if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
			return err
		}
		_, err := engine.Apply(p)
		return err
	case "clear":
		return engine.Clear(dev)
	case "send":
		// Send ten datagrams to the given address.
		to, err := net.ResolveUDPAddr("udp", os.Args[len(os.Args)-1])
		if err != nil {
			return err
		}
		c, err := net.ListenUDP("udp", nil) // not connected, so that ICMP errors of a missing receiver are not returned
		if err != nil {
			return err
		}
		for range 10 {
			if _, err := c.WriteTo(make([]byte, 100), to); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("unknown task %q", task)
}

// Apply returns a command that runs this test binary to apply a plan in the namespace in which
// it is started.
func Apply(t testing.TB, plan shaper.Plan) *exec.Cmd {
	t.Helper()
	return command(t, "apply", &plan)
}

// command returns a command that runs this test binary with a task, in the namespace in which
// it is started. plan is for "apply".
func command(t testing.TB, task string, plan *shaper.Plan, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), childEnv+"="+task)
	var errs bytes.Buffer
	c.Stderr = &errs
	if plan != nil {
		text, err := json.Marshal(plan)
		if err != nil {
			t.Fatal(err)
		}
		c.Stdin = bytes.NewReader(text)
	}
	return c
}
