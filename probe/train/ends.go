package train

import (
	"math"

	"golang.org/x/sys/unix"

	"headgate/internal/awake"
)

// Ends watches what this machine does to a train while it is under way.
type Ends struct {
	stolen float64 // s
	offset int64
	begun  int64
}

// Watch begins.
func Watch() Ends { return Ends{stolen: awake.Stolen(), offset: clockOffset(), begun: nanotime()} }

// Stolen is how long the hypervisor kept processors back since, in ns.
func (e Ends) Stolen() int64 { return int64(math.Round((awake.Stolen() - e.stolen) * 1e9)) }

// Slewed is the most by which the kernel's clock is made slower or faster without
// being set (500 ppm), and a reading of both clocks may be off by 100 us when the
// thread loses its processor in between.
const (
	slewed  = 500e-6
	misread = 100_000
)

// Stepped tells whether the clock of the stamps was set since.
func (e Ends) Stepped() bool {
	change := clockOffset() - e.offset
	return max(change, -change) > misread+int64(slewed*float64(nanotime()-e.begun))
}

// clockOffset is by how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC: of some
// readings the one that took least.
func clockOffset() (offset int64) {
	least := int64(-1)
	for range 5 {
		var real unix.Timespec
		before := nanotime()
		unix.ClockGettime(unix.CLOCK_REALTIME, &real)
		after := nanotime()
		if took := after - before; least < 0 || took < least {
			least, offset = took, real.Nano()-(before+after)/2
		}
	}
	return offset
}
