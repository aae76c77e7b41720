package thread

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Whether a goroutine, and a function in Throwaway, ran on the first thread when no other thread
// was available.
var onFirst, thrownOnFirst bool

// init locks the main goroutine to the process's first thread until TestMain unlocks it.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	runtime.UnlockOSThread()
	before := runtime.GOMAXPROCS(1)
	first := make(chan bool)
	go func() { first <- unix.Gettid() == unix.Getpid() }()
	onFirst = <-first
	if err := RunOnce(func() error { thrownOnFirst = unix.Gettid() == unix.Getpid(); return nil }); err != nil {
		panic(err)
	}
	runtime.GOMAXPROCS(before)
	os.Exit(m.Run())
}

// The first thread never ends, so Throwaway must not run functions on it.
func TestNeverTheFirstThread(t *testing.T) {
	if !onFirst {
		t.Error("an ordinary goroutine was not on the first thread: the test proves nothing")
	}
	if thrownOnFirst {
		t.Error("the function ran on the first thread")
	}
}

// The thread ends with the function, and the function's error is returned.
func TestThrowaway(t *testing.T) {
	want := errors.New("said")
	var tid int
	if err := RunOnce(func() error { tid = unix.Gettid(); return want }); err != want {
		t.Errorf("the error is %v", err)
	}
	for range 1000 {
		if unix.Tgkill(unix.Getpid(), tid, 0) == unix.ESRCH {
			return
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
	}
	t.Errorf("thread %d still exists", tid)
}
