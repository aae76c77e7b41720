package view

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/relay/host"
	"headgate.dev/headgate/unit/rounded"
)

// NewRelayScreen returns the live view of "headgate relay top", which polls source at every interval.
func NewRelayScreen(source func() (host.Status, error), interval time.Duration, theme Theme) ListScreen[host.Status] {
	return newListScreen(source, RelayLines, interval, theme)
}

// RelayLines returns lines of at most width cells: a heading, the paths to exits and from entries, and the
// connections, the one with the highest rate first.
func RelayLines(s host.Status, theme Theme, width int) (lines []string) {
	connections := slices.Clone(s.Connections)
	slices.SortStableFunc(connections, func(a, b host.ConnectionStatus) int {
		return cmp.Compare(b.SendRate+b.ReceiveRate, a.SendRate+a.ReceiveRate)
	})
	s.Connections = connections
	for n, line := range strings.Split(strings.TrimSuffix(relayText(s, false), "\n"), "\n") {
		switch {
		case n == 0:
			line = theme.Bold(line)
		case n > 1 && lines[n-1] == "":
			line = theme.Dim(line) // the heading of a table
		}
		lines = append(lines, truncateStyled(line, width))
	}
	return lines
}

// WriteRelay prints the status of a relay agent: its paths and connections, and with streams each stream.
func WriteRelay(w io.Writer, s host.Status, streams bool) error {
	_, err := io.WriteString(w, relayText(s, streams))
	return err
}

func relayText(s host.Status, streams bool) string {
	var b strings.Builder
	t := s.Total
	fmt.Fprintf(&b, "agent %s for %v: %s, %s, sending %s, receiving %s; %d ended, %d of them failed\n", s.Agent, s.At.Sub(s.Began).Round(time.Second),
		text.Count(t.Connections, "connection"), text.Count(t.Streams, "stream"), rounded.Rate(float64(t.SendRate)), rounded.Rate(float64(t.ReceiveRate)), t.Ended, t.Failed)
	table := func(rows [][]string) {
		if len(rows) > 1 {
			b.WriteByte('\n')
			_ = text.Table(&b, "", rows) // a strings.Builder returns no error
		}
	}
	paths := func(peer string, all []host.PeerStatus) {
		table(pathRows(peer, all))
		if streams {
			table(streamRows(peer, all))
		}
	}
	paths("EXIT", s.Exits)
	paths("ENTRY", s.Entries)
	rows := [][]string{{"CLIENT", "DESTINATION", "PEER", "STATE", "AGE", "SENDING", "RECEIVING", "SENT", "RECEIVED", "WAITING", "UNREAD", "REORDER"}}
	for _, c := range s.Connections {
		rows = append(rows, []string{c.Client.String(), c.Destination.String(), c.Exit + c.Entry, string(c.State), age(c.Age),
			rounded.Rate(float64(c.SendRate)), rounded.Rate(float64(c.ReceiveRate)), rounded.Bytes(c.Sent), rounded.Bytes(c.Received),
			rounded.Bytes(uint64(c.Waiting + c.Unacknowledged)), rounded.Bytes(uint64(c.Unread)), rounded.Bytes(uint64(c.Reordering))})
	}
	table(rows)
	if o := s.Omitted; o != nil {
		var left []string
		for _, of := range []struct {
			number int
			what   string
		}{{o.Connections, "connections"}, {o.Entries, "entries"}, {o.Streams, "streams"}} {
			if of.number > 0 {
				left = append(left, fmt.Sprintf("%s: %d", of.what, of.number))
			}
		}
		fmt.Fprintf(&b, "\nnot listed (the lowest rates): %s\n", strings.Join(left, ", "))
	}
	for _, p := range s.Exits {
		for _, path := range p.Paths {
			if path.Failure != "" {
				fmt.Fprintf(&b, "\npath %s of exit %s: %s\n", path.Name, p.Address, path.Failure)
			}
		}
	}
	return b.String()
}

