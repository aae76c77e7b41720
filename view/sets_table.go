package view

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/unit/rounded"
)

// WriteSets prints a table with a line for each connection.
func WriteSets(to io.Writer, states []host.State) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tSTATE\tLOCAL\tREMOTE\tLEARNED\tRATE\tRTT\tPACE\tWINDOW\tRETRANSMITTED")
	for _, s := range states {
		if len(s.Connections) == 0 {
			fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t-\t-\t-\t-\t-\n", setName(s), setState(s))
		}
		for _, c := range s.Connections {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%v\t%s\t%s\t%d\n", setName(s), setState(s), c.Local, c.Remote,
				learnedCell(c), rounded.Rate(float64(c.Rate)), c.RTT.Round(10*time.Microsecond), rateOrDash(c.Pace), windowOrDash(c.Window), c.Retransmits)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range states {
		if s.Waiting {
			fmt.Fprintf(to, "set %s: waiting for its cgroup or unit, which does not exist\n", setName(s))
		}
		for _, says := range []string{s.Error, s.Notice} {
			if says != "" {
				fmt.Fprintf(to, "set %s: %s\n", setName(s), says)
			}
		}
	}
	return nil
}

// WriteSetConnections prints a line for each connection, with the time of the reading.
func WriteSetConnections(to io.Writer, at time.Time, states []host.State) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	now := at.Format(time.TimeOnly)
	for _, s := range states {
		for _, c := range s.Connections {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\trate %v\t%v\tpace %s\twindow %s\n", now, setName(s), setState(s), c.Local, c.Remote,
				basisText(c), rounded.Rate(float64(c.Rate)), c.RTT.Round(10*time.Microsecond), rateOrDash(c.Pace), windowOrDash(c.Window))
		}
	}
	return w.Flush()
}

// basisText is the basis of a connection's share of its set: its weight, or its learned rate.
func basisText(c host.ConnectionState) string {
	if c.Weight > 0 {
		return fmt.Sprintf("weight %g", c.Weight)
	}
	return "learned " + rateOrDash(c.Needs)
}

// learnedCell is the cell of the column LEARNED: the connection's weight, or its learned rate.
func learnedCell(c host.ConnectionState) string {
	if c.Weight > 0 {
		return basisText(c)
	}
	return rateOrDash(c.Needs)
}

// rateOrDash formats a rate, or "-" for none.
func rateOrDash(r unit.Rate) string {
	if r == 0 {
		return "-"
	}
	return rounded.Rate(float64(r))
}

// windowOrDash formats a window, or "-" for none.
func windowOrDash(b unit.Bytes) string {
	if b == 0 {
		return "-"
	}
	return probe.FormatBytes(float64(b))
}

// setName is the name of a set, with the destination or the bottleneck of a part.
func setName(s host.State) string {
	switch {
	case s.Destination != "":
		return s.Set + " to " + s.Destination
	case s.Bottleneck != 0:
		return fmt.Sprintf("%s at %d", s.Set, s.Bottleneck)
	}
	return s.Set
}

// setState is the cell of the column STATE.
func setState(s host.State) string {
	switch {
	case s.Controlling && s.DryRun:
		return "would be controlled"
	case s.Controlling:
		return "controlled"
	case s.Waiting:
		return "waiting"
	case s.Error != "" && len(s.Connections) == 0:
		return "error"
	}
	return "released"
}
