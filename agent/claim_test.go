package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// claimEnv makes TestClaimChild write claims in a directory until it is killed.
const claimEnv = "HEADGATE_TEST_CLAIM"

// claimOf returns one of two claims that are written in turn: with many connections, or with few.
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
		return // run by TestClaimKilled only
	}
	c, err := NewClaim(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		made, assigned := claimOf(n)
		if err := c.write(stateFileContent{Devs: []string{"eth0"}, Sources: []string{"files"}, AppliedHashes: made, Assigned: assigned}); err != nil {
			t.Fatal(err)
		}
	}
}

// Owner holds the claim's lock for a moment; that does not prevent an agent from starting.
func TestClaimDuringOwnerQueries(t *testing.T) {
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

// A reader finds a complete claim, both while the claim is written and after the agent was killed
// during a write.
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
				t.Fatal("the child has written no claim")
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
			t.Errorf("%d reads during writes found no owner", lost)
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
		if got.AppliedHashes["eth0"] != made["eth0"] || len(got.Assigned["eth0"]) != len(assigned["eth0"]) {
			t.Fatalf("after a kill the claim has %v and %d connections", got.AppliedHashes, len(got.Assigned["eth0"]))
		}
	}
}

// A change of the origin of groups alone is published, and applies nothing.
func TestChangeOfOrigin(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.desired(2, "1Gbit")
		applied := len(m.applied)
		for _, origin := range []group.Origin{group.OriginTenant, group.OriginFile} {
			m.origin = origin
			m.reload <- struct{}{}
			m.after(settleDelay)
			got := Origins(m.dir, "eth0")
			if origin == group.OriginFile && len(got) > 0 || origin != group.OriginFile && (len(got) == 0 || got["out/rest"] != origin) {
				t.Errorf("the origins are %v, want %v", got, origin)
			}
		}
		if len(m.applied) != applied {
			t.Errorf("a change of origin was applied: %v", m.applied[applied:])
		}
	})
}
