package store

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
)

// OperatorOwner takes the place of the tenant in the keys of the operator's reservations. No tenant has this name.
const OperatorOwner = "-"

// ReservationOwner returns the part of a reservation's key that names its owner.
func ReservationOwner(tenant string) string {
	if tenant == "" {
		return OperatorOwner
	}
	return tenant
}

// ReservationKey returns the key of a reservation.
func ReservationKey(id reserve.ID) string {
	return Key(Reservations, ReservationOwner(id.Tenant), id.Name)
}

// ReservationFence is a key that every change of a reservation reads. A leader that does not know whether a change was
// made writes it: the change can then not be made later (controller/reservations).
var ReservationFence = Key(Service, "reservations")

// Reservation is a reservation: the request as it was granted, and what was granted. Rates are bit/s of layer 2.
type Reservation struct {
	Tenant  string             `json:"tenant,omitempty"` // "" is the operator
	Name    string             `json:"name"`
	Request ReservationRequest `json:"request"`
	// Start and End are when the reservation begins and ends. ValidFrom is from when on Paths hold.
	Start     time.Time         `json:"start"`
	End       time.Time         `json:"end"`
	ValidFrom time.Time         `json:"valid_from"`
	RateBps   uint64            `json:"rate_bps"`
	BackBps   uint64            `json:"back_bps,omitempty"`
	Paths     []ReservationPath `json:"paths,omitempty"`
	// Degraded is why less is reserved than RateBps and BackBps, "" if nothing is lacking.
	Degraded   string    `json:"degraded,omitempty"`
	Generation uint64    `json:"generation"`
	Created    time.Time `json:"created"`
	Changed    time.Time `json:"changed"`
}

// ReservationRequest is what was asked for. A field that is absent was not given.
type ReservationRequest struct {
	From      ReservationEnd    `json:"from"`
	To        ReservationEnd    `json:"to"`
	Flows     []ReservationFlow `json:"flows,omitempty"`
	Class     int               `json:"class"`
	RateBps   uint64            `json:"rate_bps,omitempty"`
	BackBps   uint64            `json:"back_bps,omitempty"`
	Start     time.Time         `json:"start,omitzero"`
	Until     time.Time         `json:"until,omitzero"`
	Duration  int64             `json:"duration_ns,omitempty"`
	Volume    uint64            `json:"volume_bytes,omitempty"`
	Paths     int               `json:"paths,omitempty"`
	Protected bool              `json:"protected,omitempty"`
	OnDemand  bool              `json:"on_demand,omitempty"`
	// Disjoint is "" for paths without a common cable, "switch" for paths without a common switch.
	Disjoint string            `json:"disjoint,omitempty"`
	Avoid    []ReservationLink `json:"avoid,omitempty"`
	// Carried has the streams of the relay agents that carry the traffic, absent if none do.
	Carried *ReservationStreams `json:"carried,omitempty"`
}

// ReservationStreams are those between two relay agents, which have what is reserved.
type ReservationStreams struct {
	// Near and Far are the names of the agents.
	Near  string            `json:"near"`
	Far   string            `json:"far"`
	From  ReservationEnd    `json:"from"`
	To    ReservationEnd    `json:"to"`
	Flows []ReservationFlow `json:"flows"`
}

// ReservationEnd is one end of a reservation, with the port at which its traffic enters or leaves the network.
type ReservationEnd struct {
	Kind   string       `json:"kind"` // host, site, prefix or vlan
	Name   string       `json:"name"`
	Prefix netip.Prefix `json:"prefix,omitzero"`
	VLAN   uint16       `json:"vlan,omitempty"`
	At     NetworkPort  `json:"at"`
}

// ReservationFlow is a part of the traffic. Ports are the first and the last.
type ReservationFlow struct {
	Protocol         uint8      `json:"protocol,omitempty"`
	SourcePorts      *[2]uint16 `json:"source_ports,omitempty"`
	DestinationPorts *[2]uint16 `json:"destination_ports,omitempty"`
}

// ReservationPath is a path, with what is reserved on each of its links and on the reverse of each.
type ReservationPath struct {
	Links   []ReservationLink `json:"links"`
	RateBps uint64            `json:"rate_bps,omitempty"`
	BackBps uint64            `json:"back_bps,omitempty"`
	Spare   bool              `json:"spare,omitempty"`
}

