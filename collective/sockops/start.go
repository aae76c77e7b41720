package sockops

import (
	"time"

	"headgate.dev/headgate/collective"
)

// startKey is struct start_key of slot.h, start is struct start (TestStart checks that).
type startKey struct {
	Set        uint32
	Rule, Port uint16
	Passive    uint32
}

type start struct {
	LeaseUntilNs uint64
	Pace, Window uint32
}

// Start caps the connections of a set that begin before a time of Now, until the first cap of their own: those that match a rule, by its index, and have a port of the
// service: the local one of connections that are accepted, the remote one of others.
func (t *Table) Start(set uint32, rule int, of collective.Role, bytesPerSecond, packets uint32, until time.Duration) error {
	k := startKey{Set: set, Rule: uint16(rule), Port: of.Port}
	if of.Accepted {
		k.Passive = 1
	}
	return t.starts.Put(k, start{uint64(until), bytesPerSecond, packets})
}
