package thread

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// What became of a goroutine and of work to throw away, with none but the first thread at hand.
var onFirst, thrownOnFirst bool

// The main goroutine is on the process's first thread until TestMain lets go of it.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	runtime.UnlockOSThread()
	before := runtime.GOMAXPROCS(1)
	first := make(chan bool)
	go func() { first <- unix.Gettid() == unix.Getpid() }()
	onFirst = <-first
	if err := Throwaway(func() error { thrownOnFirst = unix.Gettid() == unix.Getpid(); return nil }); err != nil {
		panic(err)
	}
	runtime.GOMAXPROCS(before)
	os.Exit(m.Run())
}

// The first thread never ends: nothing that is to end with its thread may run there.
func TestNeverTheFirstThread(t *testing.T) {
	if !onFirst {
		t.Error("an ordinary goroutine was not on the first thread: this proves nothing")
	}
	if thrownOnFirst {
		t.Error("it was on the first thread")
	}
}

// The thread is gone when its work is done, and what it says comes back.
func TestThrowaway(t *testing.T) {
	want := errors.New("said")
	var tid int
	if err := Throwaway(func() error { tid = unix.Gettid(); return want }); err != want {
		t.Errorf("it gives %v", err)
	}
	for range 1000 {
		if unix.Tgkill(unix.Getpid(), tid, 0) == unix.ESRCH {
			return
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
	}
	t.Errorf("thread %d is still there", tid)
}
