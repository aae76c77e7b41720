package awake

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// While one of two users wants it the processors are kept awake, and not after.
func TestKeep(t *testing.T) {
	first, err := Keep()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Keep()
	if err != nil {
		t.Fatal(err)
	}
	first()
	first() // a second time counts for nothing
	if n := keeping(t); (n > 0) != Virtual() {
		t.Errorf("%d things keep the processors awake, and virtual: %v", n, Virtual())
	}
	second()
	if n := keeping(t); n != 0 {
		t.Errorf("%d things keep the processors awake after that", n)
	}
}

// keeping is how many spinners there are, and how often latencyFile is open.
func keeping(t *testing.T) (n int) {
	t.Helper()
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, _ := os.Readlink(fd); to == latencyFile {
			n++
		}
	}
	return n + len(spinners(t))
}

// No processor halts as long as it is wanted.
func TestPoll(t *testing.T) {
	stop, err := poll()
	if err != nil {
		t.Logf("this machine cannot: %v", err)
		return
	}
	defer stop()
	time.Sleep(50 * time.Millisecond) // who had halted before has woken up
	const span = 300 * time.Millisecond
	before := halted(t)
	time.Sleep(span)
	if took := halted(t) - before; took > span/10 {
		t.Errorf("in %v processors halted for %v", span, took)
	}
}

// halted is for how long processors have been in an idle state that is not polling.
func halted(t *testing.T) (sum time.Duration) {
	t.Helper()
	names, err := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/name")
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no idle states: %v", err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err != nil || strings.TrimSpace(string(text)) == "POLL" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(name), "time"))
		if err != nil {
			t.Fatal(err)
		}
		us, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(us) * time.Microsecond
	}
	return sum
}

// There is a spinner at SCHED_IDLE on each processor, in a group that has least weight, and none
// after.
func TestSpin(t *testing.T) {
	stop, err := spin()
	if err != nil {
		t.Fatal(err)
	}
	all := spinners(t)
	if len(all) == 0 {
		t.Error("there is no spinner")
	}
	for _, s := range all {
		if s.policy != "5" {
			t.Errorf("a spinner has the scheduling policy %s, want 5 (SCHED_IDLE)", s.policy)
		}
		if s.group != "" && !strings.HasSuffix(s.group, "nice 19") {
			t.Errorf("a spinner is in %s, want least weight", s.group)
		}
	}
	stop()
	if n := len(spinners(t)); n != 0 {
		t.Errorf("%d spinners are left", n)
	}
}

// process is a scheduling policy (field 41 of proc_pid_stat(5)) and a group, "" where there are
// none.
type process struct{ policy, group string }

// spinners are our children that spin.
func spinners(t *testing.T) (out []process) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if len(f) > 38 && f[1] == strconv.Itoa(os.Getpid()) && strings.Contains(string(command), "keeps processor") {
			group, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "autogroup"))
			out = append(out, process{f[38], strings.TrimSpace(string(group))})
		}
	}
	return out
}
