package bench

import (
	"runtime"
	"strings"
	"time"
)

// Disturbance observes the other load of a machine during a measurement.
type Disturbance struct {
	began  time.Time
	before taken
	stalls *stallWatch
}

// Watch starts the observation, until End.
func Watch() *Disturbance {
	return &Disturbance{time.Now(), takenUntilNow(), watchStalls()}
}

// End describes the processor time that was not available to this program and those that it started;
// "" if it was too little to matter.
func (d *Disturbance) End() string {
	took := takenUntilNow().since(d.before, time.Since(d.began).Seconds())
	stall, starved := d.stalls.end()
	took.stall, took.starved = stall.Seconds(), starved.Seconds()
	// The time of a child is added when its parent waits for it, including earlier time.
	took.others = min(took.others, float64(runtime.NumCPU()))
	return strings.TrimPrefix(took.String(), "disturbed: ")
}
