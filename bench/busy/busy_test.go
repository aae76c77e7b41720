package busy_test

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench/busy"
	"headgate.dev/headgate/lab/labtest"
)

// Processor time of this program counts, that of another does not.
func TestClock(t *testing.T) {
	labtest.NeedRoot(t)
	c, err := busy.New()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const each = 300 * time.Millisecond
	used := func(during func()) time.Duration {
		before, err := c.Total()
		if err != nil {
			t.Fatal(err)
		}
		during()
		time.Sleep(10 * time.Millisecond)
		after, err := c.Total()
		if err != nil {
			t.Fatal(err)
		}
		return after - before
	}
	labtest.Try(t, func(t *labtest.Check) {
		var took time.Duration // of a processor, which other programs may use as well
		own := used(func() {
			for before := processorTime(); took < each; {
				took = processorTime() - before
			}
		})
		if own < took*8/10 || own > took*15/10 {
			t.Errorf("of %v in a loop %v were counted", took, own)
		}
		other := exec.Command("sh", "-c", "while :; do :; done")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		if others := used(func() { time.Sleep(each) }); others > each/4 {
			t.Errorf("while another program had a processor for %v, %v were counted", each, others)
		}
		_ = other.Process.Kill()
		_ = other.Wait()
	})
}

// processorTime returns the time that this program used on all processors.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
