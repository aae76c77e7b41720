package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"headgate/shaper"
)

// claimEnv has TestClaimChild write claims in a folder until it is killed.
const claimEnv = "HEADGATE_TEST_CLAIM"

// claimOf is one of the two that are written in turn: many connections, or few.
func claimOf(n int) (made map[string]string, assigned map[string][]shaper.Assignment) {
	for port := range 1 + n%2*3000 {
		c := connection(port + 1)
		assigned = map[string][]shaper.Assignment{"eth0": append(assigned["eth0"], shaper.Assignment{Conn: c, Group: fmt.Sprint("a", n%2)})}
	}
	return map[string]string{"eth0": fmt.Sprint("mark ", n%2)}, assigned
}

func TestClaimChild(t *testing.T) {
	dir := os.Getenv(claimEnv)
	if dir == "" {
		return // it is for TestClaimKilled
	}
	c, err := NewClaim(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		made, assigned := claimOf(n)
		if err := c.write([]string{"eth0"}, []string{"files"}, made, assigned); err != nil {
			t.Fatal(err)
		}
	}
}

// Who asks for a device's owner has the claim's lock for a moment, and keeps no agent from beginning.
func TestClaimAmongAskers(t *testing.T) {
	dir := t.TempDir()
	ctx, end := context.WithCancel(t.Context())
	var asker sync.WaitGroup
	asker.Go(func() {
		for ctx.Err() == nil {
			Owner(dir, "eth0")
		}
	})
	for range 200 {
		c, err := NewClaim(dir, nil)
		if err != nil {
			t.Error(err)
			break
		}
		c.Close()
	}
	end()
	asker.Wait()
}

// Whoever is told of an agent's claim while it is written, and who comes after an agent that was
// killed as it wrote, finds a whole one.
func TestClaimKilled(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		child := exec.Command(os.Args[0], "-test.run=^TestClaimChild$")
		child.Env = append(os.Environ(), claimEnv+"="+dir)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			if _, _, ok := Owner(dir, "eth0"); ok {
				break
			}
			if time.Now().After(until) {
				t.Fatal("the child claims nothing")
			}
		}
		lost := 0
		for until := time.Now().Add(time.Duration(20+i) * time.Millisecond); time.Now().Before(until); {
			if _, source, ok := Owner(dir, "eth0"); !ok || source != "files" {
				lost++
			}
		}
		child.Process.Kill()
		child.Wait()
		if lost > 0 {
			t.Errorf("%d times nobody had the device while the claim was written", lost)
		}
		c, err := NewClaim(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := c.earlier
		c.Close()
		n := 0
		if len(got.Assigned["eth0"]) > 1 {
			n = 1
		}
		made, assigned := claimOf(n)
		if got.Made["eth0"] != made["eth0"] || len(got.Assigned["eth0"]) != len(assigned["eth0"]) {
			t.Fatalf("after a kill there are %v and %d connections", got.Made, len(got.Assigned["eth0"]))
		}
	}
}
