package circuits

import "time"

// demandIdle is how long a circuit that is pushed on demand stays on the switches without traffic, chosen for Headgate: longer than
// the pauses of programs that send at all.
const demandIdle = time.Minute

// demand knows the traffic of circuits that are pushed on demand.
type demand map[key]traffic

// traffic is what a circuit has carried.
type traffic struct {
	bytes uint64
	at    time.Time // of the last packet
}

// count takes the bytes that a circuit has carried by now.
func (d demand) count(k key, bytes uint64, now time.Time) {
	if t, ok := d[k]; ok && t.bytes == bytes {
		return
	}
	at := now
	if bytes == 0 {
		at = d[k].at // the switch counts from the beginning
	}
	d[k] = traffic{bytes, at}
}

// assume takes a circuit to have traffic now. A new leader does not know which circuits have.
func (d demand) assume(k key, now time.Time) { d[k] = traffic{d[k].bytes, now} }

// waits reports whether a circuit has had no traffic for long.
func (d demand) waits(k key, now time.Time) bool { return now.Sub(d[k].at) > demandIdle }

// only returns the traffic of the circuits of a plan that are pushed on demand, each of which it has.
func (d demand) only(p plan) demand {
	kept := demand{}
	for _, c := range p {
		if c.onDemand {
			kept[c.key] = d[c.key]
		}
	}
	return kept
}
