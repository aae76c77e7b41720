package reserve

import (
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Check returns the mistakes of a request that show without the network, nil if there are none. A zero now leaves out
// what depends on the clock: a time that is past, and a window that begins now.
func (r Request) Check(now time.Time) (errs []*Invalid) {
	add := func(key, format string, args ...any) { errs = append(errs, invalid(key, format, args...)) }
	if now.IsZero() {
		now = first
	}
	if r.Name == "" {
		add("name", "the reservation has no name: write one")
	}
	if r.Class < 1 || r.Class > Classes {
		add("class", "%d is not a class: write 1, which is served first, to %d", r.Class, Classes)
	}
	if r.Paths < 0 || r.Paths > MaxPaths {
		add("paths", "%d is not a number of disjoint paths: write 1 to %d", r.Paths, MaxPaths)
	}
	errs = append(errs, checkFlows(r.Asked().Flows)...)
	errs = append(errs, r.CheckCarried()...)
	errs = append(errs, checkTimes(r, now)...)
	switch {
	case r.Volume > 0 && (r.Forward > 0 || r.Reverse > 0):
		add("rate", "a reservation with a volume has no rate, because the rate follows: remove rate and reverse, or volume")
	case r.Volume > MaxVolume:
		add("volume", "%v is more than a reservation can move: write at most %v", r.Volume, MaxVolume)
	case r.Volume == 0 && r.Forward == 0 && r.Reverse > 0:
		add("rate", "the rate is 0: write one, or exchange source and destination for a reservation of one direction")
	case r.Volume == 0 && r.Forward == 0:
		add("rate", "the rate is 0: write one, for example 100Mbit, or a volume and a deadline")
	}
	return errs
}

// check returns all mistakes of a request, each an *Invalid, nil if there are none.
func (l *ledger) check(r Request, now time.Time) error {
	var errs []error
	for _, e := range r.Check(now) {
		errs = append(errs, e)
	}
	for i, id := range r.Avoid {
		if _, ok := l.top.Link(id); !ok {
			errs = append(errs, invalid(fmt.Sprintf("avoid[%d]", i), "%s is not in the network: correct or remove it", l.label(id)))
		}
	}
	for i := len(r.Avoid); i < len(r.AvoidNames); i++ {
		errs = append(errs, notInNetwork(i, r.AvoidNames[i]))
	}
	errs = append(errs, l.checkEnds(r)...)
	if r.Volume == 0 {
		errs = append(errs, l.checkRates(r)...)
	}
	return errors.Join(errs...)
}

func (l *ledger) checkEnds(r Request) (errs []error) {
	for _, e := range []struct {
		key string
		Endpoint
	}{{"source", r.Source}, {"destination", r.Destination}} {
		_, exists := l.index[Uplink(e.At)]
		switch {
		case e.At == fabric.PortID{}:
			errs = append(errs, invalid(e.key, "the network knows no %v: correct the name, or add it to the network", e.Endpoint))
		case l.top.CarriesLink(e.At):
			errs = append(errs, invalid(e.key, "%v is at port %s, which has a link to another switch: name a host at a port without a link", e.Endpoint, l.top.PortLabel(e.At)))
		case !exists:
			errs = append(errs, invalid(e.key, "%v is at port %s, which is not in the network: add its switch, or correct the name", e.Endpoint, l.top.PortLabel(e.At)))
		}
	}
	switch s, d := r.Source.At, r.Destination.At; {
	case s == d && s != fabric.PortID{}:
		errs = append(errs, invalid("destination", "%v and %v are at the same port %s, and their traffic does not cross the network: name two ends at different ports", r.Source, r.Destination, l.top.PortLabel(s)))
	case s.Switch == d.Switch && s.Switch != 0 && newAsk(r).count > 1:
		errs = append(errs, invalid("paths", "%v and %v are at the same switch, between whose ports there is one path: ask for one path without protection", r.Source, r.Destination))
	}
	return errs
}

func checkFlows(flows []Flow) (errs []*Invalid) {
	for i, f := range flows {
		key := fmt.Sprintf("flows[%d]", i)
		if (f.Source != (Ports{}) || f.Destination != (Ports{})) && !f.HasPorts() {
			errs = append(errs, invalid(key+".protocol", "protocol %d has no ports: write tcp, udp, dccp or sctp, or remove the ports", f.Protocol))
		}
		for _, p := range []Ports{f.Source, f.Destination} {
			if p.First > p.Last || p.First == 0 && p.Last != 0 {
				errs = append(errs, invalid(key+".ports", "%d-%d is not a range of ports: write the first and the last, from 1 to 65535", p.First, p.Last))
			}
		}
		for j, g := range flows[:i] {
			if f.overlap(g) {
				errs = append(errs, invalid(key, "flow %d overlaps flow %d, and a packet would be of both: remove one, or narrow its ports", i+1, j+1))
			}
		}
	}
	return errs
}

func checkTimes(r Request, now time.Time) (errs []*Invalid) {
	add := func(key, format string, args ...any) { errs = append(errs, invalid(key, format, args...)) }
	start, window := r.begin(now), !r.Until.IsZero()
	switch {
	case start.Before(now):
		add("start", "%s is in the past: write a time after %s, or leave it out to start now", stamp(start), second(now))
	case start.Before(first) || !start.Before(last):
		add("start", "%s is not within the calendar: write a time before %s", stamp(start), stamp(last))
	}
	switch {
	case window && !r.Until.After(start):
		add("until", "the deadline %s is not after the start %s: write a later one", stamp(r.Until), stamp(start))
		window = false
	case window && !r.Until.Before(last):
		add("until", "%s is not within the calendar: write a time before %s", stamp(r.Until), stamp(last))
	}
	switch {
	case r.Volume > 0:
		if r.Duration != 0 {
			add("duration", "a reservation with a volume has no duration, because it follows from the volume: remove duration or volume")
		}
		if r.Until.IsZero() {
			add("until", "a reservation with a volume has no deadline: write one")
		}
	case r.Duration <= 0:
		add("duration", "the duration is %v: write how long the reservation lasts, for example 2h", r.Duration)
	case window && r.Until.Sub(start) < r.Duration:
		add("until", "the window from %s to %s is %v, shorter than the duration of %v: write a later until, or a shorter duration", stamp(start), stamp(r.Until), r.Until.Sub(start), r.Duration)
	case !start.Add(r.Duration).Before(last):
		add("duration", "the reservation ends after %s, the end of the calendar: write a shorter one", stamp(last))
	}
	return errs
}

func (l *ledger) checkRates(r Request) (errs []error) {
	a := newAsk(r)
	fastest := int64(0)
	for i, usable := range l.usable {
		if usable {
			fastest = max(fastest, l.lines[i].limit)
		}
	}
	for _, d := range []struct {
		key      string
		rate     unit.Rate
		from, to fabric.PortID
	}{{"rate", r.Forward, a.from, a.to}, {"reverse", r.Reverse, a.to, a.from}} {
		if a.from.Switch != a.to.Switch && int64(d.rate) > fastest*int64(a.parts) {
			text := fmt.Sprintf("%v is more than any link can reserve, which is %v: ask for less", d.rate, unit.Rate(fastest))
			if a.parts < MaxPaths {
				text += ", or for more paths"
			}
			errs = append(errs, invalid(d.key, "%s", text))
			continue
		}
		for _, id := range []fabric.LinkID{Uplink(d.from), Downlink(d.to)} {
			if i, ok := l.index[id]; ok && int64(d.rate) > l.lines[i].limit {
				errs = append(errs, invalid(d.key, "%v is more than %s can reserve, which is %v: ask for less", d.rate, l.label(id), unit.Rate(l.lines[i].limit)))
			}
		}
	}
	return errs
}
