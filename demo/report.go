package demo

import (
	"fmt"
	"io"
	"strings"

	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit/rounded"
)

// Write prints the result as text in 80 columns: a table for each phase, the usage
// records, and a summary.
func (r *Result) Write(w io.Writer) error {
	var b strings.Builder
	tolerance := fmt.Sprintf("%.0f%%", r.Tolerance*100)
	fmt.Fprintf(&b, `
Guaranteed and received rates in Mbit/s of layer 2, engine %s.
Only the end of each phase is measured, when connections have settled.
  GUAR   guarantee: of a tenant, and below it of its groups
  SHARE  allocation that package share computes for the same demand
  RATE   received at the other end
  LOST   segments retransmitted, datagrams lost; * demand within the guarantee
  ok     RATE is at least %s of GUAR (or of a lower demand) and of SHARE
`, r.Engine, fmt.Sprintf("%.0f%%", (1-r.Tolerance)*100))
	for _, p := range r.Phases {
		p.write(&b, fmt.Sprintf("%d %s", p.Phase, p.Title), [2]column{{"OUT", scenario.Hosts[0], "out"}, {"IN", scenario.Hosts[0], "in"}})
	}
	if len(r.Others.Groups) > 0 {
		r.Others.write(&b, r.Others.Title+", from phase 2 on", [2]column{{"HOST2 OUT", scenario.Hosts[1], "out"}, {"HOST3 OUT", scenario.Hosts[2], "out"}})
	}
	r.writeUsage(&b)
	b.WriteString("\n")
	r.summary(&b, tolerance)
	_, err := io.WriteString(w, b.String())
	return err
}

// column is the left or right half of a table.
type column struct{ title, host, direction string }

// of returns the groups of the column.
func (c column) of(groups []GroupResult) (out []GroupResult) {
	for _, g := range groups {
		if g.Host == c.host && g.Direction == c.direction {
			out = append(out, g)
		}
	}
	return out
}

// write prints a table of two columns that have the same groups.
func (p PhaseResult) write(b *strings.Builder, title string, columns [2]column) {
	fmt.Fprintf(b, "\n%s: %.3gs of %.3gs\n", title, p.Counted, p.Seconds)
	fmt.Fprintf(b, "%-14s%-33s%s\n", "", columns[0].title, columns[1].title)
	const half = "%6s%7s%7s%7s %-6s"
	heads := fmt.Sprintf(half, "GUAR", "SHARE", "RATE", "LOST", "")
	fmt.Fprintln(b, strings.TrimRight("  "+strings.Repeat(" ", 10)+heads+heads, " "))
	left, right := columns[0].of(p.Groups), columns[1].of(p.Groups)
	for n, g := range left {
		line := fmt.Sprintf("  %-10s", indentedPath(g.Group))
		for _, g := range append([]GroupResult{g}, right[min(n, len(right)):min(n+1, len(right))]...) {
			line += fmt.Sprintf(half, mbit(float64(g.Guarantee)), mbit(float64(g.Share)), mbit(g.Received), g.lost(), g.Verdict)
		}
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
}

// writeUsage prints the usage records.
func (r *Result) writeUsage(b *strings.Builder) {
	if len(r.Usage) == 0 {
		return
	}
	b.WriteString(`
Usage records of the agents ("headgate report"), in MB, and what was received
at the other ends, over all phases.
  GUAR   guaranteed over that time    BORROWED, LENT   above it, unused of it
  UNMET  seconds with a backlog in which the guarantee was not met

`)
	const line = "  %-7s%-6s%-18s%7s%9s%6s%10s%9s%6s\n"
	fmt.Fprintf(b, line, "TENANT", "HOST", "GROUP", "GUAR", "BORROWED", "LENT", "DELIVERED", "RECEIVED", "UNMET")
	mb := func(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/1e6) }
	for _, u := range r.Usage {
		fmt.Fprintf(b, line, u.Tenant, u.Host, u.Direction+" "+u.Group, mb(u.Guaranteed), mb(u.Borrowed), mb(u.Lent), mb(u.Delivered), mb(u.Received), fmt.Sprintf("%ds", u.Unmet))
	}
}