// WriteRelayAgents lists the relay agents of a machine.
func WriteRelayAgents(w io.Writer, all []host.Status) error {
	rows := [][]string{{"AGENT", "AGE", "EXITS", "ENTRIES", "STREAMS", "CONNECTIONS", "SENDING", "RECEIVING", "ENDED", "FAILED"}}
	for _, s := range all {
		t := s.Total
		rows = append(rows, []string{s.Agent, age(s.At.Sub(s.Began)), fmt.Sprint(len(s.Exits)), fmt.Sprint(len(s.Entries)), fmt.Sprint(t.Streams), fmt.Sprint(t.Connections),
			rounded.Rate(float64(t.SendRate)), rounded.Rate(float64(t.ReceiveRate)), fmt.Sprint(t.Ended), fmt.Sprint(t.Failed)})
	}
	return text.Table(w, "", rows)
}

func pathRows(peer string, all []host.PeerStatus) [][]string {
	rows := [][]string{{peer, "PATH", "STATE", "STREAMS", "RTT", "SENDING", "RECEIVING", "SENT", "RECEIVED"}}
	for _, p := range all {
		for _, path := range p.Paths {
			number := fmt.Sprint(path.Open)
			if path.Suspect > 0 {
				number += fmt.Sprintf(", %d suspect", path.Suspect)
			}
			if path.Closed > 0 {
				number += fmt.Sprintf(", %d closed", path.Closed)
			}
			rows = append(rows, []string{p.Address, path.Name, string(path.State), number, delayOrDash(path.RTT),
				rounded.Rate(float64(path.SendRate)), rounded.Rate(float64(path.ReceiveRate)), rounded.Bytes(path.Sent), rounded.Bytes(path.Received)})
		}
	}
	return rows
}

func streamRows(peer string, all []host.PeerStatus) [][]string {
	rows := [][]string{{peer, "PATH", "STREAM", "STATE", "RTT", "ESTIMATED", "SENDING", "RECEIVING", "UNSENT", "UNACKED", "SENT", "RECEIVED"}}
	for _, p := range all {
		for _, path := range p.Paths {
			for _, st := range path.Streams {
				number := "-"
				if st.Number > 0 {
					number = fmt.Sprint(st.Number)
				}
				rows = append(rows, []string{p.Address, path.Name, number, string(st.State), delayOrDash(st.RTT), rounded.Rate(float64(st.EstimatedRate)),
					rounded.Rate(float64(st.SendRate)), rounded.Rate(float64(st.ReceiveRate)), rounded.Bytes(uint64(st.Unsent)), rounded.Bytes(uint64(st.Unacknowledged)),
					rounded.Bytes(st.Sent), rounded.Bytes(st.Received)})
			}
		}
	}
	return rows
}

// WriteRelayEnded prints the connections that have ended, with the part of the bytes that each path has carried.
func WriteRelayEnded(w io.Writer, all []host.ConnectionStatus) error {
	rows := [][]string{{"ENDED", "CLIENT", "DESTINATION", "PEER", "STATE", "DURATION", "SENT", "RECEIVED", "GAIN", "PATHS", "ERROR"}}
	for _, c := range all {
		rows = append(rows, []string{c.Began.Add(c.Age).Local().Format(time.DateTime), c.Client.String(), c.Destination.String(), c.Exit + c.Entry, string(c.State),
			age(c.Age), rounded.Bytes(c.Sent), rounded.Bytes(c.Received), gainOrDash(c), pathShares(c), c.Error})
	}
	return text.Table(w, "", rows)
}

// gainOrDash is the gain against a direct connection, as "4.7".
func gainOrDash(c host.ConnectionStatus) string {
	if c.DirectRate == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", c.Gain)
}

// pathShares is the part of a connection's bytes that each path has carried, as "fibre 75%, radio 25%".
func pathShares(c host.ConnectionStatus) string {
	sum := 0.0
	for _, p := range c.Paths {
		sum += float64(p.Sent + p.Received)
	}
	if sum == 0 {
		return "-"
	}
	var out []string
	for _, p := range c.Paths {
		if share := math.Round(100 * float64(p.Sent+p.Received) / sum); share > 0 {
			out = append(out, fmt.Sprintf("%s %.0f%%", p.Path, share))
		}
	}
	return strings.Join(out, ", ")
}

// age is a time in seconds, or a shorter one with three digits.
func age(d time.Duration) string {
	if d < 10*time.Second {
		return rounded.Delay(d)
	}
	return d.Round(time.Second).String()
}

func delayOrDash(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return rounded.Delay(d)
}
