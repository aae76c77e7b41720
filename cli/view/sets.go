package view

import (
	"fmt"
	"strings"
	"time"

	"headgate/collective"
	"headgate/collective/host"
)

// Set is what a set of connections does, from one observation to the next.
type Set struct {
	host.State
	Members []SetMember
	Rate    float64 // of all, bit/s
	Needs   float64 // of all that are known
}

// SetMember is a connection of a Set.
type SetMember struct {
	host.ConnectionState
	Rate float64 // bit/s
	// Share is its part of what the set carries, Part what it is to have of that; 0 is not
	// known yet.
	Share, Part float64
	Again       float64   // segments sent again a second
	History     []float64 // of Share, the newest last, historyLength at most
}

// Condition is what the connection is doing, in a word: whether it is capped, or had nothing
// acknowledged in the last second, or it is not known yet what it needs.
func (m SetMember) Condition() string {
	switch {
	case m.Pace > 0 || m.Window > 0:
		return "capped"
	case m.ConnectionState.Rate == 0:
		return "idle"
	case m.Needs == 0 && m.Weight == 0:
		return "learning"
	}
	return "free"
}

// cap is its pace; or its window, which is all that the seed's law has.
func (m SetMember) cap() string {
	if m.Pace == 0 && m.Window > 0 {
		return Bytes(uint64(m.Window))
	}
	return orDash(float64(m.Pace), Rate)
}

// SetTracker keeps the last state of each set. Its zero value is ready.
type SetTracker struct {
	before map[collective.ID]counted
}

// counted is what a connection had counted.
type counted struct {
	at      time.Duration
	acked   uint64
	again   uint32
	history []float64
}

// Update takes what was observed, and gives rates since the last time.
func (t *SetTracker) Update(states []host.State) (out []Set) {
	now := map[collective.ID]counted{}
	for _, s := range states {
		set := Set{State: s}
		all := 0.0
		for _, c := range s.Connections {
			m := SetMember{ConnectionState: c}
			was, known := t.before[c.ID]
			if took := (s.At - was.at).Seconds(); known && took > 0 {
				m.Rate = float64(c.Acked-was.acked) * 8 / took
				m.Again = float64(c.Retransmits-was.again) / took
			}
			m.History = was.history
			set.Rate += m.Rate
			set.Needs += float64(c.Needs)
			all += part(c)
			set.Members = append(set.Members, m)
		}
		for i := range set.Members {
			m := &set.Members[i]
			if set.Rate > 0 {
				m.Share = m.Rate / set.Rate
				m.History = append(m.History[max(0, len(m.History)-historyLength+1):len(m.History):len(m.History)], m.Share)
			}
			if all > 0 {
				m.Part = part(m.ConnectionState) / all
			}
			now[m.ID] = counted{s.At, m.Acked, m.Retransmits, m.History}
		}
		out = append(out, set)
	}
	t.before = now
	return out
}

// part is what a connection's part of its set is measured by.
func part(c host.ConnectionState) float64 {
	if c.Weight > 0 {
		return c.Weight
	}
	return float64(c.Needs)
}

// SetLines are lines for people, of no more than width cells: a heading for each set, and a
// line for each of its connections.
func SetLines(sets []Set, theme Theme, width int) (lines []string) {
	for i, s := range sets {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, fit2(setHeading(s, theme), width))
		if len(s.Members) == 0 {
			lines = append(lines, theme.Dim("  no connection yet"))
			continue
		}
		ends := 0
		for _, m := range s.Members {
			ends = max(ends, len(m.Local)+len(m.Remote)+1)
		}
		ends = min(ends, 60)
		head := fmt.Sprintf("  %-*s %-8s %8s %8s %6s %6s %8s %8s %7s  %s", ends, "CONNECTION", "STATE", "NEEDS", "RATE", "SHARE", "PART", "CAP", "RTT", "AGAIN/s", fmt.Sprintf("SHARE, THE LAST %d", historyLength))
		lines = append(lines, fit2(theme.Dim(head), width))
		for _, m := range s.Members {
			text := fmt.Sprintf("  %-*s %-8s %8s %8s %6s %6s %8s %8s %7s  ", ends, fit(m.Local+" "+m.Remote, ends, theme.more), m.Condition(),
				orDash(float64(m.Needs), Rate), Rate(m.Rate), percent(m.Share), orDash(m.Part, percent), m.cap(),
				Delay(m.RTT), perSecond(m.Again))
			lines = append(lines, fit2(text+theme.shares(m), width))
		}
	}
	return lines
}

func setHeading(s Set, theme Theme) string {
	name := s.Set
	if s.Destination != "" {
		name += " to " + s.Destination
	}
	state := theme.Dim("free")
	if s.Controlling {
		state = theme.borrowed.Render("controlled")
	}
	if s.Waiting {
		state += theme.Dim(", its cgroup is not there")
	}
	if s.Trouble != "" {
		state += theme.Dim(", " + s.Trouble)
	}
	since := (s.At - s.Since).Round(time.Second)
	return fmt.Sprintf("%s  %s for %v, %s of %s, sent again %s (before %s)", theme.Bold(name), state, since,
		Rate(s.Rate), orDash(s.Needs, Rate), percent(s.Resent), percent(s.ResentBefore))
}

func orDash(v float64, text func(float64) string) string {
	if v == 0 {
		return "-"
	}
	return text(v)
}

// percent of a part.
func percent(v float64) string {
	if v > 0 && v < 0.0995 {
		return fmt.Sprintf("%.2f%%", 100*v)
	}
	return fmt.Sprintf("%.1f%%", 100*v)
}

// shares draws a connection's share over time; full height is twice its part.
func (t Theme) shares(m SetMember) string {
	top := 2 * m.Part
	if top == 0 {
		top = 1
	}
	var b strings.Builder
	for _, v := range m.History {
		n := len(t.signs.spark)
		b.WriteRune(t.signs.spark[max(min(int(v/top*float64(n)), n-1), 0)])
	}
	return t.dim.Render(b.String())
}
