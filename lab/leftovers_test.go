package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/unit"
)

// TestMain is also the program that the tests kill: it has a lab with a delay link and a limited link,
// or with switches, and a process in it.
func TestMain(m *testing.M) {
	name := os.Getenv("LAB_TO_KILL")
	if name == "" {
		os.Exit(m.Run())
	}
	err := func() error {
		topology, node := lab.Rig(lab.RigOptions{Name: name, RTT: time.Millisecond, Bottleneck: 100 * unit.Mbit}), "client"
		if os.Getenv("LAB_TO_KILL_HAS") == "switches" {
			topology, node = pair(lab.Standalone), "h1"
			topology.Name = name
		}
		l, err := lab.Up(context.Background(), topology)
		if err != nil {
			return err
		}
		sleep := l.Node(node).Command(context.Background(), "sleep", "1000")
		if err := sleep.Start(); err != nil {
			return err
		}
		fmt.Println(sleep.Process.Pid)
		select {}
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func startVictim(t *testing.T, name string) (*exec.Cmd, io.Reader) {
	t.Helper()
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), "LAB_TO_KILL="+name)
	victim.Stderr = os.Stderr
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill() })
	return victim, out
}

func leftover(t *testing.T, name string) *lab.Leftover {
	t.Helper()
	all, err := lab.Leftovers()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// A lab whose owner was killed is found and removed, with the process in it, but not while the owner
// lives.
func TestDownAfterKill(t *testing.T) {
	labtest.NeedRoot(t)
	name := lab.UniqueName("kill")
	victim, out := startVictim(t, name)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	inside, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if l := leftover(t, name); l == nil || !l.InUse || l.Owner != victim.Process.Pid {
		t.Errorf("while it runs: %+v", l)
	}
	if err := lab.Down(name); err == nil {
		t.Error("Down of a lab in use did not fail")
	}
	victim.Process.Kill()
	victim.Wait()
	if l := leftover(t, name); l == nil || l.InUse || l.Kept {
		t.Errorf("after the kill: %+v", l)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", inside)); err != nil {
		t.Error("the process in the lab died with its parent: this test proves nothing")
	}
	if err := lab.Down(name); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, name)
	if leftover(t, name) != nil {
		t.Error("the lab is still listed")
	}
	if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", inside)); err == nil && !strings.Contains(string(state), ") Z ") {
		t.Errorf("the process in the lab still runs: %s", state)
	}
}

// A lab whose state file is lost with its owner is found by its namespaces and removed, with the
// process in it. A foreign namespace is not removed, whatever its name is.
func TestDownWithoutFile(t *testing.T) {
	labtest.NeedRoot(t)
	name := lab.UniqueName("lost")
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	other := "hg-" + name + "-other"
	ip("netns", "add", other)
	defer ip("netns", "del", other)
	victim, out := startVictim(t, name)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	victim.Process.Kill()
	victim.Wait()
	if err := os.Remove("/run/headgate/lab/" + name + ".json"); err != nil {
		t.Fatal(err)
	}
	if l := leftover(t, name); l == nil || l.InUse || l.Kept {
		t.Errorf("without its file: %+v", l)
	}
	if err := lab.Down(name); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"client", "router", "server"} {
		if _, err := os.Stat("/run/netns/hg-" + name + "-" + node); err == nil {
			t.Errorf("node %s is left", node)
		}
	}
	if state, err := os.ReadFile("/proc/" + strings.TrimSpace(line) + "/stat"); err == nil && !strings.Contains(string(state), ") Z ") {
		t.Errorf("the process in the lab still runs: %s", state)
	}
	if leftover(t, name) != nil {
		t.Error("the lab is still listed")
	}
	if _, err := os.Stat("/run/netns/" + other); err != nil {
		t.Errorf("a namespace that is not a lab's: %v", err)
	}
}

// A program that is killed while it first writes its lab's state file leaves a temporary file.
func TestDownOfCutShortFile(t *testing.T) {
	labtest.NeedRoot(t)
	name := lab.UniqueName("short")
	path := "/run/headgate/lab/." + name + ".tmp"
	if err := os.MkdirAll("/run/headgate/lab", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if leftover(t, name) == nil {
		t.Error("the lab is not listed")
	}
	if err := lab.Down(name); err != nil {
		t.Error(err)
	}
	nothingLeft(t, name)
}

// Down or the next Up removes the lab whenever its owner is killed. Up takes some ms on such a
// machine, so the kills come at intervals of half of that.
func TestKillAnywhere(t *testing.T) {
	labtest.NeedRoot(t)
	found := 0
	for i := range 24 {
		name := fmt.Sprintf("%s-%d", lab.UniqueName("any"), i)
		victim, _ := startVictim(t, name)
		// A test binary takes about 10 ms until TestMain.
		time.Sleep(8*time.Millisecond + time.Duration(i)*500*time.Microsecond)
		victim.Process.Kill()
		victim.Wait()
		if leftover(t, name) == nil {
			nothingLeft(t, name)
			continue
		}
		found++
		if i%2 == 0 {
			if err := lab.Down(name); err != nil {
				t.Fatal(err)
			}
		} else {
			l, err := lab.Up(t.Context(), lab.Rig(lab.RigOptions{Name: name}))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		nothingLeft(t, name)
	}
	t.Logf("%d of 24 kills left something", found)
	if found == 0 {
		t.Error("no kill came while the lab existed: adjust the times")
	}
}
