package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
)

// Reservation is one "kind: Reservation" document: bandwidth across a network for a time. It has no tenant, which is
// the one who sends it.
type Reservation struct {
	reserve.Request
	File string
	Line int

	places map[string]position // of each key
}

// Where returns the file, line and column of a key, or of the nearest parent key.
func (r Reservation) Where(key string) (file string, line, column int) {
	p := (&decoder{places: r.places}).place(key, position{line: r.Line, column: 1})
	return r.File, p.line, p.column
}

// ParseReservation parses a text that is one document of kind: Reservation. name is the file name in errors. The ends
// have no port, and the links to avoid have their names alone. Times are not compared with the clock: the text can have
// been stored before they were past.
func ParseReservation(name, text string) (reserve.Request, error) {
	var l loader
	set, err := l.load([]string{"-"}, named{strings.NewReader(text), name})
	if err == nil && len(set.Reservations) != 1 {
		err = fmt.Errorf("%d documents of kind: Reservation: write one", len(set.Reservations))
	}
	if err != nil {
		return reserve.Request{}, err
	}
	return set.Reservations[0].Request, nil
}

// reservationKeys are the keys of a document that differ from those of reserve.Invalid.
var reservationKeys = strings.NewReplacer("source", "from", "destination", "to", "reverse", "back", "duration", "for", "protocol", "proto")

// ReservationKey returns the key of a document for a field of a reservation in the API or in an error of the package reserve.
func ReservationKey(field string) string { return reservationKeys.Replace(field) }

func reservationDocument(s *source, n *node) Reservation {
	d := newDecoder(s)
	out := Reservation{File: s.file, Line: n.line, places: d.places}
	r := &out.Request
	r.Class = reserve.Classes
	d.fields(n, "", "a reservation", []field{
		{"kind", func(*node, string) {}},
		{"name", one(d, &r.Name, serverName)},
		{"from", one(d, &r.Source, endpoint)},
		{"to", one(d, &r.Destination, endpoint)},
		{"flows", func(n *node, key string) {
			d.each(n, key, "a flow", func(n *node, key string) { r.Flows = append(r.Flows, d.flow(n, key)) })
		}},
		{"class", one(d, &r.Class, reservationClass)},
		{"rate", one(d, &r.Forward, reservedRate)},
		{"back", one(d, &r.Reverse, reservedRate)},
		{"start", one(d, &r.Start, startTime)},
		{"for", one(d, &r.Duration, lasting)},
		{"until", one(d, &r.Until, timestamp)},
		{"volume", one(d, &r.Volume, reservedVolume)},
		{"paths", one(d, &r.Paths, pathCount)},
		{"protected", one(d, &r.Protected, boolean)},
		{"push", one(d, &r.OnDemand, onDemand)},
		{"disjoint", one(d, &r.Disjoint, disjointness)},
		{"carry", one(d, &r.Carried, carry)},
		{"avoid", func(n *node, key string) {
			d.each(n, key, "a link", func(n *node, key string) { r.AvoidNames = append(r.AvoidNames, d.avoided(n, key)) })
		}},
	})
	d.needs(n, "", "name", "the reservation has no %s: write for example %[1]s: backup")
	d.needs(n, "", "from", "the reservation has no end %s which it leads: write for example %[1]s: h1")
	d.needs(n, "", "to", "the reservation has no end %s which it leads: write for example %[1]s: h2")
	d.checkAmount(n)
	d.checkEnds(n, *r)
	d.checkRequest(n, *r)
	return out
}

// parsed reports whether a document has a key, without a mistake.
func (d *decoder) parsed(key string) bool {
	_, given := d.places[key]
	return given && !d.broken[key]
}

// checkAmount reports what is missing, or is too much, of rates, durations and volumes.
func (d *decoder) checkAmount(n *node) {
	if !d.parsed("volume") && !d.broken["volume"] {
		d.needs(n, "", "rate", "the reservation has no %s: write for example %[1]s: 100Mbit, or volume and until")
		d.needs(n, "", "for", "the reservation does not say how long it lasts: write for example %s: 2h")
		return
	}
	for _, key := range []string{"rate", "back"} {
		if d.parsed(key) {
			d.invalid(n, key, "a reservation with a volume has no rate, because the rate follows from the volume and the time: remove %s or volume", key)
		}
	}
	if d.parsed("for") {
		d.invalid(n, "for", "a reservation with a volume has no duration, because it follows from the volume: remove for or volume")
	}
	d.needs(n, "", "until", "a reservation with a volume has no time until which it is moved: write for example %s: 2030-01-31T06:00:00Z")
}

