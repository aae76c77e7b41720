// Package thread runs functions on threads that are not reused: changes that cannot be undone, such
// as entering a namespace, end with the thread.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// RunOnce runs fn on a thread that ends when fn returns. The thread is never the process's first
// one: Go parks that one instead of ending it (runtime/proc.go, mexit), so a network namespace that
// it is in, or one with a name in its mount namespace, would last as long as the process. fn must
// not unlock its thread.
func RunOnce(fn func() error) error {
	result := make(chan error)
	done := make(chan struct{})
	defer close(done)
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			go run() // on another thread: this goroutine occupies the first thread until done
			<-done
			runtime.UnlockOSThread()
			return
		}
		result <- fn()
	}
	go run()
	return <-result
}
