package host

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/stripe"
)

const (
	// minDirectBytes and minDirectTrips are how many bytes and round-trip times a connection must have for an estimate,
	// which leaves out slow start, and how many bytes the path's streams must have sent meanwhile. Chosen for Headgate.
	minDirectBytes, minDirectTrips = 1_000_000, 10
	// maxIdlePart is the part of the seconds in which a connection may have nothing to send, chosen for Headgate: with
	// more, the application and not the path determines its rate.
	maxIdlePart = 0.1
)

// directPath is the path that direct connections would be on, with what its streams have sent.
type directPath struct {
	// name is that of the exit's first path. At an exit it is "", and the path is that of all streams if they are on
	// one.
	name string
	// sent and lost are bytes of TCP since the session began: all, and those that were lost.
	sent, lost uint64
	loss       stripe.LossMeter
	// goodput is the rate of connections' bytes in the last second in bit/s.
	goodput uint64
	rtt     time.Duration // the lowest of the streams
	segment int
}

// directSeen is what was seen of the direct path since a connection began.
type directSeen struct {
	before  uint64 // sent of the path when the connection began
	goodput uint64 // the highest, in bit/s
	// seconds are how often the connection was observed, and idle how often it had nothing to send.
	seconds, idle int
}

// firstPath returns the name of the path that direct connections would be on.
func firstPath(paths []relay.Path) string {
	if len(paths) == 0 {
		return ""
	}
	return paths[0].Name
}

// directName returns the name of the direct path, "" if it is unknown. l.mu must be held.
func (l *Link) directName() (name string) {
	if l.observed.direct.name != "" {
		return l.observed.direct.name
	}
	for _, of := range l.observed.paths {
		if name != "" && of != name {
			return ""
		}
		name = of
	}
	return name
}

// readDirect adds what the streams of the direct path have sent since the last call. l.mu must be held.
func (l *Link) readDirect() {
	p, name := &l.observed.direct, l.directName()
	if name == "" {
		return
	}
	rtt, cubic := time.Duration(0), true
	for number, st := range l.streams {
		if l.observed.paths[number] != name {
			continue
		}
		i := tcpInfo(st.raw)
		if i == nil {
			continue
		}
		cubic = cubic && congestionOf(st.raw) == "cubic"
		p.segment = int(i.Snd_mss)
		if of := minRTT(i); of > 0 && (rtt == 0 || of < rtt) {
			rtt = of
		}
		p.sent += i.Bytes_sent - st.tcpSent
		st.tcpSent = i.Bytes_sent
		// The receiver reports what was sent again in vain. A late report makes the sum less.
		lost := i.Bytes_retrans - min(i.Bytes_retrans, uint64(i.Dsack_dups)*uint64(i.Snd_mss))
		if lost > st.tcpLost {
			p.lost += lost - st.tcpLost
			st.tcpLost = lost
		}
	}
	if rtt > 0 {
		p.rtt = rtt
		p.loss.Add(l.now(), p.sent, p.lost, rtt, cubic)
	}
}

// beginDirect begins the observation of a connection. link.mu must be held.
func (k *conn) beginDirect() { k.direct.before = k.link.observed.direct.sent }

// measureDirect adds up the rates of the direct path's streams, which were measured. l.mu must be held.
func (l *Link) measureDirect() {
	p, name := &l.observed.direct, l.directName()
	p.goodput = 0
	for number, st := range l.streams {
		if l.observed.paths[number] == name {
			p.goodput += st.rate.send
		}
	}
}

// observeDirect observes the direct path and the connection each second. link.mu must be held.
func (k *conn) observeDirect(i stripe.ConnInfo) {
	k.direct.goodput = max(k.direct.goodput, k.link.observed.direct.goodput)
	k.direct.seconds++
	if i.Waiting+i.Unacknowledged == 0 {
		k.direct.idle++
	}
}

// estimateDirect adds the rate that a direct connection would have had, and the gain, if the connection has sent enough
// to tell, and at least as much as it has received: only the sender knows the loss. link.mu must be held.
func (k *conn) estimateDirect(c *ConnectionStatus) {
	p, d := &k.link.observed.direct, &k.direct
	delivered := c.Sent - min(c.Sent, uint64(c.Waiting+c.Unacknowledged))
	switch {
	case delivered < minDirectBytes || c.Sent < c.Received || c.Age < minDirectTrips*p.rtt,
		p.sent-d.before < minDirectBytes,
		float64(d.idle) > maxIdlePart*float64(d.seconds):
		return
	}
	name := k.link.directName()
	loss, ok := p.loss.Rate(p.segment)
	if name == "" || !ok {
		return
	}
	carried := float64(d.goodput) / 8
	if n := slices.IndexFunc(c.Paths, func(p stripe.PathBytes) bool { return p.Path == name }); n >= 0 {
		carried = max(carried, float64(c.Paths[n].Sent)/c.Age.Seconds())
	}
	if carried == 0 {
		return
	}
	rate := stripe.DirectPath{Carried: carried, Loss: loss, RTT: p.rtt, Segment: p.segment, Window: receiveWindow()}.Rate()
	c.DirectRate = bits(rate)
	c.Gain = math.Round(100*float64(delivered)/c.Age.Seconds()/rate) / 100
}

// receiveWindow returns the largest receive window that a socket of this host gets by itself, 0 if it is unknown.
var receiveWindow = sync.OnceValue(func() int {
	memory, err := os.ReadFile("/proc/sys/net/ipv4/tcp_rmem")
	if err != nil {
		return 0
	}
	scale, err := os.ReadFile("/proc/sys/net/ipv4/tcp_adv_win_scale")
	if err != nil {
		scale = []byte("1")
	}
	return windowOf(memory, scale)
})

// windowOf returns the part of net.ipv4.tcp_rmem's maximum that is for data, as net.ipv4.tcp_adv_win_scale says.
func windowOf(memory, scale []byte) int {
	fields := bytes.Fields(memory)
	if len(fields) != 3 {
		return 0
	}
	most, err := strconv.Atoi(string(fields[2]))
	if err != nil {
		return 0
	}
	shift, err := strconv.Atoi(string(bytes.TrimSpace(scale)))
	switch {
	case err != nil:
		shift = 1
	case shift <= 0:
		return most >> min(-shift, 31)
	}
	return most - most>>min(shift, 31)
}
