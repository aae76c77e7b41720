package cli

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	api "headgate.dev/headgate/api/client"
)

// serveUsage is a service with the reservation backup.
func serveUsage(t *testing.T) {
	serveWith(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/session":
			io.WriteString(w, `{"name": "admin", "role": "operator"}`)
		case "/v1/reservations/-/backup":
			io.WriteString(w, backupReservation)
		case "/v1/reservations/usage":
			io.WriteString(w, backupUsage)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

// top prints a line for each direction, and with -o json an object for each reading.
func TestReserveTop(t *testing.T) {
	serveUsage(t)
	w := newWorld(t)
	for _, args := range [][]string{{"reserve", "top", "--once"}, {"reserve", "top", "backup", "--once"}} {
		lines := strings.Split(w.must(args...).out, "\n")
		if got := strings.Join(strings.Fields(lines[0])[1:], " "); got != "CLASS RESERVED OFFERED DELIVERED LIMIT BORROWED LENT UNMET" {
			t.Errorf("the columns are %s", got)
		}
		if len(lines) != 4 || !strings.HasPrefix(lines[1], "backup ") || !strings.Contains(lines[1], " 200Mbit ") || !strings.HasSuffix(lines[1], "12 s") || !strings.HasPrefix(lines[2], "backup back ") {
			t.Errorf("%v prints %q", args, lines)
		}
	}
	var f usageFrame
	if err := json.Unmarshal([]byte(w.must("reserve", "top", "--once", "-o", "json").out), &f); err != nil || len(f.Items) != 2 || f.Items[0].UnmetSeconds != 12 || f.Time.IsZero() {
		t.Errorf("%v: %+v", err, f)
	}
}

// The report names reservations that never use what they hold.
func TestReportReservations(t *testing.T) {
	serveUsage(t)
	w := newWorld(t)
	r := w.must("report", "--reservations")
	if !strings.Contains(r.out, "RESERVATION") || !strings.Contains(r.err, "never offered half of what they hold: backup back") || strings.Contains(r.err, ": backup,") {
		t.Errorf("%+v", r)
	}
	var got api.ReservationUsageList
	if err := errors.Join(json.Unmarshal([]byte(w.must("report", "--reservations", "-o", "json").out), &got)); err != nil || len(got.Items) != 2 {
		t.Errorf("%v: %+v", err, got)
	}
	if r := w.must("report", "--reservations", "-o", "csv"); !strings.HasPrefix(r.out, "reservation,owner,direction,") || strings.Count(r.out, "\n") != 3 {
		t.Errorf("%+v", r)
	}
	if r := w.run("report", "--reservations", "--host", "h1"); r.code != exitUsage || !strings.Contains(r.err, "host") {
		t.Errorf("%+v", r)
	}
}