// ReservationLink is one direction of a cable, or of the line of a port.
type ReservationLink struct {
	From NetworkPort `json:"from"`
	To   NetworkPort `json:"to"`
}

// NetworkPort is a port of a switch.
type NetworkPort struct {
	Switch uint64 `json:"switch"` // the datapath id
	Port   uint32 `json:"port"`
}

// ReservationBounds is what a tenant may reserve. The zero value is nothing.
type ReservationBounds struct {
	// RateBps bounds the sum of the rates of all reservations of the tenant at every moment: both directions of each,
	// and those of spare paths.
	RateBps uint64 `json:"rate_bps"`
	// Class is the lowest number of a class: 1 is served first.
	Class int `json:"class"`
	// Duration is how long a reservation may last, in ns.
	Duration int64 `json:"duration_ns"`
	// Ahead is how far in the future a reservation may begin, in ns.
	Ahead int64 `json:"ahead_ns"`
	// Ends are the names of hosts and sites, the addresses and the prefixes of which each end must be one; none is every
	// end of the network.
	Ends []string `json:"ends,omitempty"`
}

// DocumentOf returns the document of a reservation.
func DocumentOf(r reserve.Reservation, created, changed time.Time) Reservation {
	q := r.Request.Asked()
	out := Reservation{
		Tenant: q.Tenant, Name: q.Name, Start: r.Start, End: r.End, ValidFrom: r.Since,
		RateBps: uint64(r.Forward), BackBps: uint64(r.Reverse), Degraded: r.Degraded, Generation: r.Generation, Created: created, Changed: changed,
		Request: ReservationRequest{
			From: endOf(q.Source), To: endOf(q.Destination), Class: q.Class, RateBps: uint64(q.Forward), BackBps: uint64(q.Reverse),
			Start: q.Start, Until: q.Until, Duration: int64(q.Duration), Volume: uint64(q.Volume), Paths: q.Paths, Protected: q.Protected, OnDemand: q.OnDemand,
		},
	}
	if q.Disjoint == fabric.BySwitch {
		out.Request.Disjoint = "switch"
	}
	out.Request.Flows = flowsOf(q.Flows)
	if c, streams := r.Request.Carried, r.Request; c != nil {
		out.Request.Carried = &ReservationStreams{c.Near, c.Far, endOf(streams.Source), endOf(streams.Destination), flowsOf(streams.Flows)}
	}
	for _, l := range q.Avoid {
		out.Request.Avoid = append(out.Request.Avoid, LinkOf(l))
	}
	for _, p := range r.Paths {
		one := ReservationPath{Links: []ReservationLink{}, RateBps: uint64(p.Forward), BackBps: uint64(p.Reverse), Spare: p.Spare}
		for _, l := range p.Links {
			one.Links = append(one.Links, LinkOf(l))
		}
		out.Paths = append(out.Paths, one)
	}
	return out
}

