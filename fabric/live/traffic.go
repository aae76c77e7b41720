package live

import (
	"context"
	"errors"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
)

// Constants of readings, chosen for Headgate.
const (
	// pollInterval is how often the counters of a switch's ports are read, if there are few switches: a person who watches a link sees
	// a change at once.
	pollInterval = time.Second
	// pollsPerSecond bounds the readings of all switches together, so that those of 1,000 switches, every 5 s, take at most 1.4 % of a
	// processor: one of 48 ports takes 69 us at both ends, one of 8 ports 33 us (BenchmarkReadPorts, AMD EPYC).
	pollsPerSecond = 200
	// pollTimeout is how long a switch may take for a reply. It is not asked again before.
	pollTimeout = 5 * time.Second
	// staleIntervals is for how many intervals without a reading traffic is shown.
	staleIntervals = 3
	// historyKept is for how long the history of a port is shown, and kept after its last reading: 30 s for each of its means, and the
	// readings.
	historyKept = fabric.HistoryMeans*fabric.HistoryMean + 2*time.Minute
	// maxHistories bounds the memory of histories to 80 MB, and that of fabric.Readings to 36 MB, whatever number of ports the switches claim to have.
	maxHistories = 20_000
)

// interval returns how often each of so many switches is read.
func interval(switches int) time.Duration {
	return max(pollInterval, time.Duration((switches+pollsPerSecond-1)/pollsPerSecond)*time.Second)
}

// nextPoll returns when a switch is read next. The switches are spread over the interval, and each is read at the same moment of
// every one.
func nextPoll(id fabric.DPID, now time.Time, interval time.Duration) time.Time {
	const spread = 0x9e3779b97f4a7c15 // Knuth, The Art of Computer Programming, volume 3, section 6.4: ids in a row fall far apart
	offset := time.Duration(float64(uint64(id)*spread) / (1 << 64) * float64(interval))
	at := now.Truncate(interval).Add(offset)
	if !at.After(now) {
		at = at.Add(interval)
	}
	return at
}

// polls are the readings of a switch.
type polls struct {
	next   time.Time
	asked  bool // a reply is due
	failed bool // one was not a reading
}

// traffic is what a port has counted.
type traffic struct {
	fabric.PortMeter
	history fabric.History
	read    time.Time // the last reading that is in history
}

// pollDue reads the ports of the switches that are due. n.mu must be held.
func (n *Network) pollDue(now time.Time) {
	every := interval(len(n.switches))
	for _, s := range n.switches {
		if s.polls.asked || now.Before(s.polls.next) {
			continue
		}
		if !s.polls.next.IsZero() { // it was attached before the last tick
			s.polls.asked = true
			go n.readPorts(s)
		}
		s.polls.next = nextPoll(s.id, now, every)
	}
	if now.Sub(n.forgotten) >= time.Minute {
		n.forgotten = now
		for id, t := range n.traffic {
			if now.Sub(t.Last().At) > historyKept && now.Sub(t.read) > historyKept {
				delete(n.traffic, id)
			}
		}
	}
}

// readPorts asks a switch for the counters of its ports.
func (n *Network) readPorts(s *attached) {
	ctx, cancel := context.WithTimeout(n.ctx, pollTimeout)
	defer cancel()
	reply, err := session.Ask[*openflow.PortStatsReply](ctx, s.conn, &openflow.PortStatsRequest{Port: openflow.PortAny})
	n.mu.Lock()
	defer n.mu.Unlock()
	s.polls.asked = false
	switch {
	case err == nil:
		n.take(s, reply.Ports, time.Now())
	case s.conn.Err() == nil && n.ctx.Err() == nil && !s.polls.failed:
		s.polls.failed = true // it is asked again, and named once
		n.options.Log.Warn("cannot read the counters of a switch's ports, so that its traffic is not known", "switch", s.id, "error", err)
	}
}

