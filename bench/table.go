package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Number formats a value with four significant digits.
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

// figure returns the measured value, with the range of its measurements.
func (c Claim) figure() string {
	if c.Least == nil {
		return number(c.Ours)
	}
	return number(c.Ours) + Spread{c.N, *c.Least, *c.Most}.String()
}

// peerFigure returns the same for a peer.
func (c Claim) peerFigure(name string) string {
	if s, ok := c.PeerSpread[name]; ok {
		return number(c.Peer[name]) + s.String()
	}
	return number(c.Peer[name])
}

// String returns the text that follows a median: " (1 to 3, n 5)".
func (s Spread) String() string {
	return fmt.Sprintf(" (%s to %s, n %d)", Number(s.Least), Number(s.Most), s.N)
}

// verdict returns the result of a claim in a word or two.
func (c Claim) verdict() string {
	switch {
	case c.OK:
		return "ok"
	case c.Ours == nil:
		return "NOT MEASURED"
	case slices.ContainsFunc(c.Notes, func(note string) bool { return strings.Contains(note, disturbedNote) }):
		return "MISSED, MACHINE BUSY"
	}
	return "MISSED"
}

// shortFirst returns the claims in the order of a table: those that were missed, those that were not measured, and the others.
func shortFirst(claims []Claim) []Claim {
	return slices.SortedStableFunc(slices.Values(claims), func(a, b Claim) int { return cmp.Compare(a.rank(), b.rank()) })
}

func (c Claim) rank() int {
	switch {
	case c.OK:
		return 2
	case c.Ours == nil:
		return 1
	}
	return 0
}

// peerNames returns the peers in a fixed order.
func (c Claim) peerNames() []string {
	names := make([]string, 0, len(c.Peer))
	for p := range c.Peer {
		names = append(names, p)
	}
	slices.Sort(names)
	return names
}

// WriteTable prints the result as a table.
func (r *Result) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "claim\tunit\ttarget\t"+r.subject+"\t\tpaper\tpeers")
	for _, c := range shortFirst(r.Claims) {
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

// drawn returns the random values of each case, a line each.
func (r *Result) drawn() (lines []string) {
	for _, c := range r.Claims {
		line := r.caseOf[c.ID] + " was drawn at random: " + c.Drawn
		if c.Drawn != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// summary returns a few lines about the whole result.
func (r *Result) summary() string {
	short, missing := 0, 0
	for _, c := range r.Short() {
		if c.Ours == nil {
			missing++
		} else {
			short++
		}
	}
	s := fmt.Sprintf("%d claims: %d met, %d missed, %d not measured; %s.",
		len(r.Claims), len(r.Claims)-short-missing, short, missing, duration(r.Seconds))
	if slices.ContainsFunc(r.Claims, func(c Claim) bool { return c.N > 1 }) {
		s += "\nA value with parentheses is the median of n measurements, with their minimum and maximum."
	}
	if r.Seed != 0 {
		s += fmt.Sprintf("\nRandom cases were drawn with seed %d: --seed %[1]d repeats them.", r.Seed)
	}
	if r.Smoke {
		s += "\nA smoke run with few and short cases: its values are not results. Run the full benchmark for those."
	}
	if len(r.Only) > 0 {
		s += "\nOnly the selected claims: " + strings.Join(r.Only, ", ") + "."
	}
	return s
}

func duration(seconds float64) string {
	if seconds < 120 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return fmt.Sprintf("%.0f min", seconds/60)
}
