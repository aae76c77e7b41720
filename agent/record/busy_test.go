package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/usage"
)

// withTimeout fails the test if do takes longer than 10 s.
func withTimeout(t *testing.T, what string, do func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("not within 10 s: %s", what)
	}
}

// Readings continue while the files of a week are read from a slow disk. A pipe without a writer
// replaces the file of a day.
func TestUsageDoesNotBlockReadings(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	take := func(second int) func() error {
		return func() error {
			return r.Add(begin.Add(time.Duration(second)*time.Second), reading(uint64(second)*1000))
		}
	}
	for s := range 5 {
		withTimeout(t, "a reading", take(s))
	}
	pipe := filepath.Join(dir, "2026-04-30.jsonl")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		usage map[string]map[string]usage.Usage
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		usage, err := r.Usage(begin.Add(-24*time.Hour), begin.Add(time.Hour))
		answered <- answer{usage, err}
	}()
	// The pipe can be opened for writing once it has a reader.
	var end *os.File
	withTimeout(t, "the file is read", func() error {
		for {
			fd, err := unix.Open(pipe, unix.O_WRONLY|unix.O_NONBLOCK, 0)
			if err == nil {
				end = os.NewFile(uintptr(fd), pipe)
				return nil
			}
			time.Sleep(time.Millisecond)
		}
	})
	withTimeout(t, "a reading while the files are read", take(5))
	end.Close()
	withTimeout(t, "the answer", func() error {
		a := <-answered
		if u := a.usage["eth0"]["out/a"]; u.Delivered != 4000 {
			t.Errorf("usage before the query is %+v, want 4000 bytes", u)
		}
		return a.err
	})
}

// A query of all time returns all records.
func TestUsageOfAllTime(t *testing.T) {
	r, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for s := range 3 {
		if err := r.Add(begin.Add(time.Duration(s)*time.Second), reading(uint64(s)*1000)); err != nil {
			t.Fatal(err)
		}
	}
	withTimeout(t, "an answer", func() error {
		all, err := r.Usage(time.Unix(0, 0), time.Unix(1<<40, 0))
		if u := all["eth0"]["out/a"]; u.Delivered != 2000 {
			t.Errorf("usage of all time is %+v, want 2000 bytes", u)
		}
		return err
	})
}
