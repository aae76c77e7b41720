package traffic

import (
	"fmt"
	"net/netip"
	"time"

	"headgate/unit"
)

// Host is where a flow begins or ends; lab.Node is one.
type Host interface {
	// Do runs fn on a thread inside the host's network namespace.
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

// Flow is data from one host to another.
type Flow struct {
	Name string
	// From sends the data, To receives it.
	From, To string
	Protocol Protocol
	IPv6     bool
	// SrcPort and DstPort are the ports at From and To; 0 lets us choose.
	SrcPort, DstPort uint16
	// Download lets To open the TCP connection, as a client that fetches from a
	// server does. The data goes from From to To all the same.
	Download bool
	// Congestion is TCP's congestion control at the sender; "" is DefaultCongestion.
	Congestion string
	// DSCP is the code point of what both ends send, Mark the sender's SO_MARK.
	DSCP uint8
	Mark uint32
	// Payload is UDP bytes per datagram; 0 fills a frame of 1,514 bytes.
	Payload int
	// Backlog is how much of the rate the application keeps for a socket that does
	// not take it; 0 is DefaultBacklog.
	Backlog time.Duration
	// Schedule is the offered rate over time since the start, in order of At. The
	// rate is 0 before the first step and stays at the last.
	Schedule []Step
}

// Step is a change of the offered rate.
type Step struct {
	At time.Duration
	// Rate in layer-2 bits per second; Unlimited is as much as the socket takes.
	Rate unit.Rate
}

// Unlimited as a Step's rate offers as much as the socket takes.
const Unlimited = unit.MaxRate

// Constant is the schedule of one rate from the start.
func Constant(r unit.Rate) []Step { return []Step{{Rate: r}} }

// Defaults, ours.
const (
	// DefaultCongestion is CUBIC, the default of most kernels. (This machine's may
	// be another, and a namespace cannot set every one by sysctl.)
	DefaultCongestion = "cubic"
	// DefaultBacklog is 100 ms of the rate: long enough to ride over a late
	// scheduler, short enough not to blur a step.
	DefaultBacklog = 100 * time.Millisecond
	// minPayload holds a UDP flow's sequence number.
	minPayload = 16
	maxPayload = 65_000
)

// Validate checks what can be known without a network.
func (f Flow) Validate() error {
	switch {
	case f.Name == "":
		return fmt.Errorf("a flow needs a name")
	case f.Protocol != TCP && f.Protocol != UDP:
		return fmt.Errorf("flow %q: %q is not a protocol: write tcp or udp", f.Name, f.Protocol)
	case f.From == f.To:
		return fmt.Errorf("flow %q: it begins and ends at %q: choose two nodes", f.Name, f.From)
	case f.DSCP > 63:
		return fmt.Errorf("flow %q: %d is not a DSCP: use 0 to 63", f.Name, f.DSCP)
	case f.Protocol == UDP && (f.Congestion != "" || f.Download):
		return fmt.Errorf("flow %q: congestion and download are for tcp", f.Name)
	case f.Protocol == TCP && f.Payload != 0:
		return fmt.Errorf("flow %q: payload is for udp", f.Name)
	case f.Payload != 0 && (f.Payload < minPayload || f.Payload > maxPayload):
		return fmt.Errorf("flow %q: a payload of %d bytes is not between %d and %d", f.Name, f.Payload, minPayload, maxPayload)
	case f.Backlog < 0:
		return fmt.Errorf("flow %q: a backlog of %v is negative", f.Name, f.Backlog)
	}
	for i, s := range f.Schedule {
		if s.At < 0 || i > 0 && s.At <= f.Schedule[i-1].At {
			return fmt.Errorf("flow %q: step %d of the schedule is at %v: times rise from 0", f.Name, i+1, s.At)
		}
		if s.Rate > Unlimited {
			return fmt.Errorf("flow %q: step %d of the schedule is more than %v", f.Name, i+1, unit.MaxRate)
		}
	}
	return nil
}

// rateAt is the offered rate at ns since the start.
func (f *Flow) rateAt(ns int64) (r unit.Rate) {
	for _, s := range f.Schedule {
		if int64(s.At) > ns {
			break
		}
		r = s.Rate
	}
	return r
}

// offered is the schedule's layer-2 bits between two times in ns since the
// start; parts at Unlimited count as none, because nobody knows.
func (f *Flow) offered(from, to int64) (bits float64) {
	for i, s := range f.Schedule {
		a, b := max(from, int64(s.At)), to
		if i+1 < len(f.Schedule) {
			b = min(b, int64(f.Schedule[i+1].At))
		}
		if b > a && s.Rate != Unlimited {
			bits += float64(s.Rate) * float64(b-a) / 1e9
		}
	}
	return bits
}
