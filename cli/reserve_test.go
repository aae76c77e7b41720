package cli

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A refusal names the bottleneck, and the flags with which the same command would be granted.
func TestReserveRefused(t *testing.T) {
	serveWith(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			io.WriteString(w, `{"name": "ci", "role": "tenant", "tenant": "shop"}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"owner":"shop"`) {
			t.Errorf("the request is %s", body)
		}
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, `{"type": "about:blank", "title": "Conflict", "status": 409, "detail": "link s1/2 -> s2/2 has 20Mbit of 50Mbit at 2030-05-01T10:00:00Z: ask for 20Mbit, or start at 2030-05-01T11:00:00Z",
			"refusal": {"reason": "no bandwidth", "free_bps": 20000000, "needed_bps": 50000000, "most": {"from": {"host": "a"}, "to": {"host": "b"}, "rate": "20Mbit", "back": "2Mbit"},
			"earliest": {"from": {"host": "a"}, "to": {"host": "b"}, "start": "2030-05-01T11:00:00Z"}, "window": {"from": {"host": "a"}, "to": {"host": "b"}, "until": "2030-05-01T12:00:00.000000001Z"}}}`)
	})
	zone := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = zone })
	w := newWorld(t)
	for _, command := range [][]string{{"create", "x"}, {"what-if"}} {
		r := w.run(append(append([]string{"reserve"}, command...), "--from", "a", "--to", "b", "--rate", "50Mbit", "--back", "5Mbit", "--for", "1h")...)
		want := `headgate: link s1/2 -> s2/2 has 20Mbit of 50Mbit at 2030-05-01T10:00:00Z: ask for 20Mbit, or start at 2030-05-01T11:00:00Z
The same command with one of these would be granted now:
  --rate 20Mbit --back 2Mbit
  --start 2030-05-01T11:00:00Z
  --until 2030-05-01T12:00:00.000000001Z
`
		if r.code != exitFailed || r.err != want || r.out != "" {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	r := w.run("reserve", "create", "x", "--from", "a", "--to", "b", "--rate", "50Mbit", "--for", "1h", "-o", "json")
	if r.code != exitFailed || !strings.Contains(r.out, `"needed_bps": 50000000`) || !strings.Contains(r.err, "has 20Mbit of 50Mbit") {
		t.Errorf("%+v", r)
	}
}

// --wait prints when the reservation begins, and ends when it is active, or fails when it is degraded.
func TestReserveWait(t *testing.T) {
	for last, code := range map[string]int{"active": exitOK, "degraded": exitFailed, "ended": exitFailed} {
		var asked atomic.Int32
		serveWith(t, func(w http.ResponseWriter, r *http.Request) {
			state := "scheduled"
			switch {
			case r.URL.Path == "/v1/session":
				io.WriteString(w, `{"name": "admin", "role": "operator"}`)
				return
			case r.URL.Path == "/v1/network":
				io.WriteString(w, `{"switches": []}`)
				return
			case r.Method == http.MethodGet && asked.Add(1) == 2:
				state = last
			}
			fmt.Fprintf(w, `{"owner": "-", "name": "x", "state": %q, "degraded": "no path has bandwidth", "request": {"from": {"host": "a"}, "to": {"host": "b"}}, "start": %q, "end": "2040-05-01T10:00:00Z", "paths": []}`, state, time.Now().Add(2*time.Second).Format(time.RFC3339))
		})
		r := newWorld(t).run("reserve", "create", "x", "--from", "a", "--to", "b", "--rate", "50Mbit", "--for", "1h", "--start", "+2s", "--wait")
		if r.code != code || !strings.Contains(r.err, "reservation x begins at ") || code == exitFailed && !strings.Contains(r.err, last) || asked.Load() != 2 {
			t.Errorf("%s after %d requests: %+v", last, asked.Load(), r)
		}
	}
}

// Times are written as people write them.
func TestParseMoment(t *testing.T) {
	zone := time.Local
	time.Local = time.FixedZone("east", 3600)
	t.Cleanup(func() { time.Local = zone })
	c := reserveCalendarCommand(&app{})
	now := time.Date(2026, 5, 1, 17, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"": "2026-05-01T17:30:00Z", "+90m": "2026-05-01T19:00:00Z", "18:00": "2026-05-02T17:00:00Z", "18:31": "2026-05-01T17:31:00Z",
		"2026-05-03": "2026-05-02T23:00:00Z", "2026-05-03 06:00": "2026-05-03T05:00:00Z", "2026-05-03T06:00:00Z": "2026-05-03T06:00:00Z",
		"soon": "", "-2h": "", "+x": "",
	} {
		got, err := parseMoment(c, "start", text, now)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "write it 18:00") {
				t.Errorf("%q: %v, %v", text, got, err)
			}
			continue
		}
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
}
