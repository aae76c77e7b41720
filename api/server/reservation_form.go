package server

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// defaultClass is the class of a request without one: the last to be served.
const defaultClass = reserve.Classes

// protocols are names of IANA's registry of protocol numbers that are written as words.
var protocols = map[string]uint8{"icmp": 1, "tcp": 6, "udp": 17, "dccp": 33, "icmpv6": 58, "sctp": 132}

// requestFrom parses the API form of a request. The error names the field.
func requestFrom(id reserve.ID, b api.ReservationRequest) (r reserve.Request, err error) {
	r = reserve.Request{
		ID: id, Class: valueOr(b.Class, defaultClass), Start: valueOr(b.Start, time.Time{}).UTC(), Until: valueOr(b.Until, time.Time{}).UTC(),
		Paths: valueOr(b.Paths, 0), Protected: valueOr(b.Protected, false), OnDemand: valueOr(b.OnDemand, false),
	}
	if valueOr(b.Disjoint, api.DisjointByLink) == api.DisjointBySwitch {
		r.Disjoint = fabric.BySwitch
	}
	if b.Carry != nil {
		r.Carried = &reserve.Carried{}
	}
	parse := func(field string, text *string, into interface{ UnmarshalText([]byte) error }) {
		if err == nil && text != nil {
			if e := into.UnmarshalText([]byte(*text)); e != nil {
				err = invalidField(field, e)
			}
		}
	}
	parse("rate", b.Rate, &r.Forward)
	parse("back", b.Back, &r.Reverse)
	parse("volume", b.Volume, &r.Volume)
	if b.Volume != nil && r.Volume == 0 && err == nil {
		err = invalidField("volume", errors.New("the volume is 0: write how much is to be moved, for example 2TB, or remove it and write a rate and a duration"))
	}
	if b.Duration != nil && err == nil {
		if r.Duration, err = time.ParseDuration(*b.Duration); err != nil {
			err = invalidField("duration", fmt.Errorf("%q is not a duration: write for example 90m or 48h", *b.Duration))
		}
	}
	if err == nil {
		r.Source, err = endFrom("from", b.From)
	}
	if err == nil {
		r.Destination, err = endFrom("to", b.To)
	}
	for i, f := range valueOr(b.Flows, nil) {
		if err == nil {
			var flow reserve.Flow
			flow, err = flowFrom(fmt.Sprintf("flows[%d]", i), f)
			r.Flows = append(r.Flows, flow)
		}
	}
	for i, l := range valueOr(b.Avoid, nil) {
		if err == nil {
			var link fabric.LinkID
			link.From, err = portFrom(fmt.Sprintf("avoid[%d].from", i), l.From)
			if err == nil {
				link.To, err = portFrom(fmt.Sprintf("avoid[%d].to", i), l.To)
			}
			r.Avoid = append(r.Avoid, link)
		}
	}
	return r, err
}

func portFrom(field string, p api.NetworkPortID) (id fabric.PortID, err error) {
	if id.Switch, err = fabric.ParseDPID(p.Switch); err != nil {
		return id, invalidField(field, err)
	}
	if p.Port < 1 || p.Port > int64(fabric.MaxPort) {
		return id, invalidField(field, fmt.Errorf("%d is not the number of a port: write 1 to %d", p.Port, uint32(fabric.MaxPort)))
	}
	id.Port = fabric.PortNo(p.Port)
	return id, nil
}

func endFrom(field string, e api.ReservationEnd) (out reserve.Endpoint, err error) {
	kinds := 0
	if e.Host != nil {
		kinds++
		out = reserve.HostNamed(*e.Host)
	}
	if e.Site != nil {
		kinds++
		out.Kind, out.Name = reserve.Site, *e.Site
	}
	if e.Prefix != nil {
		kinds++
		if out.Prefix, err = netip.ParsePrefix(*e.Prefix); err != nil || out.Prefix != out.Prefix.Masked() {
			return out, invalidField(field, fmt.Errorf("%q is not a prefix: write an address with zeros after its length, such as 10.1.0.0/16", *e.Prefix))
		}
		out.Kind, out.Name = reserve.Prefix, out.Prefix.String()
	}
	if e.Vlan != nil {
		kinds++
		out.Kind, out.VLAN, out.Name = reserve.VLAN, uint16(*e.Vlan), strconv.Itoa(*e.Vlan)
	}
	if kinds != 1 {
		return out, invalidField(field, fmt.Errorf("an end has one of host, site, prefix and vlan, and this one has %d: write one", kinds))
	}
	if e.At != nil {
		out.At, err = portFrom(field+".at", *e.At)
	}
	return out, err
}

