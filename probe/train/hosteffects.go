package train

import (
	"math"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/awake"
)

// HostEffects records what this machine does to a train: steal time and clock changes.
type HostEffects struct {
	stolen float64 // s
	offset int64
	begun  int64
}

// Watch starts the recording.
func Watch() HostEffects {
	return HostEffects{stolen: awake.Stolen(), offset: clockOffset(), begun: nanotime()}
}

// Stolen returns the steal time of all processors since Watch, in ns.
func (e HostEffects) Stolen() int64 { return int64(math.Round((awake.Stolen() - e.stolen) * 1e9)) }

// maxSlew is the maximum rate at which the kernel slews its clock (500 ppm). clockReadError is
// the possible error of a reading of both clocks, in ns: the thread may lose its processor
// between the two readings.
const (
	maxSlew        = 500e-6
	clockReadError = 100_000
)

// Stepped reports whether the clock of the timestamps was set since Watch.
func (e HostEffects) Stepped() bool {
	change := clockOffset() - e.offset
	return max(change, -change) > clockReadError+int64(maxSlew*float64(nanotime()-e.begun))
}

// clockOffset returns CLOCK_REALTIME minus CLOCK_MONOTONIC, from the fastest of several
// readings.
func clockOffset() (offset int64) {
	fastest := int64(-1)
	for range 5 {
		var real unix.Timespec
		before := nanotime()
		unix.ClockGettime(unix.CLOCK_REALTIME, &real)
		after := nanotime()
		if took := after - before; fastest < 0 || took < fastest {
			fastest, offset = took, real.Nano()-(before+after)/2
		}
	}
	return offset
}