// checkEnds reports two ends between which no packet goes.
func (d *decoder) checkEnds(n *node, r reserve.Request) {
	from, to := r.Source, r.Destination
	switch {
	case d.broken["from"] || d.broken["to"]:
	case from == to && from.Kind != reserve.VLAN:
		d.invalid(n, "to", "%v is at both ends, and its traffic does not cross the network: write another end", to)
	case from.Prefix.IsValid() && to.Prefix.IsValid() && from.Prefix.Addr().Is4() != to.Prefix.Addr().Is4():
		d.invalid(n, "to", "%s is IPv%d, and %s is not: no packet has both; write two prefixes of one version", to.Name, ipVersion(to), from.Name)
	}
}

func ipVersion(e reserve.Endpoint) int {
	if e.Prefix.Addr().Is4() {
		return 4
	}
	return 6
}

// checkRequest reports times that are past, and what the package reserve finds.
func (d *decoder) checkRequest(n *node, r reserve.Request) {
	if !d.now.IsZero() {
		for _, t := range []struct {
			key string
			time.Time
		}{{"start", r.Start}, {"until", r.Until}} {
			if !t.IsZero() && t.Before(d.now) {
				d.invalid(n, t.key, "%s is in the past: write a later time", t.Format(time.RFC3339))
			}
		}
	}
	if r.Volume > 0 {
		r.Forward, r.Reverse = 0, 0 // checkAmount has reported them
	}
	for _, wrong := range r.Check(d.now) {
		if key := reservationKeys.Replace(wrong.Key); !d.followsIn(key) {
			d.addError(d.place(key, n.position), key, "%s", wrong.Problem)
		}
	}
}

// together are keys of which a mistake in one lets others seem wrong.
var together = []string{"start", "for", "until", "volume", "rate"}

// followsIn reports whether a problem of a reservation can be the consequence of text that could not be parsed.
func (d *decoder) followsIn(key string) bool {
	top := lastKey(strings.SplitN(key, ".", 2)[0])
	for broken := range d.broken {
		at := lastKey(strings.SplitN(broken, ".", 2)[0])
		if at == top || slices.Contains(together, at) && slices.Contains(together, top) {
			return true
		}
	}
	return false
}

// flow parses "{proto: udp, dport: 5001-5010}".
func (d *decoder) flow(n *node, key string) (f reserve.Flow) {
	d.fields(n, key, "a flow", []field{
		{"proto", one(d, &f.Protocol, flowProtocol)},
		{"sport", one(d, &f.Source, flowPorts)},
		{"dport", one(d, &f.Destination, flowPorts)},
	})
	for _, port := range []string{key + ".sport", key + ".dport"} {
		switch _, given := d.places[key+".proto"]; {
		case !d.parsed(port) || f.HasPorts():
		case d.parsed(key + ".proto"):
			d.invalid(n, port, "%s has no ports: write proto: tcp, udp, dccp or sctp, or remove %s", flowProtocolText(f.Protocol), lastKey(port))
		case !given && !d.broken[key+".proto"]:
			d.invalid(n, port, "a port needs a protocol: write proto: tcp, udp, dccp or sctp, or remove %s", lastKey(port))
		}
	}
	return f
}

// avoided parses the two ends of a link: "[s1/3, s2/4]".
func (d *decoder) avoided(n *node, key string) (ends [2]string) {
	if n.shape != list || len(n.items) != 2 {
		d.invalid(n, key, "a link to avoid is a list of its two ends: write for example [s1/3, s2/4]")
		return ends
	}
	i := 0
	d.each(n, key, "two ports", func(n *node, key string) {
		one(d, &ends[i], avoidedPort)(n, key)
		i++
	})
	return ends
}

func avoidedPort(s string) (string, error) {
	at, port, _ := strings.Cut(s, "/")
	if at == "" || port == "" {
		return "", fmt.Errorf("%q is not a port: write the switch or router, a slash and the port, for example s1/3 or r1/eth1", s)
	}
	_, err := fabric.ParsePortName(port)
	return s, err
}

// checkReservations reports reservations with the same name.
func (l *loader) checkReservations() {
	var all []namedDocument
	for _, r := range l.set.Reservations {
		all = append(all, namedDocument{r.Name, r.File, r.Line, r})
	}
	l.checkNames("reservation", all)
}

// reservedRate parses a rate above 0.
func reservedRate(s string) (unit.Rate, error) {
	v, err := unit.ParseRate(s)
	if err == nil && v == 0 {
		err = errors.New("a rate of 0 reserves nothing: write for example 100Mbit, or remove the key")
	}
	return v, err
}
