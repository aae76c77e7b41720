package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/unit/rounded"
)

// reportReservations prints the totals of reservations, and names those that never use what they hold.
func (a *app) reportReservations(all []api.ReservationUsage, output string) error {
	var unused []string
	for _, u := range all {
		if u.Unused {
			unused = append(unused, usageName(u))
		}
	}
	if len(unused) > 0 {
		a.note("never offered half of what they hold: %s", strings.Join(unused, ", "))
	}
	switch output {
	case "json":
		if all == nil {
			all = []api.ReservationUsage{}
		}
		return a.print("json", api.ReservationUsageList{Items: all}, nil)
	case "csv":
		return reservationsCSV(a.out, all)
	}
	rows := [][]string{{"RESERVATION", "SINCE", "SECONDS", "RESERVED", "PEAK", "OFFERED", "DELIVERED", "BORROWED", "LENT", "UNMET", "UNUSED"}}
	for _, u := range all {
		size := func(v int64) string { return rounded.Bytes(uint64(v)) }
		word := "-"
		if u.Unused {
			word = "yes"
		}
		rows = append(rows, []string{
			usageName(u), timeText(u.Since), fmt.Sprintf("%.0f", u.Seconds), unit.Rate(u.ReservedBps).String(), rounded.Rate(float64(u.PeakBps)),
			size(u.OfferedBytes), size(u.DeliveredBytes), size(u.BorrowedBytes), size(u.LentBytes), fmt.Sprintf("%.0f s", u.UnmetSeconds), word,
		})
	}
	return text.Table(a.out, "", rows)
}

func reservationsCSV(to io.Writer, all []api.ReservationUsage) error {
	w := csv.NewWriter(to)
	w.Write([]string{"reservation", "owner", "direction", "since", "seconds", "reserved_bps", "peak_bps", "reserved_bytes", "offered_bytes", "delivered_bytes", "borrowed_bytes", "lent_bytes", "unmet_seconds", "unused"})
	for _, u := range all {
		row := []string{u.Name, u.Owner, string(u.Direction), u.Since.Format("2006-01-02T15:04:05Z07:00")}
		for _, v := range []any{u.Seconds, u.ReservedBps, u.PeakBps, u.ReservedBytes, u.OfferedBytes, u.DeliveredBytes, u.BorrowedBytes, u.LentBytes, u.UnmetSeconds, u.Unused} {
			row = append(row, fmt.Sprint(v))
		}
		w.Write(row)
	}
	w.Flush()
	return w.Error()
}
