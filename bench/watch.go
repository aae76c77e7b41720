package bench

import (
	"runtime"
	"strings"
	"time"
)

// Disturbance watches what else a machine does while something is measured on it.
type Disturbance struct {
	began  time.Time
	before taken
	stalls *stallWatch
}

// Watch begins to watch, until End.
func Watch() *Disturbance {
	return &Disturbance{time.Now(), takenUntilNow(), watchStalls()}
}

// End says in words what was taken from this program and those that it started; "" if that
// was too little to matter.
func (d *Disturbance) End() string {
	took := takenUntilNow().since(d.before, time.Since(d.began).Seconds())
	stall, starved := d.stalls.end()
	took.stall, took.starved = stall.Seconds(), starved.Seconds()
	// Who waits for a child that has ended has its time at once, also what went before.
	took.others = min(took.others, float64(runtime.NumCPU()))
	return strings.TrimPrefix(took.String(), "disturbed: ")
}