func flowFrom(field string, f api.ReservationFlow) (out reserve.Flow, err error) {
	if f.Protocol != nil {
		number, known := protocols[strings.ToLower(*f.Protocol)]
		if !known {
			v, err := strconv.ParseUint(*f.Protocol, 10, 8)
			if err != nil || v == 0 {
				return out, invalidField(field+".protocol", fmt.Errorf("%q is not a protocol: write tcp, udp, dccp, sctp, icmp, icmpv6, or a number from 1 to 255", *f.Protocol))
			}
			number = uint8(v)
		}
		out.Protocol = number
	}
	if out.Source, err = portsFrom(field+".source_ports", f.SourcePorts); err != nil {
		return out, err
	}
	out.Destination, err = portsFrom(field+".destination_ports", f.DestinationPorts)
	return out, err
}

func portsFrom(field string, text *string) (p reserve.Ports, err error) {
	if text == nil {
		return p, nil
	}
	first, last, isRange := strings.Cut(*text, "-")
	if !isRange {
		last = first
	}
	a, err1 := strconv.ParseUint(first, 10, 16)
	b, err2 := strconv.ParseUint(last, 10, 16)
	if err1 != nil || err2 != nil || a == 0 || a > b {
		return p, invalidField(field, fmt.Errorf("%q is not a range of ports: write one port, or the first and the last, from 1 to 65535", *text))
	}
	return reserve.Ports{First: uint16(a), Last: uint16(b)}, nil
}

// reservationOf returns the API form of a document at a moment.
func reservationOf(d store.Reservation, now time.Time) (out api.Reservation, err error) {
	r, err := d.Granted()
	if err != nil {
		return out, err
	}
	forward, reverse := r.Rates()
	out = api.Reservation{
		Owner: store.ReservationOwner(d.Tenant), Name: d.Name, State: api.ReservationState(d.State(now).String()), Degraded: optional(d.Degraded),
		Request: ReservationForm(r.Request), Start: d.Start, End: d.End, RateBps: int64(d.RateBps), BackBps: int64(d.BackBps),
		ReservedBps: int64(forward), ReservedBackBps: int64(reverse), Paths: []api.ReservationPath{},
		Generation: int64(d.Generation), Created: d.Created, Changed: d.Changed,
	}
	if c := r.Request.Carried; c != nil {
		out.Relays = &api.ReservationRelays{Near: c.Near, Far: c.Far}
	}
	for _, p := range r.Paths {
		one := api.ReservationPath{Links: []api.NetworkLinkEnds{}, RateBps: int64(p.Forward), BackBps: int64(p.Reverse), Spare: p.Spare}
		for _, l := range p.Links {
			one.Links = append(one.Links, linkEndsOf(l))
		}
		out.Paths = append(out.Paths, one)
	}
	return out, nil
}

// ReservationForm returns the API form of a request, as it was asked for.
func ReservationForm(r reserve.Request) api.ReservationRequest {
	r = r.Asked()
	out := api.ReservationRequest{From: endOf(r.Source), To: endOf(r.Destination), Class: &r.Class}
	if r.Forward > 0 {
		out.Rate = new(r.Forward.String())
	}
	if r.Reverse > 0 {
		out.Back = new(r.Reverse.String())
	}
	if !r.Start.IsZero() {
		out.Start = &r.Start
	}
	if !r.Until.IsZero() {
		out.Until = &r.Until
	}
	if r.Duration > 0 {
		out.Duration = new(schedule.Duration(r.Duration).String())
	}
	if r.Volume > 0 {
		out.Volume = new(r.Volume.String())
	}
	if r.Paths > 1 {
		out.Paths = &r.Paths
	}
	if r.Protected {
		out.Protected = &r.Protected
	}
	if r.OnDemand {
		out.OnDemand = &r.OnDemand
	}
	if r.Disjoint == fabric.BySwitch {
		out.Disjoint = new(api.DisjointBySwitch)
	}
	if r.Carried != nil {
		out.Carry = new(api.CarryByRelay)
	}
	if len(r.Flows) > 0 {
		out.Flows = &[]api.ReservationFlow{}
	}
	for _, f := range r.Flows {
		*out.Flows = append(*out.Flows, flowOf(f))
	}
	if len(r.Avoid) > 0 {
		out.Avoid = &[]api.NetworkLinkEnds{}
	}
	for _, l := range r.Avoid {
		*out.Avoid = append(*out.Avoid, linkEndsOf(l))
	}
	return out
}

