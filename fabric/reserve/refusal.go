package reserve

import (
	"fmt"
	"strings"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Reason says why a request is refused.
type Reason uint8

const (
	// NoBandwidth: all paths have a link without enough bandwidth.
	NoBandwidth Reason = iota
	// NoPath: usable links do not form the paths, whatever is reserved on them.
	NoPath
	// TooLate: there is no rate at which the volume is moved before the deadline.
	TooLate
)

// String prints no bandwidth, no path or too late.
func (r Reason) String() string {
	switch r {
	case NoPath:
		return "no path"
	case TooLate:
		return "too late"
	}
	return "no bandwidth"
}

// Refusal is the error of a request that is well formed and does not fit. Each of Most, Earliest and Window is a request
// that would be granted at once instead, nil if there is none.
type Refusal struct {
	Reason Reason
	// Link is the bottleneck of the path with the most bandwidth in the time asked for, from Start on: at the moment At it
	// has Free, which is less than Needed. It is the zero value if Reason is NoPath. Uplink and Downlink are links too.
	Link         fabric.LinkID
	At           time.Time
	Free, Needed unit.Rate
	// Most has the greatest rates, in the same proportion, or the greatest volume, for the time asked for.
	Most *Request
	// Earliest has the earliest start of what was asked for.
	Earliest *Request
	// Window has the shortest window, from the start asked for, in which there is a start for what was asked for; for a
	// volume it has the earliest deadline.
	Window *Request
	// Searched is not zero if the search for a start was given up, which happens where links are free by turns for many
	// times (rounds). There is no start before Searched, and there may be one later.
	Searched time.Time
	text     string
}

// Error prints the bottleneck, and what would be granted instead.
func (r *Refusal) Error() string {
	var offers []string
	if m := r.Most; m != nil && m.Volume > 0 {
		offers = append(offers, fmt.Sprintf("ask for %v", m.Volume))
	} else if m != nil {
		text := "ask for " + m.Forward.String()
		if m.Reverse > 0 {
			text += " and " + m.Reverse.String() + " back"
		}
		offers = append(offers, text)
	}
	if r.Earliest != nil {
		offers = append(offers, "start at "+stamp(r.Earliest.Start))
	}
	if r.Window != nil {
		offers = append(offers, "allow any time until "+stamp(r.Window.Until))
	}
	text := r.text
	if !r.Searched.IsZero() {
		text += ", and there is no start before " + stamp(r.Searched) + " (later ones were not tried)"
	}
	if len(offers) == 0 {
		return text
	}
	return text + ": " + strings.Join(offers, ", or ")
}

// searched says up to which moment there is no start, never if there is none at all.
func (r *Refusal) searched(tried int64) {
	if tried != never {
		r.Searched = clock(tried)
	}
}

// stamp prints a time that can be written in a request.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// second prints a time that is only read, to the second in which it is.
func second(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// LinkLabel names a link, or the line of a port (Uplink, Downlink), by the names of its ports.
func LinkLabel(top *fabric.Topology, id fabric.LinkID) string {
	switch (fabric.PortID{}) {
	case id.From:
		return "the line into port " + top.PortLabel(id.To)
	case id.To:
		return "the line out of port " + top.PortLabel(id.From)
	}
	return "link " + top.PortLabel(id.From) + " -> " + top.PortLabel(id.To)
}

func (l *ledger) label(id fabric.LinkID) string { return LinkLabel(l.top, id) }

// refuse returns the refusal for a bottleneck, without counter-offers.
func (l *ledger) refuse(r Request, a ask, b bottleneck) *Refusal {
	if b.line < 0 {
		what := "no path"
		if a.count > 1 {
			what = fmt.Sprintf("fewer than %d disjoint paths", a.count)
		}
		text := fmt.Sprintf("usable links form %s from %s to %s: add or repair links", what, r.Source, r.Destination)
		if a.count > 1 {
			text += ", or ask for fewer paths"
		}
		return &Refusal{Reason: NoPath, text: text}
	}
	e := &Refusal{Link: l.ids[b.line], At: clock(b.at), Free: unit.Rate(max(b.free, 0)), Needed: unit.Rate(b.needed)}
	e.text = fmt.Sprintf("%s has %v of %v at %s", l.label(e.Link), e.Free, e.Needed, second(e.At))
	return e
}
