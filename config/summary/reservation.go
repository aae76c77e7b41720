package summary

import (
	"fmt"
	"io"
	"time"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/text"
)

// Reservation describes what a document asks for. Rates, sizes and durations are as the file has them.
type Reservation struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Name string `json:"name"`
	// From and To are host h1, site north, prefix 10.0.0.0/8 or vlan 7.
	From string `json:"from"`
	To   string `json:"to"`
	// Flows are keys of the file, such as "proto: udp, dport: 5001". None is all traffic.
	Flows []string `json:"flows,omitempty"`
	Class int      `json:"class"`
	// Rate and For are empty if there is a Volume, from which they follow.
	Rate   string `json:"rate,omitempty"`
	Back   string `json:"back,omitempty"`
	Volume string `json:"volume,omitempty"`
	// Start is absent for now.
	Start time.Time `json:"start,omitzero"`
	For   string    `json:"for,omitempty"`
	Until time.Time `json:"until,omitzero"`
	Paths int       `json:"paths"`
	// Disjoint is links or switches.
	Disjoint  string `json:"disjoint"`
	Protected bool   `json:"protected"`
	OnDemand  bool   `json:"on_demand"`
	// Carry is relay, or empty.
	Carry string      `json:"carry,omitempty"`
	Avoid [][2]string `json:"avoid,omitempty"`
}

func reservations(set config.Set) (out []Reservation) {
	for _, r := range set.Reservations {
		one := Reservation{
			File: r.File, Line: r.Line, Name: r.Name, From: r.Source.String(), To: r.Destination.String(), Class: r.Class,
			Start: r.Start, Until: r.Until, Paths: max(r.Paths, 1), Disjoint: config.DisjointText(r.Disjoint), Protected: r.Protected, OnDemand: r.OnDemand, Avoid: r.AvoidNames,
		}
		if r.Carried != nil {
			one.Carry = "relay"
		}
		for _, f := range r.Flows {
			one.Flows = append(one.Flows, config.FlowText(f))
		}
		if r.Forward > 0 {
			one.Rate, one.For = r.Forward.String(), r.Duration.String()
		}
		if r.Reverse > 0 {
			one.Back = r.Reverse.String()
		}
		if r.Volume > 0 {
			one.Volume = r.Volume.String()
		}
		out = append(out, one)
	}
	return out
}

func (r Reservation) write(w io.Writer) {
	what := r.Rate
	if r.Volume != "" {
		what = r.Volume
	}
	if r.Back != "" {
		what += " and " + r.Back + " back"
	}
	fmt.Fprintf(w, "reservation %s: %s from %s to %s, class %d (%s:%d)\n", r.Name, what, r.From, r.To, r.Class, r.File, r.Line)
	fmt.Fprintf(w, "  %s\n", r.when())
	for _, f := range r.Flows {
		fmt.Fprintf(w, "  flow %s\n", f)
	}
	if r.Paths > 1 || r.Protected {
		paths := text.Count(r.Paths, "path")
		if r.Protected {
			paths += " and a spare one"
		}
		share := "links"
		if r.Disjoint == "switches" {
			share = "links and no switches"
		}
		fmt.Fprintf(w, "  over %s, which share no %s\n", paths, share)
	}
	if r.OnDemand {
		fmt.Fprintln(w, "  switches are programmed when its first packet comes")
	}
	if r.Carry != "" {
		fmt.Fprintln(w, "  relay agents carry its connections")
	}
	for _, ends := range r.Avoid {
		fmt.Fprintf(w, "  without link %s - %s\n", ends[0], ends[1])
	}
}

// when describes the time of a reservation.
func (r Reservation) when() string {
	start, until := "now", r.Until.Format(time.RFC3339)
	if !r.Start.IsZero() {
		start = r.Start.Format(time.RFC3339)
	}
	switch {
	case r.Volume != "":
		return "moved between " + start + " and " + until
	case !r.Until.IsZero():
		return "for " + r.For + ", at some time between " + start + " and " + until
	}
	return "for " + r.For + ", from " + start
}
