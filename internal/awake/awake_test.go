package awake

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The processors are kept awake while one of two users needs it, and not after that.
func TestKeep(t *testing.T) {
	first, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	first()
	first() // a second call has no effect
	if n := keeping(t); (n > 0) != Virtual() {
		t.Errorf("%d spinners or latency requests keep the processors awake, and virtual: %v", n, Virtual())
	}
	second()
	if n := keeping(t); n != 0 {
		t.Errorf("%d spinners or latency requests keep the processors awake after that", n)
	}
}

// keeping returns the number of spinners, plus the number of descriptors of latencyFile.
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

// No processor halts until stop.
func TestPoll(t *testing.T) {
	stop, err := poll()
	if err != nil {
		t.Logf("not supported on this machine: %v", err)
		return
	}
	defer stop()
	time.Sleep(50 * time.Millisecond) // for processors that are halted to wake up
	const span = 300 * time.Millisecond
	before := halted(t)
	time.Sleep(span)
	if took := halted(t) - before; took > span/10 {
		t.Errorf("in %v processors halted for %v", span, took)
	}
}

// halted returns the time that processors have spent in idle states other than polling.
func halted(t *testing.T) (sum time.Duration) {
	t.Helper()
	names, err := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/name")
	if err != nil || len(names) == 0 {
		t.Fatalf("no idle states: %v", err)
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

// Each processor has a spinner at SCHED_IDLE, in an autogroup of the lowest weight, and none after
// stop.
func TestSpin(t *testing.T) {
	stop, err := spin()
	if err != nil {
		t.Fatal(err)
	}
	all := spinners(t)
	if len(all) == 0 {
		t.Error("no spinner")
	}
	for _, s := range all {
		if s.policy != "5" {
			t.Errorf("a spinner has the scheduling policy %s, want 5 (SCHED_IDLE)", s.policy)
		}
		if s.group != "" && !strings.HasSuffix(s.group, "nice 19") {
			t.Errorf("a spinner is in %s, want nice 19", s.group)
		}
	}
	stop()
	if n := len(spinners(t)); n != 0 {
		t.Errorf("%d spinners remain after stop", n)
	}
}

// process is a scheduling policy (field 41 of proc_pid_stat(5)) and an autogroup, "" if the kernel
// has none.
type process struct{ policy, group string }

// spinners returns the spinners among the children of this process.
func spinners(t *testing.T) (out []process) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
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
