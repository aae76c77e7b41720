// Package thread gives work a thread that is thrown away: what cannot be undone, as entering a
// namespace may not be, ends with it.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Throwaway runs fn on a thread that ends when fn has. It is never the process's first one: Go
// does not end that but parks it for good (runtime/proc.go, mexit), and a network namespace that
// it is in, or one that has a name in its mount namespace, then lasts as long as the process. fn
// must not unlock its thread.
func Throwaway(fn func() error) error {
	result := make(chan error)
	done := make(chan struct{})
	defer close(done)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			go run() // elsewhere, as the first thread is ours until it is done
			<-done
			runtime.UnlockOSThread()
			return
		}
		result <- fn()
	}
	go run()
	return <-result
}
