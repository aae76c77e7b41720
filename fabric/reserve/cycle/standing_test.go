package cycle

import (
	"testing"
	"time"

	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// What meters let pass above the capacity of a link waits there. Limits leave so much of the link free in the next cycle, at the cost of best effort alone, and no longer.
func TestStandingQueue(t *testing.T) {
	p, qos, be, offered := settled(t, share.NewAdaptive(share.DefaultQuantum), 40*unit.Mbit)
	full := p.limits[be].Rate
	if full < 58*unit.Mbit {
		t.Fatalf("best effort has %v", full)
	}
	for _, c := range []struct{ burst, least, most unit.Rate }{{400 * unit.Kbit, 0, 0}, {3 * unit.Mbit, unit.Mbit, 3 * unit.Mbit}, {50 * unit.Mbit, 4 * unit.Mbit, 5 * unit.Mbit}} {
		p.bursts = map[FlowID]unit.Rate{be: c.burst}
		p.run(time.Second, offered)
		p.bursts = nil
		if got := full - min(full, p.limits[be].Rate); got < c.least || got > c.most || p.limits[qos].Rate < 40*unit.Mbit {
			t.Errorf("after a burst of %v best effort has %v less, want %v to %v, and the reservation has %v", c.burst, got, c.least, c.most, p.limits[qos].Rate)
		}
		p.run(time.Second, offered)
		p.run(time.Second, offered)
		if got := p.limits[be].Rate; got < full-full/200 {
			t.Errorf("two cycles after a burst of %v best effort has %v of %v", c.burst, got, full)
		}
	}
}

// A flow that is known to want more than it offers has that, and what it offers remains what is accounted for.
func TestWants(t *testing.T) {
	for name, scheme := range map[string]share.Scheme{"adaptive": share.NewAdaptive(share.DefaultQuantum), "thesis": &share.AQoS{}} {
		p, qos, _, offered := settled(t, scheme, 20*unit.Mbit)
		p.wants = map[FlowID]unit.Rate{qos: 35 * unit.Mbit}
		p.run(time.Second, offered)
		if got := p.limits[qos].Rate; got < 35*unit.Mbit {
			t.Errorf("%s: a flow that wants 35 Mbit/s has %v", name, got)
		}
		if got := p.status(qos).Offered; got > 20*unit.Mbit {
			t.Errorf("%s: it offered 20 Mbit/s, and its account says %v", name, got)
		}
	}
}

// A flow that offers more than its limit since the reading before has it within the cycle, at the cost of best effort, and its account is that of the whole cycle.
func TestGlance(t *testing.T) {
	p, qos, be, _ := settled(t, share.NewAdaptive(share.DefaultQuantum), 40*unit.Mbit)
	glance := func(id FlowID, into time.Duration, mean unit.Rate) Changes {
		return p.cycle.Glance([]Reading{p.reading(id, p.at.Elapsed+into, into, mean)})
	}
	const part = 200 * time.Millisecond
	if ch := glance(qos, part, 40*unit.Mbit); len(ch.Limits) > 0 {
		t.Errorf("without a rise limits change: %+v", ch.Limits)
	}
	before := p.limits[be].Rate
	if ch := glance(be, part, 200*unit.Mbit); len(ch.Limits) > 0 {
		t.Errorf("with best effort above its limit limits change: %+v", ch.Limits)
	}
	if ch := glance(qos, 2*part, p.limits[qos].Rate*51/100+20*unit.Mbit+50*unit.Kbit); len(ch.Limits) > 0 {
		t.Errorf("with a frame above its limit limits change: %+v", ch.Limits)
	}
	p.enforce(glance(qos, 3*part, 51*unit.Mbit)) // 40, 41 and 72
	if got := p.limits[qos].Rate; got < 70*unit.Mbit {
		t.Errorf("a flow that rises to 70 Mbit/s has %v", got)
	}
	if got := p.limits[be].Rate; got >= before || got+70*unit.Mbit > 101*unit.Mbit {
		t.Errorf("best effort has %v, before %v", got, before)
	}
	offered := p.status(qos).Offered
	p.run(time.Second, map[FlowID]unit.Rate{qos: 70 * unit.Mbit, be: 200 * unit.Mbit})
	if got := p.status(qos).Offered; offered != 40*unit.Mbit || got != 70*unit.Mbit || p.limits[qos].Rate < 70*unit.Mbit {
		t.Errorf("it offered %v and then %v, and has %v", offered, got, p.limits[qos].Rate)
	}
}
