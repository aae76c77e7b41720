package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/unit/rounded"
)

// Set is the state and rates of a connection set between two observations.
type Set struct {
	host.State
	Members     []SetMember
	Rate        float64 // sum of all members, bit/s
	LearnedRate float64 // sum of the learned rates, bit/s
}

// SetMember is a connection of a Set.
type SetMember struct {
	host.ConnectionState
	Rate float64 // bit/s
	// Share is the connection's share of the set's rate, TargetShare the target share. 0 is not
	// known yet.
	Share, TargetShare   float64
	RetransmitsPerSecond float64
	History              []float64 // of Share, the newest last, at most historyLength
}

// Condition returns the state of the connection in a word: capped, idle (nothing was acknowledged
// in the last second), learning (neither weight nor learned rate yet), or uncapped.
func (m SetMember) Condition() string {
	switch {
	case m.Pace > 0 || m.Window > 0:
		return "capped"
	case m.ConnectionState.Rate == 0:
		return "idle"
	case m.Needs == 0 && m.Weight == 0:
		return "learning"
	}
	return "uncapped"
}

// cap returns the pacing cap, or the window cap, which is the only one of the seed's law.
func (m SetMember) cap() string {
	if m.Pace == 0 && m.Window > 0 {
		return rounded.Bytes(uint64(m.Window))
	}
	return orDash(float64(m.Pace), rounded.Rate)
}

// SetTracker keeps the last state of each set. The zero value is ready for use.
type SetTracker struct {
	before map[collective.ID]counters
}

// counters is the last counters of a connection.
type counters struct {
	at          time.Duration
	acked       uint64
	retransmits uint32
	history     []float64
}

// Update takes the current states, and returns the rates since the last call.
func (t *SetTracker) Update(states []host.State) (out []Set) {
	now := map[collective.ID]counters{}
	for _, s := range states {
		set := Set{State: s}
		all := 0.0
		for _, c := range s.Connections {
			m := SetMember{ConnectionState: c}
			was, known := t.before[c.ID]
			if took := (s.At - was.at).Seconds(); known && took > 0 {
				m.Rate = float64(c.Acked-was.acked) * 8 / took
				m.RetransmitsPerSecond = float64(c.Retransmits-was.retransmits) / took
			}
			m.History = was.history
			set.Rate += m.Rate
			set.LearnedRate += float64(c.Needs)
			all += shareBasis(c)
			set.Members = append(set.Members, m)
		}
		for i := range set.Members {
			m := &set.Members[i]
			if set.Rate > 0 {
				m.Share = m.Rate / set.Rate
				m.History = append(m.History[max(0, len(m.History)-historyLength+1):len(m.History):len(m.History)], m.Share)
			}
			if all > 0 {
				m.TargetShare = shareBasis(m.ConnectionState) / all
			}
			now[m.ID] = counters{s.At, m.Acked, m.Retransmits, m.History}
		}
		out = append(out, set)
	}
	t.before = now
	return out
}

// shareBasis returns the weight of a connection, or else its learned rate. The target share is
// proportional to it.
func shareBasis(c host.ConnectionState) float64 {
	if c.Weight > 0 {
		return c.Weight
	}
	return float64(c.Needs)
}

// SetLines returns lines of at most width cells: a heading for each set, and a line for each of
// its connections.
func SetLines(sets []Set, theme Theme, width int) (lines []string) {
	for i, s := range sets {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, truncateStyled(setHeading(s, theme), width))
		if len(s.Members) == 0 {
			lines = append(lines, theme.Dim("  no connections"))
			continue
		}
		ends := 0
		for _, m := range s.Members {
			ends = max(ends, len(m.Local)+len(m.Remote)+1)
		}
		ends = min(ends, 60)
		head := fmt.Sprintf("  %-*s %-8s %8s %8s %6s %6s %8s %8s %7s  %s", ends, "CONNECTION", "STATE", "LEARNED", "RATE", "SHARE", "TARGET", "CAP", "RTT", "RETX/s", fmt.Sprintf("LAST %d SHARES", historyLength))
		lines = append(lines, truncateStyled(theme.Dim(head), width))
		for _, m := range s.Members {
			text := fmt.Sprintf("  %-*s %-8s %8s %8s %6s %6s %8s %8s %7s  ", ends, truncate(m.Local+" "+m.Remote, ends, theme.more), m.Condition(),
				orDash(float64(m.Needs), rounded.Rate), rounded.Rate(m.Rate), percent(m.Share), orDash(m.TargetShare, percent), m.cap(),
				rounded.Delay(m.RTT), rounded.PerSecond(m.RetransmitsPerSecond))
			lines = append(lines, truncateStyled(text+theme.shares(m), width))
		}
	}
	return lines
}

// WriteSetLines prints the lines of the sets.
func WriteSetLines(w io.Writer, sets []Set, width int) error {
	for _, line := range SetLines(sets, NewTheme(w), width) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func setHeading(s Set, theme Theme) string {
	name := setName(s.State)
	state := theme.Dim("released")
	if s.Controlling {
		state = theme.borrowed.Render("controlled")
	}
	if s.Waiting {
		state += theme.Dim(", waiting for its cgroup")
	}
	for _, says := range []string{s.Error, s.Notice} {
		if says != "" {
			state += theme.Dim(", " + says)
		}
	}
	since := (s.At - s.Since).Round(time.Second)
	return fmt.Sprintf("%s  %s for %v, %s of %s, retransmitted %s (before %s)", theme.Bold(name), state, since,
		rounded.Rate(s.Rate), orDash(s.LearnedRate, rounded.Rate), percent(s.Resent), percent(s.ResentBefore))
}

func orDash(v float64, text func(float64) string) string {
	if v == 0 {
		return "-"
	}
	return text(v)
}

// percent formats a share.
func percent(v float64) string {
	if v > 0 && v < 0.0995 {
		return fmt.Sprintf("%.2f%%", 100*v)
	}
	return fmt.Sprintf("%.1f%%", 100*v)
}

// shares draws a connection's share over time. The full height is twice the target share.
func (t Theme) shares(m SetMember) string {
	top := 2 * m.TargetShare
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
