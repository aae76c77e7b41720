package cli

import (
	"fmt"
	"io"
	"strings"

	"headgate/cli/view"
)

// write prints the result for people: a table of all phases, and what else was
// found, in 80 columns.
func (r *demoResult) write(w io.Writer) error {
	var b strings.Builder
	tolerance := fmt.Sprintf("%.0f%%", r.Tolerance*100)
	fmt.Fprintf(&b, `
Guaranteed and received, in Mbit/s of layer 2, engine %s. Counted is the end of
each phase, when connections have settled.
  GUAR   guaranteed
  SHARE  what package share gives to groups that want the same
  GOT    arrived at the other end
  LOST   segments sent again, datagrams lost; * wanted no more than guaranteed
  ok     GOT is %s of GUAR (or of what was wanted of it) and of SHARE, or more
`, r.Engine, fmt.Sprintf("%.0f%%", (1-r.Tolerance)*100))
	for _, p := range r.Phases {
		p.write(&b)
	}
	b.WriteString("\n")
	r.summary(&b, tolerance)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p phaseResult) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n%d %s: %.3gs of %.3gs\n", p.Phase, p.Title, p.Counted, p.Seconds)
	fmt.Fprintf(b, "%-14s%-33s%s\n", "", "OUT", "IN")
	const half = "%6s%7s%7s%7s %-6s"
	heads := fmt.Sprintf(half, "GUAR", "SHARE", "GOT", "LOST", "")
	fmt.Fprintln(b, strings.TrimRight("  "+strings.Repeat(" ", 10)+heads+heads, " "))
	for _, out := range p.Groups {
		if out.Direction != "out" {
			continue
		}
		line := fmt.Sprintf("  %-10s", out.Group)
		for _, g := range p.Groups {
			if g.Group == out.Group {
				line += fmt.Sprintf(half, mbit(float64(g.Guarantee)), mbit(float64(g.Share)), mbit(g.Received), g.lost(), g.Verdict)
			}
		}
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
	line := fmt.Sprintf("  %-10s", "together")
	for _, direction := range []string{"out", "in"} {
		var sum groupResult
		var lost uint64
		for _, g := range p.Groups {
			if g.Direction == direction {
				sum.Guarantee, sum.Share, sum.Received, lost = sum.Guarantee+g.Guarantee, sum.Share+g.Share, sum.Received+g.Received, lost+g.Retransmitted+g.Lost
			}
		}
		line += fmt.Sprintf(half, mbit(float64(sum.Guarantee)), mbit(float64(sum.Share)), mbit(sum.Received), fmt.Sprint(lost), "")
	}
	fmt.Fprintln(b, strings.TrimRight(line, " "))
}

func mbit(bps float64) string { return fmt.Sprintf("%.1f", bps/1e6) }

// lost is marked where nothing should be.
func (g groupResult) lost() string {
	text := fmt.Sprint(g.Retransmitted + g.Lost)
	if g.Inside {
		text += "*"
	}
	return text
}

// summary says in sentences what the table shows.
func (r *demoResult) summary(b *strings.Builder, tolerance string) {
	var cases, misses, lows int
	var again, lost, drops uint64
	for _, p := range r.Phases {
		for _, g := range p.Groups {
			cases++
			switch g.Verdict {
			case missed:
				misses++
			case verdictLow:
				lows++
			}
			if g.Inside {
				again, lost, drops = again+g.Retransmitted, lost+g.Lost, drops+g.Drops
			}
		}
	}
	if misses == 0 {
		fmt.Fprintf(b, "Every guarantee was kept, within %s, in all %d cases.\n", tolerance, cases)
	} else {
		fmt.Fprintf(b, "%d of %d guarantees were MISSED by more than %s.\n", misses, cases, tolerance)
	}
	if lows > 0 {
		fmt.Fprintf(b, "In %s a group was lent less than its SHARE (low).\n", count(lows, "case"))
	}
	fmt.Fprintf(b, "Groups that wanted no more than their guarantee had %s,\n%s and %s in their queues.\n",
		count(int(again), "retransmission"), count(int(lost), "lost datagram"), count(int(drops), "drop"))
	fmt.Fprintf(b, "%s\n(%.0f%% of it, in the mean of the next %v and %v).\n",
		returnText(r.Returned), backPart*100, backShort, backLong)
	fmt.Fprintf(b, "The connection that moved (%s)\ngot %s in rest, then %s in web.\n", r.Moved.Connection, view.Rate(r.Moved.Before), view.Rate(r.Moved.After))
	switch {
	case r.Kept != "":
		fmt.Fprintf(b, keptText, r.Kept)
	case r.CleanedUp:
		b.WriteString("Cleaned up: namespaces, links, groups and programs of the demo are gone.\n")
	default:
		fmt.Fprintf(b, "NOT cleaned up: %s\n", strings.Join(r.Left, ", "))
	}
}

const keptText = `
The network %[1]s stays, with its groups in force and without traffic.
Look at it:
  headgate lab exec server --lab %[1]s -- headgate top
  headgate lab exec client1 --lab %[1]s -- iperf3 -s -D
  headgate lab exec server --lab %[1]s -- iperf3 -c 10.0.2.2 -t 60
Take it down:
  headgate lab exec server --lab %[1]s -- headgate clear --dev ` + demoDev + `
  headgate lab down %[1]s
  rm -r ` + demoRun + `/%[1]s
`
