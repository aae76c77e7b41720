package reserve

import (
	"fmt"
	"net/netip"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// ID identifies a reservation.
type ID struct {
	// Tenant is empty for reservations of the operator.
	Tenant, Name string
}

// String prints tenant/name, or the name alone.
func (i ID) String() string {
	if i.Tenant == "" {
		return i.Name
	}
	return i.Tenant + "/" + i.Name
}

// EndpointKind says what an operator or tenant named as one end of a reservation.
type EndpointKind uint8

const (
	// Host: one host.
	Host EndpointKind = iota
	// Site: all that is behind one port of a site.
	Site
	// Prefix: the addresses of a prefix, a circuit of layer 3.
	Prefix
	// VLAN: the frames of a VLAN, a circuit of layer 2.
	VLAN
)

// String prints host, site, prefix or vlan.
func (k EndpointKind) String() string {
	switch k {
	case Site:
		return "site"
	case Prefix:
		return "prefix"
	case VLAN:
		return "vlan"
	}
	return "host"
}

// HostNamed returns the end that is the host with a name or an address. An address can be written in several ways: the name is the shortest one.
func HostNamed(name string) Endpoint {
	if a, err := netip.ParseAddr(name); err == nil {
		name = a.String()
	}
	return Endpoint{Kind: Host, Name: name}
}

// Endpoint is one end of a reservation (s and d of equation 3.1).
type Endpoint struct {
	Kind EndpointKind
	// Name is what the request has: the name of a host or site, or the text of Prefix or VLAN. Messages print it.
	Name string
	// Prefix has the addresses of a Host or Prefix. It is not valid where any address is meant.
	Prefix netip.Prefix
	// VLAN is 1 to 4094, 0 for untagged frames.
	VLAN uint16
	// At is the port at which the traffic enters or leaves the network. The caller finds it; the zero value is an
	// endpoint that the caller did not find.
	At fabric.PortID
}

// String prints host h1.
func (e Endpoint) String() string { return e.Kind.String() + " " + e.Name }

// Ports are a range of TCP or UDP ports, both included. The zero value is any port.
type Ports struct{ First, Last uint16 }

func (p Ports) overlap(q Ports) bool {
	return p == Ports{} || q == Ports{} || p.First <= q.Last && q.First <= p.Last
}

// Flow is a part of the traffic between the two ends (sp, dp and proto of equation 3.1).
type Flow struct {
	// Protocol is a number of IANA's registry of protocol numbers, for example 6 for TCP. 0 is any protocol.
	Protocol uint8
	// Source and Destination need protocol 6, 17, 33 or 132: TCP, UDP, DCCP and SCTP.
	Source, Destination Ports
}

// HasPorts reports whether the protocol has ports.
func (f Flow) HasPorts() bool {
	switch f.Protocol {
	case 6, 17, 33, 132:
		return true
	}
	return false
}

func (f Flow) overlap(g Flow) bool {
	return (f.Protocol == g.Protocol || f.Protocol == 0 || g.Protocol == 0) && f.Source.overlap(g.Source) && f.Destination.overlap(g.Destination)
}

const (
	// MaxPaths is the greatest number of disjoint paths of a reservation, without the spare path.
	MaxPaths = 8
	// Classes is the number of classes: QoS1, the first to be served, to QoS4 (section 3.1).
	Classes = 4
)

// Request is what is asked for: the tuple F = (s, sp, d, dp, proto, AT, ST, D, class, minBW) of equation 3.1, widened.
// ST, the actual start, is in the Reservation.
type Request struct {
	ID
	Source, Destination Endpoint
	// Flows is the traffic between the ends that has the reservation; none is all of it. A reservation has one rate for
	// all its flows.
	Flows []Flow
	// Class is 1 to 4 (class).
	Class int
	// Forward is the rate from Source to Destination (minBW), of layer 2. A request with Volume has none.
	Forward unit.Rate
	// Reverse is the rate from Destination to Source, 0 for a reservation of one direction. A request with Volume has
	// none.
	Reverse unit.Rate
	// Start is when the reservation begins (AT), or the earliest time if there is an Until. Zero is now.
	Start time.Time
	// Until bounds the end: any start is good with which the reservation ends by then. Zero is a start at Start exactly.
	Until time.Time
	// Duration is how long the reservation lasts (D). A request with Volume has none.
	Duration time.Duration
	// Volume is how many bytes of layer 2 are to be moved from Source to Destination between Start and Until, which must
	// be set. The rate and the duration follow.
	Volume unit.Bytes
	// Paths is the number of disjoint paths among which the rates are divided equally. 0 is 1.
	Paths int
	// Protected asks for one disjoint path more, of the rate of one of the others, to which traffic changes when a path
	// fails.
	Protected bool
	// OnDemand asks for flows and meters on the switches of the path when traffic comes, and none before: switches
	// with few have room for more reservations. The traffic before that, of a cycle at most, is sent without the reservation.
	OnDemand bool
	// Disjoint says what the paths may not have in common.
	Disjoint fabric.Disjointness
	// Avoid are links that the paths may not use, for example before maintenance.
	Avoid []fabric.LinkID
	// AvoidNames are these links as the request has them, each by its two ends: s1/3 and s2/4. FindAvoided finds them.
	AvoidNames [][2]string
	// Carried is set if relay agents are to carry the traffic (Carried).
	Carried *Carried
}

// Direction returns the ends and the flows of one direction of the request: with reverse that from Destination to Source.
func (r Request) Direction(reverse bool) (from, to Endpoint, flows []Flow) {
	if !reverse {
		return r.Source, r.Destination, r.Flows
	}
	for _, f := range r.Flows {
		f.Source, f.Destination = f.Destination, f.Source
		flows = append(flows, f)
	}
	return r.Destination, r.Source, flows
}

// Carried is the traffic of a request that relay agents carry. Source, Destination and Flows of the request are then the streams between the agents, so
// that these have the paths and the rate. Carried without names is of a request for which no agents are chosen yet: its ends are still those of the traffic.
type Carried struct {
	// Source, Destination and Flows are those of the traffic.
	Source, Destination Endpoint
	Flows               []Flow
	// Near and Far are the names of the agents that take the traffic, and that connect to its destination.
	Near, Far string
}

// Asked returns the request as it was asked for: where relay agents carry its traffic its ends and flows are those of the traffic.
func (r Request) Asked() Request {
	if c := r.Carried; c != nil && c.Near != "" {
		r.Source, r.Destination, r.Flows, r.Carried = c.Source, c.Destination, c.Flows, &Carried{}
	}
	return r
}

// CheckCarried returns why relay agents cannot carry the traffic of a request, as far as that shows without the network.
func (r Request) CheckCarried() (errs []*Invalid) {
	if r.Carried == nil {
		return nil
	}
	add := func(format string, args ...any) { errs = append(errs, invalid("carry", format, args...)) }
	r = r.Asked()
	for _, e := range []Endpoint{r.Source, r.Destination} {
		if e.Kind == VLAN {
			add("relay agents carry connections between addresses, and %v is not one: write a host, a site or a prefix", e)
		}
	}
	if len(r.Flows) == 0 {
		add("relay agents carry TCP alone, and the reservation is for all traffic: write the flows, with the protocol tcp")
	}
	for i, f := range r.Flows {
		switch {
		case f.Protocol != protocolTCP:
			add("relay agents carry TCP alone, and flow %d has another protocol: write tcp, and make a reservation without carry for the rest", i+1)
		case f.Source != (Ports{}):
			add("connections are sent to relay agents by the ports of servers, and flow %d has ports of clients: remove them", i+1)
		}
	}
	if r.OnDemand {
		add("relay agents always have packets on the way, so that switches would be programmed at all times: remove what asks for it on demand")
	}
	return errs
}

// protocolTCP is the number of TCP in IANA's registry.
const protocolTCP = 6

// paths returns the number of paths without the spare path.
func (r Request) paths() int { return max(r.Paths, 1) }

// Invalid is one mistake in a request.
type Invalid struct {
	// Key is where the mistake is: the name of a field in a document, for example flows[1].protocol.
	Key string
	// Problem names the object, the problem and the remedy.
	Problem string
}

func (e *Invalid) Error() string { return e.Key + ": " + e.Problem }

func invalid(key, format string, args ...any) *Invalid {
	return &Invalid{key, fmt.Sprintf(format, args...)}
}
