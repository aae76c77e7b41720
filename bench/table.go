package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Number prints a figure with four digits that count.
func Number(v float64) string {
	if v == 0 {
		return "0"
	}
	decimals := max(0, 3-int(math.Floor(math.Log10(math.Abs(v)))))
	s := strconv.FormatFloat(v, 'f', min(decimals, 6), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return Number(*v)
}

// figure is ours, with what its measurements lie between.
func (c Claim) figure() string {
	if c.Least == nil {
		return number(c.Ours)
	}
	return number(c.Ours) + Spread{c.N, *c.Least, *c.Most}.String()
}

// peerFigure is the same of a peer's.
func (c Claim) peerFigure(name string) string {
	if s, ok := c.PeerSpread[name]; ok {
		return number(c.Peer[name]) + s.String()
	}
	return number(c.Peer[name])
}

// String is for behind a median: " (1 to 3, n 5)".
func (s Spread) String() string {
	return fmt.Sprintf(" (%s to %s, n %d)", Number(s.Least), Number(s.Most), s.N)
}

// verdict is one word for a claim.
func (c Claim) verdict() string {
	switch {
	case c.OK:
		return "ok"
	case c.Ours == nil:
		return "MISSING"
	}
	return "SHORT"
}

// peerNames are in a fixed order.
func (c Claim) peerNames() []string {
	names := make([]string, 0, len(c.Peer))
	for p := range c.Peer {
		names = append(names, p)
	}
	slices.Sort(names)
	return names
}

// WriteTable prints the result for people.
func (r *Result) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "claim\tunit\ttarget\t"+r.subject+"\t\tpaper\tpeers")
	for _, c := range r.Claims {
		var peers []string
		for _, p := range c.peerNames() {
			peers = append(peers, p+" "+c.peerFigure(p))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.Unit, c.Target, c.figure(), c.verdict(), number(c.Paper), strings.Join(peers, ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, d := range r.drawn() {
		fmt.Fprintln(w, d)
	}
	_, err := fmt.Fprintln(w, r.summary())
	return err
}

// drawn are the drawn cases and their values, a line each.
func (r *Result) drawn() (lines []string) {
	for _, c := range r.Claims {
		line := r.caseOf[c.ID] + " is drawn: " + c.Drawn
		if c.Drawn != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// summary is a few lines on the whole.
func (r *Result) summary() string {
	short, missing := 0, 0
	for _, c := range r.Short() {
		if c.Ours == nil {
			missing++
		} else {
			short++
		}
	}
	s := fmt.Sprintf("%d claims: %d reached, %d short, %d missing; %s.",
		len(r.Claims), len(r.Claims)-short-missing, short, missing, duration(r.Seconds))
	if slices.ContainsFunc(r.Claims, func(c Claim) bool { return c.N > 1 }) {
		s += "\nA figure with brackets is the median of n measurements; in them are the least and the most."
	}
	if r.Seed != 0 {
		s += fmt.Sprintf("\nThe drawn cases are those of seed %d: --seed %[1]d repeats them.", r.Seed)
	}
	if r.Smoke {
		s += "\nA smoke run: every claim is measured, on few cases and shortly. Figures for the record come from the full bench."
	}
	if len(r.Only) > 0 {
		s += "\nOnly what was asked for: " + strings.Join(r.Only, ", ") + "."
	}
	return s
}

func duration(seconds float64) string {
	if seconds < 120 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return fmt.Sprintf("%.0f min", seconds/60)
}
