package openflow

import "time"

// Duration is how long something exists, as two fields of the wire.
type Duration struct {
	Sec  uint32
	Nsec uint32 // beyond Sec
}

// Known tells whether the switch knows the duration: Open vSwitch sends all ones if it does not.
func (d Duration) Known() bool { return d != Duration{^uint32(0), ^uint32(0)} }

// Duration is the sum of both fields.
func (d Duration) Duration() time.Duration {
	return time.Duration(d.Sec)*time.Second + time.Duration(d.Nsec)
}

// DurationOf is the Duration for d, which is not negative, up to 2^32-1 seconds.
func DurationOf(d time.Duration) Duration {
	return Duration{uint32(d / time.Second), uint32(d % time.Second)}
}

func (c *codec) duration(d *Duration, field string) {
	u32(c, &d.Sec, field)
	u32(c, &d.Nsec, field)
}
