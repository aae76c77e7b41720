package report

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit/rounded"
)

// WriteDevices prints a table of the devices of a lab.
func WriteDevices(w io.Writer, devices []lab.Device) error {
	rows := [][]string{{"NODE", "DEVICE", "TO", "IPV4", "IPV6", "PORT", "BACKEND", "RATE", "DELAY", "NAMESPACE", "DATAPATH ID"}}
	for _, d := range devices {
		rate, port, v4, v6 := "unlimited", "", "", ""
		if d.Rate > 0 {
			rate = d.Rate.String()
		}
		if d.Port > 0 {
			port = number(uint64(d.Port))
		} else {
			v4, v6 = d.IPv4.String(), d.IPv6.String()
		}
		rows = append(rows, []string{d.Node, d.Device, d.To, v4, v6, port, string(d.Backend), rate, d.Delay.String(), d.Namespace, d.DatapathID})
	}
	return text.Table(w, "", withoutEmptyColumns(rows))
}

// Write prints the result of a run as tables: flows, requests, transfers, links, programs and events, as
// far as the run has any.
func Write(w io.Writer, r *lab.RunResult) error {
	tables := [][][]string{linkRows(r)}
	if len(r.Flows) > 0 {
		tables = append(flowTables(r.Result), linkRows(r))
	}
	if len(r.Programs) > 0 {
		rows := [][]string{{"PROGRAM", "NODE", "STARTED", "ENDED", "REASON", "STATUS", "OUTPUT"}}
		for _, p := range r.Programs {
			status := strconv.Itoa(p.ExitStatus)
			if p.Signal != "" {
				status = p.Signal
			}
			rows = append(rows, []string{p.Name, p.Node, fmt.Sprintf("%.1fs", max(p.StartedSeconds, 0)), fmt.Sprintf("%.1fs", p.EndedSeconds), p.Ended, status, p.Output})
		}
		tables = append(tables, rows)
	}
	if len(r.Events) > 0 {
		rows := [][]string{{"AT", "HAPPENED", "EVENT"}}
		for _, e := range r.Events {
			rows = append(rows, []string{fmt.Sprintf("%gs", e.AtSeconds), fmt.Sprintf("%.3fs", e.HappenedSeconds), e.What})
		}
		tables = append(tables, rows)
	}
	for i, rows := range tables {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := text.Table(w, "", rows); err != nil {
			return err
		}
	}
	return nil
}

// flowTables returns a table of all flows, one of requests, and one of transfers. Empty
// tables are left out.
func flowTables(r *traffic.Result) [][][]string {
	flows := [][]string{{"FLOW", "FROM", "TO", "PROTO", "OFFERED", "DELIVERED", "RETRANSMITTED", "SRTT", "CWND", "LOST", "JITTER"}}
	requests := [][]string{{"REQUESTS", "DONE", "REFUSED", "FAILED", "UNDER WAY", "BACKLOG", "MIN", "P50", "P99", "MAX"}}
	transfers := [][]string{{"TRANSFERS", "DONE", "FAILED", "UNFINISHED", "MIN", "MEAN", "MAX"}}
	for _, f := range r.Flows {
		row := []string{f.Name, f.From, f.To, string(f.Protocol), rounded.Rate(f.Total.OfferedRate()), rounded.Rate(f.Total.DeliveredRate())}
		if f.Protocol == traffic.TCP {
			row = append(row, number(f.Total.Retransmits))
			// A finished transfer has no connection, and so no window.
			if f.Total.CwndSegments > 0 {
				row = append(row, fmt.Sprintf("%.2fms", float64(f.Total.SRTTus)/1e3), number(uint64(f.Total.CwndSegments)))
			}
		} else {
			row = append(row, "", "", "", number(f.Total.LostDatagrams), rounded.Delay(microseconds(f.Total.JitterUs)))
		}
		flows = append(flows, row)
		if q := f.Requests; q != nil {
			row := []string{f.Name, number(q.Done), number(q.Refused), number(q.Failed), number(q.UnderWay), number(q.Backlog)}
			requests = append(requests, append(row, delays(q.Done, q.Latency.MinUs, q.Latency.P50Us, q.Latency.P99Us, q.Latency.MaxUs)...))
		}
		if t := f.Transfer; t != nil {
			n := uint64(len(t.Completed))
			row := []string{f.Name, number(n), number(t.Failed), rounded.Bytes(t.UnfinishedBytes)}
			transfers = append(transfers, append(row, delays(n, t.Time.MinUs, t.Time.MeanUs, t.Time.MaxUs)...))
		}
	}
	out := [][][]string{withoutEmptyColumns(flows)}
	for _, rows := range [][][]string{requests, transfers} {
		if len(rows) > 1 {
			out = append(out, rows)
		}
	}
	return out
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func microseconds(us float64) time.Duration { return time.Duration(us * 1e3) }

// delays formats times in microseconds as cells. It returns none if the number of samples n is 0.
func delays(n uint64, us ...float64) (cells []string) {
	if n == 0 {
		return nil
	}
	for _, v := range us {
		cells = append(cells, rounded.Delay(microseconds(v)))
	}
	return cells
}

// withoutEmptyColumns removes the columns that are empty in all rows below the heading.
func withoutEmptyColumns(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for column := range rows[0] {
		has := false
		for _, row := range rows[1:] {
			has = has || column < len(row) && row[column] != ""
		}
		if !has {
			continue
		}
		for i, row := range rows {
			cell := ""
			if column < len(row) {
				cell = row[column]
			}
			out[i] = append(out[i], cell)
		}
	}
	return out
}

func linkRows(r *lab.RunResult) [][]string {
	rows := [][]string{{"LINK", "FROM", "TO", "BACKEND", "CARRIED", "FRAMES", "DROPPED", "LATE", "WORST"}}
	for _, l := range r.Links {
		for dir, d := range []lab.DirectionResult{l.Forward, l.Back} {
			row := []string{
				l.Name, l.Ends[dir], l.Ends[1-dir], string(l.Backend), rounded.Rate(d.Total.Rate()),
				strconv.FormatUint(d.Total.Frames, 10), strconv.FormatUint(d.Total.Dropped, 10),
			}
			if e := d.Emulator; e != nil {
				row = append(row, strconv.FormatUint(e.Late, 10), rounded.Delay(e.WorstLate))
			}
			rows = append(rows, row)
		}
	}
	return rows
}