func endOf(e reserve.Endpoint) (out api.ReservationEnd) {
	switch e.Kind {
	case reserve.Site:
		out.Site = &e.Name
	case reserve.Prefix:
		out.Prefix = &e.Name
	case reserve.VLAN:
		out.Vlan = new(int(e.VLAN))
	default:
		out.Host = &e.Name
	}
	if e.At != (fabric.PortID{}) {
		out.At = new(portIDOf(e.At))
	}
	return out
}

func flowOf(f reserve.Flow) (out api.ReservationFlow) {
	if f.Protocol != 0 {
		text := strconv.Itoa(int(f.Protocol))
		for name, number := range protocols {
			if number == f.Protocol {
				text = name
			}
		}
		out.Protocol = &text
	}
	out.SourcePorts, out.DestinationPorts = portsText(f.Source), portsText(f.Destination)
	return out
}

func portsText(p reserve.Ports) *string {
	switch {
	case p == reserve.Ports{}:
		return nil
	case p.First == p.Last:
		return new(strconv.Itoa(int(p.First)))
	}
	return new(fmt.Sprintf("%d-%d", p.First, p.Last))
}

func portIDOf(p fabric.PortID) api.NetworkPortID {
	return api.NetworkPortID{Switch: p.Switch.String(), Port: int64(p.Port)}
}

func linkEndsOf(l fabric.LinkID) api.NetworkLinkEnds {
	return api.NetworkLinkEnds{From: portIDOf(l.From), To: portIDOf(l.To)}
}

// refusalOf returns the API form of a refusal.
func refusalOf(e *reserve.Refusal) *api.ReservationRefusal {
	out := &api.ReservationRefusal{Reason: api.ReservationRefusalReason(e.Reason.String())}
	if e.Reason != reserve.NoPath {
		out.At, out.FreeBps, out.NeededBps = &e.At, new(int64(e.Free)), new(int64(e.Needed))
		if e.Link.From != (fabric.PortID{}) {
			out.From = new(portIDOf(e.Link.From))
		}
		if e.Link.To != (fabric.PortID{}) {
			out.To = new(portIDOf(e.Link.To))
		}
	}
	offer := func(r *reserve.Request) *api.ReservationRequest {
		if r == nil {
			return nil
		}
		return new(ReservationForm(*r))
	}
	out.Most, out.Earliest, out.Window = offer(e.Most), offer(e.Earliest), offer(e.Window)
	return out
}

// boundsFrom parses the bounds of a tenant, nil for none.
func boundsFrom(b *api.ReservationBounds) (*store.ReservationBounds, error) {
	if b == nil {
		return nil, nil
	}
	out := store.ReservationBounds{Class: valueOr(b.Class, defaultClass), Ends: valueOr(b.Ends, nil)}
	rate, err := unit.ParseRate(b.Rate)
	if err != nil {
		return nil, invalidField("reservations.rate", err)
	}
	out.RateBps = uint64(rate)
	for field, one := range map[string]struct {
		text string
		into *int64
	}{"duration": {b.Duration, &out.Duration}, "ahead": {b.Ahead, &out.Ahead}} {
		d, err := time.ParseDuration(one.text)
		if err != nil {
			return nil, invalidField("reservations."+field, fmt.Errorf("%q is not a duration: write for example 90m or 48h", one.text))
		}
		*one.into = int64(d)
	}
	return &out, nil
}

// boundsShown returns the API form of the bounds of a tenant.
func boundsShown(b *store.ReservationBounds) *api.ReservationBounds {
	if b == nil {
		return nil
	}
	out := &api.ReservationBounds{
		Rate: unit.Rate(b.RateBps).String(), Class: &b.Class, Duration: schedule.Duration(b.Duration).String(), Ahead: schedule.Duration(b.Ahead).String(),
	}
	if len(b.Ends) > 0 {
		out.Ends = &b.Ends
	}
	return out
}
