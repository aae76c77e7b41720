package awake

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// While one of two users wants it there is a spinner at SCHED_IDLE on each
// processor, and none after.
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
	policies := spinners(t)
	if Virtual() && len(policies) == 0 {
		t.Error("there is no spinner")
	}
	if !Virtual() && len(policies) > 0 {
		t.Errorf("%d spinners on a machine that is not virtual", len(policies))
	}
	for _, p := range policies {
		if p != "5" {
			t.Errorf("a spinner has the scheduling policy %s, want 5 (SCHED_IDLE)", p)
		}
	}
	second()
	if n := len(spinners(t)); n != 0 {
		t.Errorf("%d spinners are left", n)
	}
}

// spinners are the scheduling policies of our children that spin (field 41 of
// proc_pid_stat(5)).
func spinners(t *testing.T) (policies []string) {
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
			policies = append(policies, f[38])
		}
	}
	return policies
}
