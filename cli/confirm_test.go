package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/pending"
)

// patience is how long a test waits for an event that is expected within one or two seconds.
const patience = 20 * time.Second

func (w testEnv) waitForLimit(want string) {
	w.Helper()
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		if limit, _ := w.limit("eth0"); limit == want {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	limit, _ := w.limit("eth0")
	w.Fatalf("after %v the limit is %q, want %q; log:\n%s", patience, limit, want, readFile(filepath.Join(w.dir, "state/rollback.log")))
}

func (w testEnv) stage() pending.Stage {
	w.Helper()
	store, err := fakeApp(w.dir).store()
	if err != nil {
		w.Fatal(err)
	}
	_, stage, err := store.Read()
	if err != nil {
		w.Fatal(err)
	}
	return stage
}

// waiter returns the process ID of this world's wait process, which rolls the change back.
func (w testEnv) waiter() int {
	w.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range procs {
		if strings.Contains(readFile(p), fakeEnv+"="+w.dir+"\x00") {
			pid, err := strconv.Atoi(strings.Split(p, "/")[2])
			if err != nil {
				w.Fatal(err)
			}
			return pid
		}
	}
	w.Fatal("no wait process is running")
	return 0
}

func (w testEnv) kill(sig syscall.Signal) {
	w.Helper()
	if err := syscall.Kill(w.waiter(), sig); err != nil {
		w.Fatal(err)
	}
}

func (w testEnv) waitForStage(want pending.Stage) {
	w.Helper()
	end := time.Now().Add(patience)
	for w.stage() != want {
		if time.Now().After(end) {
			w.Fatalf("the stage is %d, want %d", w.stage(), want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestConfirmedIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	r := w.must("apply", "-f", w.config("eth0", "1Gbit"), "--confirm-within", "5s") // confirm must begin before
	if !strings.Contains(r.out, `run "headgate confirm" before then`) {
		t.Errorf("apply does not name the remedy:\n%s", r.out)
	}
	if r := w.must("confirm", "-o", "json"); compact(r.out) != `{"devices":["eth0"],"rolled_back":false}` {
		t.Errorf("confirm: %s", r.out)
	}
	time.Sleep(5500 * time.Millisecond)
	if limit, _ := w.limit("eth0"); limit != "1Gbit" {
		t.Errorf("a confirmed change was rolled back to %q", limit)
	}
	if r := w.run("confirm"); r.code != exitFailed {
		t.Errorf("a second confirm: exit %d, %s", r.code, r.out)
	}
}

func TestUnconfirmedRollsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	f := w.config("eth0", "1Gbit")
	w.must("apply", "-f", f, "--confirm-within", "1s")
	w.waitForLimit("") // to nothing, as before
	w.must("apply", "-f", f)
	w.must("apply", "-f", w.config("eth0", "2Gbit"), "--confirm-within", "5s")
	if limit, _ := w.limit("eth0"); limit != "2Gbit" {
		t.Errorf("the new limit is %q at once, want 2Gbit", limit)
	}
	w.waitForLimit("1Gbit") // to the plan before
	w.waitForStage(pending.None)
	if r := w.must("show"); r.err != "" {
		t.Errorf("a change is still pending: %s", r.err)
	}
}

func TestEngineComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	w.must("apply", "-f", w.config("eth0", "1Gbit"))
	w.must("apply", "-f", w.write("q.yaml", document("eth0", "2Gbit")+"engine: quantum\n"), "--confirm-within", "1s")
	w.waitForLimit("1Gbit")
	if _, ok := (fakeShaper{w.dir, "quantum"}).load("eth0"); ok {
		t.Error("the new engine is still there")
	}
}

// A rollback assigns connections to their groups again, also if the change removed the
// groups.
func TestAssignmentsComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	w.must("apply", "-f", w.config("eth0", "1Gbit"))
	w.must("assign", "rest", "--dev", "eth0", "--conn", "tcp 10.0.0.1:443 10.0.0.2:55000")
	before, _ := fakeShaper{w.dir, group.HTB}.load("eth0")
	w.must("apply", "-f", w.write("q.yaml", document("eth0", "2Gbit")+"engine: quantum\n"), "--confirm-within", "1s")
	w.waitForLimit("1Gbit")
	w.waitForStage(pending.None)
	if after, _ := (fakeShaper{w.dir, group.HTB}).load("eth0"); len(before.Assigned) != 1 || !slices.Equal(after.Assigned, before.Assigned) {
		t.Errorf("assigned after the rollback: %v, want %v", after.Assigned, before.Assigned)
	}
}

func TestNothingToConfirm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	f := w.config("eth0", "1Gbit")
	w.must("apply", "-f", f)
	w.must("apply", "-f", f, "--confirm-within", "1s")
	if w.stage() != pending.None {
		t.Error("a confirmation is pending although nothing was changed")
	}
}

