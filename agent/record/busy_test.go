package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/usage"
)

// within fails the test if something takes longer than it may.
func within(t *testing.T, what string, do func() error) {
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

// While the files of a week are read, which takes as long as the disk needs, readings are taken;
// here a day's file is a pipe into which nobody writes.
func TestUsageDoesNotHoldUpReadings(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	take := func(second int) func() error {
		return func() error {
			return r.Take(begin.Add(time.Duration(second)*time.Second), reading(uint64(second)*1000))
		}
	}
	for s := range 5 {
		within(t, "a reading", take(s))
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
	// With a reader the pipe can be opened for writing at once.
	var end *os.File
	within(t, "the file is read", func() error {
		for {
			fd, err := unix.Open(pipe, unix.O_WRONLY|unix.O_NONBLOCK, 0)
			if err == nil {
				end = os.NewFile(uintptr(fd), pipe)
				return nil
			}
			time.Sleep(time.Millisecond)
		}
	})
	within(t, "a reading while the files are read", take(5))
	end.Close()
	within(t, "the answer", func() error {
		a := <-answered
		if u := a.usage["eth0"]["out/a"]; u.Delivered != 4000 {
			t.Errorf("of the time before the question there are %+v", u)
		}
		return a.err
	})
}

// A question about all time is one about what is kept.
func TestUsageOfAllTime(t *testing.T) {
	r, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for s := range 3 {
		if err := r.Take(begin.Add(time.Duration(s)*time.Second), reading(uint64(s)*1000)); err != nil {
			t.Fatal(err)
		}
	}
	within(t, "an answer", func() error {
		all, err := r.Usage(time.Unix(0, 0), time.Unix(1<<40, 0))
		if u := all["eth0"]["out/a"]; u.Delivered != 2000 {
			t.Errorf("of all time there are %+v", u)
		}
		return err
	})
}
