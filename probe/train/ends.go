package train

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Ends watches what this machine does to a train while it is under way.
type Ends struct {
	stolen int64
	offset int64
	begun  int64
}

// Watch begins.
func Watch() Ends { return Ends{stolen: steal(), offset: clockOffset(), begun: nanotime()} }

// Stolen is how long the hypervisor kept processors back since, in ns.
func (e Ends) Stolen() int64 { return steal() - e.stolen }

// Slewed is the most by which the kernel's clock is made slower or faster without
// being set (500 ppm), and a reading of both clocks may be off by 100 us when the
// thread loses its processor in between.
const (
	slewed   = 500e-6
	misread  = 100_000
	userTick = int64(10 * time.Millisecond) // USER_HZ
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
		before := monotonic()
		unix.ClockGettime(unix.CLOCK_REALTIME, &real)
		after := monotonic()
		if took := after - before; least < 0 || took < least {
			least, offset = took, real.Nano()-(before+after)/2
		}
	}
	return offset
}

// steal is all processors' time that the hypervisor gave to others, in ns, from the
// first line of /proc/stat; 0 where there is none.
func steal() int64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line) // cpu user nice system idle iowait irq softirq steal
	if len(fields) < 9 {
		return 0
	}
	ticks, _ := strconv.ParseInt(string(fields[8]), 10, 64)
	return ticks * userTick
}
