package circuits

import (
	"headgate.dev/headgate/fabric/live"
	"headgate.dev/headgate/fabric/program"
	"headgate.dev/headgate/unit"
)

// Values chosen for Headgate.
const (
	// overLimit is the part of its limit above which traffic does not follow the drops of its meter, if it offers that in overReadings in a row, of two in a cycle, and
	// followsBelow the part below which it does. TCP behind a meter offers its limit with what it sends again, or less, and UDP the same as
	// without. What a full bucket lets pass above the limit is dropped by nobody, so that it counts as the limit: else TCP, with a bucket of a fifth of a second,
	// was above it for 4 s after each change of its meter.
	overLimit, followsBelow = 1.05, 0.98
	overReadings            = 5
	// Numbers of IANA's registry.
	protocolTCP, protocolUDP = 6, 17
)

// senders knows whether those of a circuit send less when packets are dropped.
type senders struct {
	unresponsive bool
	known        bool // by the protocol
	over         int  // readings in a row above overLimit
	waiting      waiting
	before       live.CircuitReading // at the end of the part of a cycle before
}

// since returns the reading r with the means since the end of the part of a cycle before. It had others between.
func (s *senders) since(r live.CircuitReading) live.CircuitReading {
	before := s.before
	s.before = r
	r.Interval, r.Offered, r.Passed = 0, 0, 0
	if took := r.At.Sub(before.At); !before.At.IsZero() && took > 0 && r.OfferedBytes >= before.OfferedBytes && r.PassedBytes >= before.PassedBytes {
		rate := func(bytes uint64) unit.Rate { return unit.Rate(float64(bytes) * 8 / took.Seconds()) }
		r.Interval, r.Offered, r.Passed = took, rate(r.OfferedBytes-before.OfferedBytes), rate(r.PassedBytes-before.PassedBytes)
	}
	return r
}

// sendersOf returns what the protocols of a circuit say of its senders. Those of what is not reserved are taken to be unresponsive until they
// have shown the opposite: what is promised to others comes first.
func sendersOf(c program.Circuit) senders {
	udp, tcp := len(c.Flows) > 0, len(c.Flows) > 0
	for _, f := range c.Flows {
		udp, tcp = udp && f.Protocol == protocolUDP, tcp && f.Protocol == protocolTCP
	}
	return senders{unresponsive: udp || c.Unreserved, known: udp || tcp}
}

// observe takes a reading of a circuit under a limit, and reports whether its senders are others than was known.
func (s *senders) observe(r live.CircuitReading, limit unit.Rate) (turned bool) {
	was := s.unresponsive
	switch {
	case s.known || r.Interval == 0:
	case float64(r.Offered) > overLimit*float64(max(limit, r.Passed)):
		if s.over++; s.over >= overReadings {
			s.unresponsive = true
		}
	default:
		s.over = 0
		if r.Passed < r.Offered && float64(r.Offered) < followsBelow*float64(limit) {
			s.unresponsive = false
		}
	}
	return s.unresponsive != was
}

// wants returns the least that the senders of a circuit want after a reading, 0 if that is what they offer. TCP whose packets are dropped sends less than it
// wants, and for some seconds less than it may.
func (s *senders) wants(r live.CircuitReading, limit unit.Rate) unit.Rate {
	if s.unresponsive || r.Interval == 0 || limit == 0 {
		return 0
	}
	return s.waiting.dropped(r.Offered, limit, r.Passed < r.Offered)
}