// Granted is the opposite of DocumentOf, without the times of creation and change.
func (d Reservation) Granted() (reserve.Reservation, error) {
	q := d.Request
	from, err := q.From.endpoint()
	to, err2 := q.To.endpoint()
	if err := errors.Join(err, err2); err != nil {
		return reserve.Reservation{}, fmt.Errorf("reservation %v: %w", d.ID(), err)
	}
	r := reserve.Reservation{
		Start: d.Start, End: d.End, Since: d.ValidFrom, Forward: unit.Rate(d.RateBps), Reverse: unit.Rate(d.BackBps), Degraded: d.Degraded, Generation: d.Generation,
		Request: reserve.Request{
			ID: d.ID(), Source: from, Destination: to, Class: q.Class, Forward: unit.Rate(q.RateBps), Reverse: unit.Rate(q.BackBps),
			Start: q.Start, Until: q.Until, Duration: time.Duration(q.Duration), Volume: unit.Bytes(q.Volume), Paths: q.Paths, Protected: q.Protected, OnDemand: q.OnDemand,
		},
	}
	switch q.Disjoint {
	case "":
	case "switch":
		r.Request.Disjoint = fabric.BySwitch
	default:
		return r, fmt.Errorf("reservation %v has disjoint: %q, which this version does not know: upgrade the controller", d.ID(), q.Disjoint)
	}
	r.Request.Flows = reserveFlows(q.Flows)
	if c := q.Carried; c != nil {
		from, err := c.From.endpoint()
		to, err2 := c.To.endpoint()
		if err := errors.Join(err, err2); err != nil {
			return r, fmt.Errorf("reservation %v: %w", d.ID(), err)
		}
		asked := r.Request
		r.Request.Source, r.Request.Destination, r.Request.Flows = from, to, reserveFlows(c.Flows)
		r.Request.Carried = &reserve.Carried{Source: asked.Source, Destination: asked.Destination, Flows: asked.Flows, Near: c.Near, Far: c.Far}
	}
	for _, l := range q.Avoid {
		r.Request.Avoid = append(r.Request.Avoid, l.ID())
	}
	for _, p := range d.Paths {
		one := reserve.Path{Forward: unit.Rate(p.RateBps), Reverse: unit.Rate(p.BackBps), Spare: p.Spare}
		for _, l := range p.Links {
			one.Links = append(one.Links, l.ID())
		}
		r.Paths = append(r.Paths, one)
	}
	return r, nil
}

func flowsOf(all []reserve.Flow) (out []ReservationFlow) {
	for _, f := range all {
		out = append(out, ReservationFlow{f.Protocol, portsOf(f.Source), portsOf(f.Destination)})
	}
	return out
}

func reserveFlows(all []ReservationFlow) (out []reserve.Flow) {
	for _, f := range all {
		out = append(out, reserve.Flow{Protocol: f.Protocol, Source: rangeOf(f.SourcePorts), Destination: rangeOf(f.DestinationPorts)})
	}
	return out
}

// ID returns what identifies the reservation.
func (d Reservation) ID() reserve.ID { return reserve.ID{Tenant: d.Tenant, Name: d.Name} }

// State returns the state at a moment.
func (d Reservation) State(now time.Time) reserve.State {
	return reserve.Reservation{Start: d.Start, End: d.End, Degraded: d.Degraded}.State(now)
}

// endpointKinds are the kinds of ends.
var endpointKinds = []reserve.EndpointKind{reserve.Host, reserve.Site, reserve.Prefix, reserve.VLAN}

func endOf(e reserve.Endpoint) ReservationEnd {
	return ReservationEnd{Kind: e.Kind.String(), Name: e.Name, Prefix: e.Prefix, VLAN: e.VLAN, At: portOf(e.At)}
}

func (e ReservationEnd) endpoint() (reserve.Endpoint, error) {
	for _, k := range endpointKinds {
		if k.String() == e.Kind {
			return reserve.Endpoint{Kind: k, Name: e.Name, Prefix: e.Prefix, VLAN: e.VLAN, At: e.At.ID()}, nil
		}
	}
	return reserve.Endpoint{}, fmt.Errorf("an end has the kind %q, which this version does not know: upgrade the controller", e.Kind)
}

func portOf(p fabric.PortID) NetworkPort {
	return NetworkPort{Switch: uint64(p.Switch), Port: uint32(p.Port)}
}

// LinkOf returns the stored form of a link, or of the line of a port, of which one end is zero (reserve.Uplink).
func LinkOf(l fabric.LinkID) ReservationLink { return ReservationLink{portOf(l.From), portOf(l.To)} }

// ID returns the port.
func (p NetworkPort) ID() fabric.PortID {
	return fabric.PortID{Switch: fabric.DPID(p.Switch), Port: fabric.PortNo(p.Port)}
}

// ID returns the link.
func (l ReservationLink) ID() fabric.LinkID { return fabric.LinkID{From: l.From.ID(), To: l.To.ID()} }

func portsOf(p reserve.Ports) *[2]uint16 {
	if p == (reserve.Ports{}) {
		return nil
	}
	return &[2]uint16{p.First, p.Last}
}

func rangeOf(p *[2]uint16) reserve.Ports {
	if p == nil {
		return reserve.Ports{}
	}
	return reserve.Ports{First: p[0], Last: p[1]}
}
