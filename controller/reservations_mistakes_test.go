package controller_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
)

// Each mistake in a request is refused with a sentence about the field and the remedy, by a creation and by a dry run, and
// leaves other reservations as they were.
func TestReservationMistakes(t *testing.T) {
	t.Parallel()
	s, _ := reservationsOf(t)
	before := s.must(201, "POST", "/v1/reservations", `{"name": "before", "rate": "100Mbit", `+ends+`}`)
	const between = `"from": {"host": "10.0.0.1"}, "to": {"host": "10.0.0.2"}`
	soon := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	many := strings.Repeat(`{"protocol": "tcp", "destination_ports": "5000"},`, 200)
	long := strings.Repeat("x", 1<<15)
	for _, c := range []struct {
		what, field, remedy string // of the field, and of the sentence
		request             string
	}{
		{"in the past", "start", "write a time after", between + `, "rate": "1Mbit", "duration": "1h", "start": "2020-01-01T00:00:00Z"`},
		{"after the calendar", "start", "write a time before", between + `, "rate": "1Mbit", "duration": "1h", "start": "9999-12-31T23:00:00Z"`},
		{"of no rate", "rate", "write one", between + `, "rate": "0bit", "duration": "1h"`},
		{"without a rate", "rate", "write one", between + `, "duration": "1h"`},
		{"of a negative rate", "rate", "write", between + `, "rate": "-1Mbit", "duration": "1h"`},
		{"beyond any link", "rate", "ask for less", between + `, "rate": "100Gbit", "duration": "1h"`},
		{"beyond any number", "rate", "write", between + `, "rate": "1e300Gbit", "duration": "1h"`},
		{"beyond any link, back", "back", "ask for less", between + `, "rate": "1Mbit", "back": "100Gbit", "duration": "1h"`},
		{"of the other direction alone", "rate", "exchange source and destination", between + `, "back": "1Mbit", "duration": "1h"`},
		{"from an unknown host", "from", "correct the name", `"from": {"host": "nobody"}, "to": {"host": "10.0.0.2"}, "rate": "1Mbit", "duration": "1h"`},
		{"to an unknown site", "to", "write the name of a site", `"from": {"host": "10.0.0.1"}, "to": {"site": "nowhere"}, "rate": "1Mbit", "duration": "1h"`},
		{"from a prefix without hosts", "from", "name the port", `"from": {"prefix": "192.0.2.0/24"}, "to": {"host": "10.0.0.2"}, "rate": "1Mbit", "duration": "1h"`},
		{"from a prefix with an address", "from", "write an address with zeros", `"from": {"prefix": "10.0.0.1/24"}, "to": {"host": "10.0.0.2"}, "rate": "1Mbit", "duration": "1h"`},
		{"at a switch that does not exist", "from", "correct the name", `"from": {"host": "10.0.0.1", "at": {"switch": "00000000000000ff", "port": 1}}, "to": {"host": "10.0.0.2"}, "rate": "1Mbit", "duration": "1h"`},
		{"with equal ends", "to", "name two ends", `"from": {"host": "10.0.0.1"}, "to": {"host": "10.0.0.1"}, "rate": "1Mbit", "duration": "1h"`},
		{"with an end of two kinds", "from", "write one", `"from": {"host": "10.0.0.1", "vlan": 7}, "to": {"host": "10.0.0.2"}, "rate": "1Mbit", "duration": "1h"`},
		{"with an end of no kind", "from", "write one", `"from": {"at": {"switch": "0000000000000001", "port": 1}}, "to": {"host": "10.0.0.2"}, "rate": "1Mbit", "duration": "1h"`},
		{"with a host of a huge name", "from.host", "maximum string length is 253", `"from": {"host": "` + long + `"}, "to": {"host": "10.0.0.2"}, "rate": "1Mbit", "duration": "1h"`},
		{"of flows that overlap", "flows[1]", "narrow its ports", between + `, "rate": "1Mbit", "duration": "1h", "flows": [{"protocol": "tcp"}, {"protocol": "tcp", "source_ports": "5"}]`},
		{"of 200 flows", "flows", "", between + `, "rate": "1Mbit", "duration": "1h", "flows": [` + strings.TrimSuffix(many, ",") + `]`},
		{"of ports without TCP or UDP", "flows[0].protocol", "remove the ports", between + `, "rate": "1Mbit", "duration": "1h", "flows": [{"protocol": "icmp", "source_ports": "5"}]`},
		{"of ports in the wrong order", "flows[0].source_ports", "the first and the last", between + `, "rate": "1Mbit", "duration": "1h", "flows": [{"protocol": "tcp", "source_ports": "9-5"}]`},
		{"of a window shorter than its duration", "until", "write a later until", between + `, "rate": "1Mbit", "duration": "2h", "until": "` + soon(time.Hour) + `"`},
		{"of a window that is past", "until", "write a later one", between + `, "rate": "1Mbit", "duration": "2h", "until": "` + soon(-time.Hour) + `"`},
		{"of no duration", "duration", "write how long", between + `, "rate": "1Mbit", "duration": "0s"`},
		{"without a duration", "duration", "write how long", between + `, "rate": "1Mbit"`},
		{"of a duration beyond the calendar", "duration", "write a shorter one", between + `, "rate": "1Mbit", "duration": "2500000h"`},
		{"of a duration beyond any number", "duration", "write", between + `, "rate": "1Mbit", "duration": "9999999999999999h"`},
		{"of a negative duration", "duration", "", between + `, "rate": "1Mbit", "duration": "-1h"`},
		{"of no volume", "volume", "write", between + `, "volume": "0B", "until": "` + soon(time.Hour) + `"`},
		{"of a volume and a rate", "rate", "remove rate", between + `, "rate": "1Mbit", "volume": "1GB", "until": "` + soon(time.Hour) + `"`},
		{"of a volume without a deadline", "until", "write one", between + `, "volume": "1GB"`},
		{"of a volume beyond any link", "volume", "write", between + `, "volume": "9000000TB", "until": "` + soon(time.Hour) + `"`},
		{"of class 0", "class", "", between + `, "rate": "1Mbit", "duration": "1h", "class": 0`},
		{"of too many paths", "paths", "", between + `, "rate": "1Mbit", "duration": "1h", "paths": 1000`},
	} {
		for _, query := range []string{"", "?dry_run=true"} {
			r := s.do(s.operator, "POST", "/v1/reservations"+query, `{"name": "x", `+c.request+`}`)
			p, found := r.problem(t), false
			// 400 is that of a form that the API specification excludes.
			if r.status != 422 && r.status != 400 {
				t.Errorf("a reservation %s%s has status %d, want 422 or 400: %.600s", c.what, query, r.status, r.text)
			}
			if p.Errors != nil {
				for _, e := range *p.Errors {
					found = found || e.Field == c.field && strings.Contains(e.Message, c.remedy)
				}
			}
			if !found || p.Detail == nil || len(r.text) > 4096 {
				t.Errorf("a reservation %s%s is refused with %d bytes, want field %s and %q: %.600s", c.what, query, len(r.text), c.field, c.remedy, r.text)
			}
		}
	}
	for name, body := range map[string]string{
		"huge":  `{"name": "` + long + `", "rate": "1Mbit", ` + ends + `}`,
		"empty": `{"name": "", "rate": "1Mbit", ` + ends + `}`,
		"path":  `{"name": "../a", "rate": "1Mbit", ` + ends + `}`,
	} {
		r := s.do(s.operator, "POST", "/v1/reservations", body)
		if p := r.problem(t); r.status != 400 || p.Errors == nil || (*p.Errors)[0].Field != "name" || len(r.text) > 4096 {
			t.Errorf("%s name: %.600s", name, r.text)
		}
	}
	for what, body := range map[string]string{
		"10,000 flows":     `{"name": "x", "rate": "1Mbit", ` + ends + `, "flows": [` + strings.Repeat(many, 50) + `{}]}`,
		"a name of 128 kB": `{"name": "` + strings.Repeat(long, 4) + `", "rate": "1Mbit", ` + ends + `}`,
	} {
		if p := s.must(413, "POST", "/v1/reservations", body).problem(t); !strings.Contains(*p.Detail, "send less") {
			t.Errorf("%s: %s", what, *p.Detail)
		}
	}
	after := s.must(200, "GET", "/v1/reservations/-/before", "")
	var list api.ReservationList
	all := s.must(200, "GET", "/v1/reservations", "")
	if err := json.Unmarshal([]byte(all.text), &list); err != nil || len(list.Items) != 1 || after.text != before.text || after.tag != before.tag {
		t.Errorf("after the mistakes there are %s, %v; want only %s", all.text, err, before.text)
	}
}