// take takes a reading of a switch's ports. n.mu must be held.
func (n *Network) take(s *attached, ports []openflow.PortStats, now time.Time) {
	if n.switches[s.id] != s {
		return
	}
	for i := range ports {
		id := fabric.PortID{Switch: s.id, Port: fabric.PortNo(ports[i].Port)}
		t := n.traffic[id]
		switch {
		case n.ports[id] == nil: // it is down
			if t != nil {
				t.PortMeter = fabric.PortMeter{}
			}
			continue
		case t == nil && len(n.traffic) >= maxHistories:
			continue
		case t == nil:
			t = &traffic{}
			n.traffic[id] = t
		}
		if t.Take(countersOf(&ports[i], now)) {
			t.history.Add(now, n.sent(id, t))
			t.read = now
		}
	}
}

func countersOf(p *openflow.PortStats, now time.Time) fabric.PortCounters {
	c := fabric.PortCounters{At: now, Rx: fabric.Counts{Bytes: p.RxBytes, Frames: p.RxPackets, Dropped: p.RxDropped, Errors: p.RxErrors}, Tx: fabric.Counts{Bytes: p.TxBytes, Frames: p.TxPackets, Dropped: p.TxDropped, Errors: p.TxErrors}}
	if p.Duration.Known() {
		c.Age = p.Duration.Duration()
	}
	return c
}

// sent returns what a port sends, and if it has a link, what the link carries. n.mu must be held.
func (n *Network) sent(id fabric.PortID, t *traffic) fabric.Traffic {
	receives := fabric.Unmeasured()
	if peer, ok := n.links.Peer(id); ok {
		if p := n.traffic[peer]; p != nil {
			receives = p.Traffic().Rx
		}
	}
	return fabric.LinkTraffic(t.Traffic().Tx, receives)
}

// forgetReadings lets the meters and buckets of a switch's ports begin again, because it is disconnected. n.mu must be held.
func (n *Network) forgetReadings(s *attached) {
	for _, p := range s.conn.Ports() {
		id := fabric.PortID{Switch: s.id, Port: fabric.PortNo(p.No)}
		if t := n.traffic[id]; t != nil {
			t.PortMeter = fabric.PortMeter{}
		}
		delete(n.unknown, id)
	}
}

// portTraffic returns the traffic of a port with its last reading, of which nothing is known if that is too old. n.mu must be held.
func (n *Network) portTraffic(id fabric.PortID, now time.Time) (fabric.PortTraffic, fabric.PortCounters) {
	t := n.traffic[id]
	if t == nil || now.Sub(t.Last().At) > staleIntervals*interval(len(n.switches)) {
		return fabric.PortTraffic{Rx: fabric.Unmeasured(), Tx: fabric.Unmeasured()}, fabric.PortCounters{}
	}
	return t.Traffic(), t.Last()
}

// Readings returns the last readings of a port's counters.
func (n *Network) Readings(id fabric.PortID) fabric.Readings {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.traffic[id]; t != nil {
		return t.PortMeter.Readings()
	}
	return fabric.Readings{}
}

// History is what a port has sent in the last hour.
type History struct {
	From fabric.PortID
	To   fabric.PortID // at the other end of its link, the zero value if it has none
	// Interval is the time between readings. Those of the oldest part are means (fabric.History).
	Interval time.Duration
	Items    []fabric.TrafficAt // the oldest first
}

// ErrNoPort: no port with the number is known.
var ErrNoPort = errors.New("no such port is known")

// History returns what a port has sent. The drops and errors are those of both ends of its link.
func (n *Network) History(id fabric.PortID) (History, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := History{From: id, Interval: interval(len(n.switches))}
	t := n.traffic[id]
	if t == nil {
		if n.ports[id] == nil {
			return out, ErrNoPort
		}
		return out, nil // there are no two readings yet
	}
	out.To, _ = n.links.Peer(id)
	oldest := time.Now().Add(-historyKept)
	for _, one := range t.history.All() {
		if one.At.After(oldest) {
			out.Items = append(out.Items, one)
		}
	}
	return out, nil
}
