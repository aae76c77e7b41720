package traffic

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"headgate.dev/headgate/unit"
)

// Host is one end of a flow; lab.Node implements it.
type Host interface {
	// Do runs fn on a thread in the host's network namespace.
	Do(fn func() error) error
	// Addr is the host's address.
	Addr(ipv6 bool) (netip.Addr, error)
}

// Hosts finds a host by name; lab.Lab.Host is one.
type Hosts func(name string) (Host, error)

// Protocol of a flow.
type Protocol string

// The protocols.
const (
	TCP Protocol = "tcp"
	UDP Protocol = "udp"
)

// Flow is traffic between two hosts. Its load is one of Schedule, OnOff, Poisson, Requests and
// Transfer, or none: then it waits for SetRate.
type Flow struct {
	Name string
	// From sends the data, To receives it. With Requests, From sends the requests and To the
	// responses.
	From, To string
	Protocol Protocol
	IPv6     bool
	// SrcPort and DstPort are the ports at From and To; 0 is any free port.
	SrcPort, DstPort uint16
	// Download makes To open the TCP connection, as a client that downloads from a server does. The
	// data still goes from From to To.
	Download bool
	// DSCP is the code point of both ends' packets, Mark the sender's SO_MARK.
	DSCP uint8
	Mark uint32

	// Congestion is TCP's congestion control at the sender (with Requests, at both ends); "" is
	// DefaultCongestion.
	Congestion string
	// ECN requests explicit congestion notification. UDP then sends ECT(0), and counts arrivals with
	// CE. A TCP socket cannot request it: its namespace does (sysctl net.ipv4.tcp_ecn=1 at the end
	// that connects; the other end's default of 2 accepts it), or a congestion control that needs it,
	// such as dctcp. For TCP, Start therefore fails if the ends did not negotiate it.
	ECN bool `json:",omitempty"`
	// MPTCP creates multipath TCP sockets. Subflows besides the first come from the endpoints and
	// limits of the namespaces (ip-mptcp(8)).
	MPTCP bool `json:",omitempty"`
	// SendBuffer and ReceiveBuffer, of the sockets at both ends, are SO_SNDBUFFORCE and
	// SO_RCVBUFFORCE: the kernel doubles them for its own overhead (socket(7)) and stops tuning them.
	SendBuffer    unit.Bytes `json:",omitempty"`
	ReceiveBuffer unit.Bytes `json:",omitempty"`
	// WindowClamp limits the window that either end announces (TCP_WINDOW_CLAMP).
	WindowClamp unit.Bytes `json:",omitempty"`

	// Payload is UDP bytes per datagram; 0 fills a frame of 1,514 bytes.
	Payload int
	// Backlog is how much of the rate the application keeps for a socket that does not accept it; 0 is
	// DefaultBacklog.
	Backlog time.Duration
	// Start and Stop limit when the flow offers load, since the run's start; a Stop of 0 is never. The
	// flow's connection is open before the run and until its end. After Stop there are no new
	// Requests, and a Transfer in progress is aborted.
	Start, Stop time.Duration
	// Seed of the flow's random numbers; 0 derives it from the run's seed (Options.Seed) and the
	// flow's name.
	Seed uint64

	// Schedule is the offered rate over time since Start, in order of At. The rate is 0 before the
	// first step and stays at the last.
	Schedule []Step    `json:",omitempty"`
	OnOff    *OnOff    `json:",omitempty"`
	Poisson  *Poisson  `json:",omitempty"`
	Requests *Requests `json:",omitempty"`
	Transfer *Transfer `json:",omitempty"`
}

// Step is a change of the offered rate.
type Step struct {
	At time.Duration
	// Rate in layer-2 bits per second; Unlimited is as much as the socket takes.
	Rate unit.Rate
}

// Unlimited as a Step's rate offers as much as the socket takes.
const Unlimited = unit.MaxRate

// Constant returns the schedule of one rate from the start.
func Constant(r unit.Rate) []Step { return []Step{{Rate: r}} }

// Defaults, chosen by this project.
const (
	// DefaultCongestion is CUBIC, the default of most kernels. (A machine's default may differ, and a
	// namespace cannot set every one by sysctl.)
	DefaultCongestion = "cubic"
	// DefaultBacklog is 100 ms of the rate: long enough to compensate for a late scheduler, short
	// enough not to blur a step.
	DefaultBacklog = 100 * time.Millisecond
	// minPayload holds a UDP flow's sequence number and send time.
	minPayload = 16
	maxPayload = 65_000
)

// Validate checks what can be checked without a network. The error wraps a Mistake.
func (f Flow) Validate() error {
	if f.Name == "" {
		return mistake("name", "a flow needs a name")
	}
	for _, check := range []func() error{f.validateFlow, f.validateSockets, f.validateContent} {
		if err := check(); err != nil {
			return fmt.Errorf("flow %q: %w", f.Name, err)
		}
	}
	return nil
}