// indentedPath formats a path as a line of a tree.
func indentedPath(path string) string {
	parts := strings.Split(path, "/")
	return strings.Repeat("  ", len(parts)-1) + parts[len(parts)-1]
}

func mbit(bps float64) string { return fmt.Sprintf("%.1f", bps/1e6) }

// lost formats the losses, with a * if the group should have none.
func (g GroupResult) lost() string {
	text := fmt.Sprint(g.Retransmitted + g.Lost)
	if g.Inside {
		text += "*"
	}
	return text
}

// summary prints the conclusions in sentences.
func (r *Result) summary(b *strings.Builder, tolerance string) {
	var cases, misses, lows int
	var again, lost, drops uint64
	for _, p := range append(r.Phases, r.Others) {
		for _, g := range p.Groups {
			cases++
			switch g.Verdict {
			case VerdictMissed:
				misses++
			case VerdictLow:
				lows++
			}
			if g.Inside {
				again, lost, drops = again+g.Retransmitted, lost+g.Lost, drops+g.Drops
			}
		}
	}
	if misses == 0 {
		fmt.Fprintf(b, "Every guarantee was met, within %s, in all %d cases.\n", tolerance, cases)
	} else {
		fmt.Fprintf(b, "%d of %d guarantees were MISSED by more than %s.\n", misses, cases, tolerance)
	}
	if r.Disturbed != "" && misses+lows > 0 {
		fmt.Fprintln(b, strings.Join(text.Wrap("The machine was busy, which may be the cause: "+r.Disturbed+".", "", 78), "\n"))
	}
	if lows > 0 {
		fmt.Fprintf(b, "In %s a group was lent less than its SHARE (low).\n", text.Count(lows, "case"))
	}
	fmt.Fprintf(b, "Groups with demand within their guarantee had %s,\n%s and %s in their queues.\n",
		text.Count(int(again), "retransmission"), text.Count(int(lost), "lost datagram"), text.Count(int(drops), "drop"))
	fmt.Fprintf(b, "%s\n(%.0f%% of it, averaged over the next %v and %v).\n",
		returnText(r.Returned), backPart*100, backShort, backLong)
	fmt.Fprintf(b, "The reassigned connection (%s)\nhad %s in web, then %s in export.\n", r.Moved.Connection, rounded.Rate(r.Moved.Before), rounded.Rate(r.Moved.After))
	for _, c := range r.Changes {
		fmt.Fprintf(b, "The guarantee that shop's program requested, %s, was in force after %.0f ms.\n", c.Guarantee, c.InForce)
	}
	switch {
	case r.Kept != "":
		fmt.Fprintf(b, keptText, r.Kept, Dir)
	case r.CleanedUp:
		b.WriteString("Cleaned up: namespaces, links, groups and programs of the demo are removed.\n")
	default:
		fmt.Fprintf(b, "NOT cleaned up: %s\n", strings.Join(r.Left, ", "))
	}
}

const keptText = `
The network %[1]s stays up, with controller, agents and groups, but no traffic.
Query the service, as its operator and as a tenant:
  export XDG_CONFIG_HOME=%[2]s/%[1]s lab=%[1]s
  headgate lab exec controller --lab $lab -- headgate show \
      --server default --host host1
  headgate lab exec controller --lab $lab -- headgate report --server shop
Watch the groups, and generate traffic:
  headgate lab exec host1 --lab $lab -- headgate top
  headgate lab exec client2 --lab $lab -- iperf3 -s -D
  headgate lab exec host1 --lab $lab -- iperf3 -c 10.0.5.2 -t 60
Remove it, and all other kept demos:
  headgate demo --end
`
