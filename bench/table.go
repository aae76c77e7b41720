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
	fmt.Fprintln(t, "claim\tunit\ttarget\theadgate\t\tpaper\tpeers")
	for _, c := range r.Claims {
		var peers []string
		for _, p := range c.peerNames() {
			peers = append(peers, p+" "+number(c.Peer[p]))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.Unit, c.Target, number(c.Ours), c.verdict(), number(c.Paper), strings.Join(peers, ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.summary())
	return err
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