func (f Flow) validateFlow() error {
	for _, only := range []struct {
		given bool
		key   string
		of    Protocol
	}{
		{f.Congestion != "", "congestion", TCP}, {f.Download, "download", TCP}, {f.MPTCP, "mptcp", TCP},
		{f.WindowClamp != 0, "window_clamp", TCP}, {f.Payload != 0, "payload", UDP},
	} {
		if only.given && f.Protocol != only.of && (f.Protocol == TCP || f.Protocol == UDP) {
			return mistake(only.key, "only for %s, but the flow is %s: leave it out", only.of, f.Protocol)
		}
	}
	switch {
	case f.Protocol != TCP && f.Protocol != UDP:
		return mistake("proto", "%q is not a protocol: write tcp or udp", f.Protocol)
	case f.From == f.To:
		return mistake("to", "both ends of the flow are %q: choose two nodes", f.From)
	case f.DSCP > 63:
		return mistake("dscp", "%d is not a DSCP: use 0 to 63", f.DSCP)
	case f.Payload != 0 && (f.Payload < minPayload || f.Payload > maxPayload):
		return mistake("payload", "%d bytes are not between %d and %d", f.Payload, minPayload, maxPayload)
	case f.Backlog < 0:
		return mistake("backlog", "%v is negative", f.Backlog)
	case f.Start < 0:
		return mistake("start", "%v is before the run's start", f.Start)
	case f.Stop != 0 && f.Stop <= f.Start:
		return mistake("stop", "the flow stops at %v and starts at %v: set a stop after the start, or leave it out", f.Stop, f.Start)
	}
	return nil
}

// validateContent checks the load of the flow.
func (f Flow) validateContent() error {
	var named []string
	for _, c := range []struct {
		on  bool
		key string
	}{
		{len(f.Schedule) > 0, "rate"}, {f.OnOff != nil, "on_off"}, {f.Poisson != nil, "poisson"},
		{f.Requests != nil, "requests"}, {f.Transfer != nil, "transfer"},
	} {
		if c.on {
			named = append(named, c.key)
		}
	}
	if len(named) == 0 {
		return nil
	}
	key := named[0]
	connects := f.Requests != nil || f.Transfer != nil // they connect themselves, and more than once
	switch {
	case len(named) > 1:
		return mistake(named[1], "the flow also has %s: choose one", key)
	case f.Poisson != nil && f.Protocol == UDP && f.Poisson.Size != Distribution[unit.Bytes]{}:
		return mistake(key+".size", "the size of datagrams is the flow's payload: leave size out, or proto: udp")
	case f.Poisson != nil && f.Protocol != UDP && f.Poisson.Size.mean() == 0:
		return mistake(key, "tcp segments its data itself: write proto: udp, or give messages with rate and size")
	case connects && f.Protocol != TCP:
		return mistake(key, "only for tcp: leave proto out")
	case connects && f.Backlog != 0:
		return mistake("backlog", "only for flows with a rate, but %s has its own limits: leave it out", key)
	case f.Requests != nil && f.Download:
		return mistake("download", "requests are sent by the flow's from: exchange from and to instead of download")
	case f.Requests != nil && f.SrcPort != 0:
		return mistake("sport", "requests use a port at %q for each connection: leave the source port out", f.From)
	case f.Transfer != nil && !f.Download && f.SrcPort != 0:
		return mistake("sport", "a transfer uses a port at %q for each stream: leave the source port out", f.From)
	case f.Transfer != nil && f.Download && f.DstPort != 0:
		return mistake("dport", "a download uses a port at %q for each stream: leave the destination port out", f.To)
	case f.OnOff != nil:
		return within(key, f.OnOff.Validate())
	case f.Poisson != nil:
		return within(key, f.Poisson.Validate())
	case f.Requests != nil:
		return within(key, f.Requests.Validate())
	case f.Transfer != nil:
		return within(key, f.Transfer.Validate())
	}
	for i, s := range f.Schedule {
		if s.At < 0 || i > 0 && s.At <= f.Schedule[i-1].At {
			return mistake(key, "step %d is at %v: times must increase from 0", i+1, s.At)
		}
		if s.Rate > Unlimited {
			return mistake(key, "step %d exceeds %v", i+1, unit.MaxRate)
		}
	}
	return nil
}

// source returns the source of the flow's load, with random numbers from seed; payload is that of a
// full frame.
func (f *Flow) source(seed uint64, payload int) source {
	stop := int64(never)
	if f.Stop > 0 {
		stop = int64(f.Stop)
	}
	switch {
	case f.Poisson != nil:
		a := &arrivals{Poisson: *f.Poisson, rand: newRand(seed, f.Name, "poisson"), from: int64(f.Start), to: stop}
		if f.Protocol == TCP {
			a.payload = payload
		}
		return a
	case f.OnOff != nil:
		return newCourse(between(f.Start, time.Duration(stop), f.OnOff.steps(newRand(seed, f.Name, "on-off"))))
	default:
		return newCourse(between(f.Start, time.Duration(stop), stepsOf(f.Schedule)))
	}
}

// between shifts steps to start, and adds a rate of 0 at stop.
func between(start, stop time.Duration, steps func() (Step, bool)) func() (Step, bool) {
	over := stop == never
	return func() (Step, bool) {
		s, ok := steps()
		s.At += start
		if ok && s.At < stop {
			return s, true
		}
		if over {
			return s, false
		}
		over = true
		steps = func() (Step, bool) { return Step{}, false }
		return Step{At: stop}, true
	}
}

// highest returns the highest finite rate that the flow may offer.
func (f *Flow) highest() (r unit.Rate) {
	for _, s := range f.Schedule {
		if s.Rate != Unlimited {
			r = max(r, s.Rate)
		}
	}
	if f.OnOff != nil && f.OnOff.Rate != Unlimited {
		r = f.OnOff.Rate
	}
	return r
}

// unlimited reports whether the flow may offer as much as its socket takes.
func (f *Flow) unlimited() bool {
	return f.OnOff != nil && f.OnOff.Rate == Unlimited ||
		slices.ContainsFunc(f.Schedule, func(s Step) bool { return s.Rate == Unlimited })
}
