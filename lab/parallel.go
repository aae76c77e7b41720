package lab

import "sync"

// atOnce is how many devices or namespaces are removed at the same time. The
// kernel waits for other processors (an RCU barrier of some 30 ms) after it has
// removed a device, and such waits overlap: 60 TAP devices went in 0.1 s instead of
// 1.9, 30 veth pairs in 0.15 instead of 1.1. Each takes a thread.
const atOnce = 32

// inParallel calls fn for 0 to n-1 and returns when all have returned.
func inParallel(n int, fn func(i int)) {
	var done sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i := range n {
		room <- struct{}{}
		done.Go(func() {
			defer func() { <-room }()
			fn(i)
		})
	}
	done.Wait()
}