// TestSessionCutOff runs apply in a session of its own and kills all of it, as
// an ssh connection that drops does.
func TestSessionCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	w.must("apply", "-f", w.config("eth0", "1Gbit"))
	f := w.config("eth0", "2Gbit")
	var out bytes.Buffer
	// The shell stays in the session after apply, as a user's would.
	session := exec.Command("sh", "-c", `"$0" apply -f "$1" --confirm-within 2s && echo applied && sleep 60`, os.Args[0], f)
	session.Env = append(os.Environ(), fakeEnv+"="+w.dir)
	session.Stdout, session.Stderr = &out, &out
	session.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := session.Start(); err != nil {
		t.Fatal(err)
	}
	w.waitForLimit("2Gbit")
	w.waitForStage(pending.Waiting)
	time.Sleep(300 * time.Millisecond) // until the shell sleeps
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGKILL} {
		if err := syscall.Kill(-session.Process.Pid, sig); err != nil && sig == syscall.SIGHUP {
			t.Fatalf("%v; output of the session:\n%s", err, out.String())
		}
	}
	_ = session.Wait() // killed
	w.waitForLimit("1Gbit")
}

// TestWaiterTerminated: SIGTERM, at shutdown or from a session manager, rolls the
// change back: it is no confirmation.
func TestWaiterTerminated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	w.must("apply", "-f", w.config("eth0", "1Gbit"), "--confirm-within", "1h")
	w.kill(syscall.SIGHUP) // a closed terminal has no effect
	time.Sleep(100 * time.Millisecond)
	if limit, _ := w.limit("eth0"); limit != "1Gbit" {
		t.Errorf("a hangup rolled back, to %q", limit)
	}
	w.kill(syscall.SIGTERM)
	w.waitForLimit("")
}

func TestWaiterIsKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		then  []string
		limit string
		say   string
	}{
		{[]string{"confirm"}, "2Gbit", "is kept"},
		{[]string{"confirm", "--roll-back"}, "1Gbit", "rolled back: eth0"},
		{[]string{"show"}, "2Gbit", `run "headgate confirm" to keep it, or "headgate confirm --roll-back"`},
		{[]string{"apply", "-f", "three.yaml"}, "3Gbit", "this replaces it"},
	} {
		w := newWorld(t, "eth0")
		w.must("apply", "-f", w.config("eth0", "1Gbit"))
		w.must("apply", "-f", w.config("eth0", "2Gbit"), "--confirm-within", "1h")
		w.kill(syscall.SIGKILL)
		w.waitForStage(pending.Abandoned)
		if c.then[0] == "apply" {
			c.then[2] = w.write("three.yaml", document("eth0", "3Gbit"))
		}
		r := w.must(c.then...)
		if limit, _ := w.limit("eth0"); limit != c.limit || !strings.Contains(r.out+r.err, c.say) {
			t.Errorf("%v: limit %s, want %s and %q:\n%s%s", c.then, limit, c.limit, c.say, r.out, r.err)
		}
	}
}

func TestOnlyOneChangeWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	f := w.config("eth0", "1Gbit")
	w.must("apply", "-f", f, "--confirm-within", "1h")
	if r := w.run("apply", "-f", w.config("eth0", "2Gbit")); r.code != exitFailed || !strings.Contains(r.err, "unless you run \"headgate confirm\"") {
		t.Errorf("apply while another change is pending: exit %d, %s", r.code, r.err)
	}
	if limit, _ := w.limit("eth0"); limit != "1Gbit" {
		t.Errorf("the limit is %q", limit)
	}
	if r := w.must("confirm", "--roll-back", "-o", "json"); compact(r.out) != `{"devices":["eth0"],"rolled_back":true}` {
		t.Errorf("confirm --roll-back: %s", r.out)
	}
	if limit, _ := w.limit("eth0"); limit != "" {
		t.Errorf("after the rollback the limit is %q", limit)
	}
}

func TestClearEndsTheWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	w.must("apply", "-f", w.config("eth0", "1Gbit"))
	w.must("apply", "-f", w.config("eth0", "2Gbit"), "--confirm-within", "1s")
	w.must("clear", "--dev", "eth0")
	time.Sleep(1500 * time.Millisecond)
	if limit, _ := w.limit("eth0"); limit != "" {
		t.Errorf("a cleared device was rolled back to %q", limit)
	}
}

func TestFailureRollsBackAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0", "eth1")
	w.write("eth1.broken", "")
	f := w.write("all.yaml", document("eth0", "1Gbit")+"---\n"+document("eth1", "1Gbit"))
	r := w.run("apply", "-f", f, "--confirm-within", "1h")
	if r.code != exitFailed || !strings.Contains(r.err, "what was changed has been rolled back") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if limit, _ := w.limit("eth0"); limit != "" || w.stage() != pending.None {
		t.Errorf("the limit is %q, the stage %d", limit, w.stage())
	}
}

// TestRollbackThatFails: a rollback that the kernel refuses is reported, and the user can finish it.
func TestRollbackThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	w.must("apply", "-f", w.config("eth0", "1Gbit"))
	w.must("apply", "-f", w.config("eth0", "2Gbit"), "--confirm-within", "1s")
	broken := w.write("eth0.broken", "")
	w.waitForStage(pending.Unfinished)
	if r := w.run("confirm"); r.code != exitFailed || !strings.Contains(r.err, "did not finish") {
		t.Errorf("confirm: exit %d, %s", r.code, r.err)
	}
	if r := w.run("confirm", "--roll-back"); r.code != exitFailed || !strings.Contains(r.err, "cannot roll back eth0") {
		t.Errorf("confirm --roll-back while it cannot be: exit %d, %s", r.code, r.err)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	w.must("confirm", "--roll-back")
	if limit, _ := w.limit("eth0"); limit != "1Gbit" || w.stage() != pending.None {
		t.Errorf("the limit is %q, the stage %d", limit, w.stage())
	}
}

// TestAfterRestart: a pending change with another boot ID is reported and forgotten.
func TestAfterRestart(t *testing.T) {
	t.Parallel()
	for _, then := range []string{"show", "confirm", "apply"} {
		w := newWorld(t, "eth0")
		f := w.config("eth0", "1Gbit")
		w.must("apply", "-f", f, "--confirm-within", "1h")
		w.kill(syscall.SIGKILL)
		w.waitForStage(pending.Abandoned)
		files, err := filepath.Glob(filepath.Join(w.dir, "state", "*.waiting"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		text := regexp.MustCompile(`"boot": "[^"]*"`).ReplaceAllString(readFile(files[0]), `"boot": "another"`)
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{then}
		if then == "apply" {
			args = append(args, "-f", f)
		}
		if r := w.must(args...); !strings.Contains(r.err, "the machine was restarted before the change") {
			t.Errorf("%s after a restart does not report the change: %s", then, r.err)
		}
		if then != "show" && w.stage() != pending.None {
			t.Errorf("%s after a restart leaves the change pending", then)
		}
	}
}

// TestDamagedState: an unreadable state file is reported, not ignored.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "eth0")
	w.must("apply", "-f", w.config("eth0", "1Gbit"), "--confirm-within", "1h")
	w.kill(syscall.SIGKILL)
	files, err := filepath.Glob(filepath.Join(w.dir, "state", "*.waiting"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.run("confirm"); r.code != exitFailed || !strings.Contains(r.err, ".waiting is corrupt (remove the file to continue)") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}
