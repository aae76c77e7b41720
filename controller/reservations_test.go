package controller_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/controller/controllertest"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/store/storetest"
)

// problemOf returns the problem of a refused request.
func (r reply) problem(t testing.TB) (p api.Problem) {
	t.Helper()
	r.into(t, &p)
	return p
}

// reservationsOf starts a service with two switches, of which the hosts 10.0.0.1 and 10.0.0.2 are known.
func reservationsOf(t *testing.T) (*service, *switches) {
	config := controllertest.Config()
	config.OpenFlow = "127.0.0.1:0"
	s := startOn(t, storetest.Open(t, storetest.Start(t)), config, nil)
	s.settled(0, 0, 0)
	w := newSwitches(t)
	w.connect(s.openflow)
	s.settled(2, 2, 0)
	w.ping()
	s.settled(2, 2, 2)
	return s, w
}

const ends = `"from": {"host": "10.0.0.1"}, "to": {"host": "10.0.0.2"}, "duration": "1h"`

// Reservations are made, listed, changed and cancelled, with dry runs, ETags, idempotency keys and counter-offers.
func TestReservations(t *testing.T) {
	t.Parallel()
	s, w := reservationsOf(t)
	var made api.Reservation
	dry := s.must(201, "POST", "/v1/reservations?dry_run=true", `{"name": "a", "rate": "800Mbit", `+ends+`}`)
	s.must(404, "GET", "/v1/reservations/-/a", "")
	r := s.must(201, "POST", "/v1/reservations", `{"name": "a", "rate": "800Mbit", "flows": [{"protocol": "tcp", "destination_ports": "5000-5010"}], `+ends+`}`, "Idempotency-Key", "k")
	r.into(t, &made)
	if made.Owner != "-" || made.State != api.ReservationActive || made.RateBps != 800e6 || made.ReservedBps != 800e6 || len(made.Paths) != 1 || len(made.Paths[0].Links) != 1 ||
		made.Request.From.At == nil || made.Request.From.At.Switch != "0000000000000001" || made.End.Sub(made.Start) != time.Hour {
		t.Errorf("reserved %s after %s", r.text, dry.text)
	}
	if again := s.must(201, "POST", "/v1/reservations", `{"name": "a", "rate": "800Mbit", "flows": [{"protocol": "tcp", "destination_ports": "5000-5010"}], `+ends+`}`, "Idempotency-Key", "k"); again.text != r.text {
		t.Errorf("the repeat is %s", again.text)
	}
	if got := s.must(200, "GET", "/v1/reservations/-/a", ""); got.text != r.text || got.tag != r.tag {
		t.Errorf("GET %s, want %s", got.text, r.text)
	}
	if p := s.must(422, "POST", "/v1/reservations", `{"name": "a", "rate": "1Mbit", `+ends+`}`).problem(t); !strings.Contains(*p.Detail, "reservation a exists") {
		t.Errorf("%+v", p)
	}
	s.must(201, "POST", "/v1/reservations", `{"name": "b", "rate": "700Mbit", `+ends+`}`)
	refusal := s.must(409, "POST", "/v1/reservations", `{"name": "c", "rate": "500Mbit", `+ends+`}`).problem(t)
	if f := refusal.Refusal; f == nil || f.Reason != api.RefusedNoBandwidth || f.From == nil || *f.FreeBps != 300e6 || *f.NeededBps != 500e6 || *f.Most.Rate != "300Mbit" || f.Earliest == nil || f.Window == nil ||
		!strings.Contains(*refusal.Detail, "has 300Mbit of 500Mbit") {
		t.Errorf("%+v", refusal)
	}
	s.must(201, "POST", "/v1/reservations", fmt.Sprintf(`{"name": "c", "rate": "500Mbit", "start": %q, %s}`, refusal.Refusal.Earliest.Start.Format(time.RFC3339Nano), ends))

	// No relay agents are there, and nothing else can carry traffic.
	for carry, c := range map[string]struct {
		status int
		want   string
	}{"relay": {422, "no relay agents carry connections from host 10.0.0.1 to host 10.0.0.2"}, "agents": {400, `["relay"]`}} {
		p := s.must(c.status, "POST", "/v1/reservations?dry_run=true", `{"name": "x", "rate": "1Mbit", "carry": "`+carry+`", "flows": [{"protocol": "tcp"}], `+ends+`}`).problem(t)
		if p.Errors == nil || (*p.Errors)[0].Field != "carry" || !strings.Contains((*p.Errors)[0].Message, c.want) {
			t.Errorf("carry: %s: %+v", carry, p)
		}
	}

	// Mistakes name their fields.
	for field, body := range map[string]string{
		"from":     `{"name": "x", "rate": "1Mbit", "duration": "1h", "from": {"host": "10.0.0.9"}, "to": {"host": "10.0.0.2"}}`,
		"to":       `{"name": "x", "rate": "1Mbit", "duration": "1h", "from": {"host": "10.0.0.1"}, "to": {"host": "10.0.0.2", "vlan": 7}}`,
		"rate":     `{"name": "x", "rate": "1GiB", ` + ends + `}`,
		"start":    `{"name": "x", "rate": "1Mbit", "start": "2020-01-01T00:00:00Z", ` + ends + `}`,
		"flows[1]": `{"name": "x", "rate": "1Mbit", "flows": [{"protocol": "udp"}, {"protocol": "17", "source_ports": "5"}], ` + ends + `}`,
	} {
		if p := s.must(422, "POST", "/v1/reservations", body).problem(t); p.Errors == nil || (*p.Errors)[0].Field != field {
			t.Errorf("%s: %+v", field, p)
		}
	}

	// Changes.
	got := s.must(200, "GET", "/v1/reservations/-/b", "")
	s.must(412, "PUT", "/v1/reservations/-/b", `{"rate": "900Mbit", `+ends+`}`, "If-Match", `"former"`)
	s.must(200, "PUT", "/v1/reservations/-/b?dry_run=true", `{"rate": "900Mbit", `+ends+`}`, "If-Match", got.tag)
	s.must(200, "PUT", "/v1/reservations/-/b", `{"rate": "900Mbit", `+ends+`}`, "If-Match", got.tag).into(t, &made)
	if made.RateBps != 900e6 || made.Generation != 2 || *made.Request.Rate != "900Mbit" {
		t.Errorf("changed to %+v", made)
	}
	if p := s.must(422, "PUT", "/v1/reservations/-/b", `{"rate": "900Mbit", "class": 1, `+ends+`}`).problem(t); (*p.Errors)[0].Field != "class" {
		t.Errorf("%+v", p)
	}
	// In its second hour c is on its path, and in its first b on the other.
	s.must(409, "PUT", "/v1/reservations/-/a", `{"rate": "1Gbit", "duration": "2h", "flows": [{"protocol": "tcp", "destination_ports": "5000-5010"}], "from": {"host": "10.0.0.1"}, "to": {"host": "10.0.0.2"}}`)
	s.must(200, "PUT", "/v1/reservations/-/d", `{"rate": "10Mbit", `+ends+`}`)
	s.must(412, "PUT", "/v1/reservations/-/e", `{"rate": "10Mbit", `+ends+`}`, "If-Match", "*")

	// Lists and calendars.
	var list api.ReservationList
	s.must(200, "GET", "/v1/reservations?limit=3", "").into(t, &list)
	if len(list.Items) != 3 || list.Next == nil || list.Items[2].State != api.ReservationScheduled {
		t.Errorf("listed %+v", list)
	}
	var calendar api.ReservationCalendar
	link := made.Paths[0].Links[0].From
	s.must(200, "GET", fmt.Sprintf("/v1/reservations/calendar?link=%s/%d", link.Switch, link.Port), "").into(t, &calendar)
	if *calendar.LimitBps != 1e9 || len(calendar.Steps) < 2 || calendar.Steps[0].ReservedBps != 900e6 && calendar.Steps[0].ReservedBps != 910e6 {
		t.Errorf("the calendar is %+v", calendar)
	}
	s.must(200, "GET", "/v1/reservations/calendar?link=0000000000000001/1&arriving=true", "").into(t, &calendar)
	if calendar.Steps[0].ReservedBps != 1710e6 {
		t.Errorf("the line from the host has %+v", calendar)
	}
	s.must(404, "GET", "/v1/reservations/calendar?link=s9/1", "")
	s.must(422, "GET", "/v1/reservations/calendar?link=0000000000000001/1&to=2020-01-01T00:00:00Z", "")

	s.must(204, "DELETE", "/v1/reservations/-/d", "")

	// A link dies: what was on it gets what is left, with the reason, and is repaired when the link is back.
	await := func(what string, is func(api.Reservation) bool) {
		t.Helper()
		began := time.Now()
		for time.Since(began) < 20*time.Second {
			s.must(200, "GET", "/v1/reservations/-/b", "").into(t, &made)
			if is(made) {
				t.Logf("%s after %v", what, time.Since(began))
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("not %s after 20 s: %+v", what, made)
	}
	carrier := func(up bool) {
		for _, sw := range w.sw {
			sw.SetLink(openflow.PortNo(link.Port), up)
		}
	}
	carrier(false)
	await("degraded", func(r api.Reservation) bool {
		return r.State == api.ReservationDegraded && r.Degraded != nil && r.RateBps == 900e6 && r.ReservedBps == 200e6 && r.Paths[0].Links[0].From != link
	})
	carrier(true)
	await("repaired", func(r api.Reservation) bool { return r.State == api.ReservationActive && r.ReservedBps == 900e6 })
	if r := s.must(200, "GET", "/v1/audit", ""); !strings.Contains(r.text, "reservations/-/b: reroute: degraded, because") || !strings.Contains(r.text, "reservations/-/b: reroute: repaired") {
		t.Errorf("the audit log is %s", r.text)
	}
	s.must(404, "DELETE", "/v1/reservations/-/d", "")
	if r := s.must(200, "GET", "/v1/audit", ""); !strings.Contains(r.text, "DELETE /v1/reservations/-/d") || !strings.Contains(r.text, "POST /v1/reservations") {
		t.Errorf("the audit log is %s", r.text)
	}
}

// A tenant reserves within its bounds, and sees and changes only its own reservations.
func TestReservationsOfTenants(t *testing.T) {
	t.Parallel()
	s, _ := reservationsOf(t)
	a, b := s.twoTenants()
	body := `{"name": "x", "rate": "10Mbit", ` + ends + `}`
	if p := s.mustAs(a, 422, "POST", "/v1/reservations", body).problem(t); !strings.Contains(*p.Detail, "tenant a may not reserve bandwidth") {
		t.Errorf("without bounds: %+v", p)
	}
	s.must(200, "PUT", "/v1/tenants/a", `{"reservations": {"rate": "50Mbit", "class": 2, "duration": "2h", "ahead": "24h"}}`)
	s.must(200, "PUT", "/v1/tenants/b", `{"reservations": {"rate": "50Mbit", "duration": "2h", "ahead": "24h", "ends": ["10.0.0.2"]}}`)
	if r := s.must(200, "GET", "/v1/tenants/a", ""); !strings.Contains(r.text, `"reservations":{"ahead":"24h","class":2,"duration":"2h","rate":"50Mbit"}`) {
		t.Errorf("the tenant is %s", r.text)
	}
	var made api.Reservation
	s.mustAs(a, 201, "POST", "/v1/reservations", body).into(t, &made)
	if made.Owner != "a" {
		t.Errorf("%+v", made)
	}
	s.mustAs(b, 422, "POST", "/v1/reservations", body) // an end that is not its own
	s.mustAs(a, 422, "POST", "/v1/reservations", strings.Replace(body, `"x"`, `"y", "class": 1`, 1))
	s.mustAs(a, 422, "POST", "/v1/reservations?dry_run=true", strings.Replace(body, `"name": "x", "rate": "10Mbit"`, `"name": "y", "rate": "41Mbit"`, 1))
	s.must(201, "POST", "/v1/reservations", `{"name": "secret", "rate": "995Mbit", `+ends+`}`)
	for _, path := range []string{"/v1/reservations/a/x", "/v1/reservations/-/secret", "/v1/reservations/-/x", "/v1/reservations/c/x"} {
		mine := path == "/v1/reservations/a/x"
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			request := ""
			if method == "PUT" {
				request = `{"rate": "1Mbit", ` + ends + `}`
			}
			if !mine {
				s.mustAs(a, 404, method, path, request)
			}
			s.mustAs(b, 404, method, path, request)
		}
	}
	s.mustAs(b, 404, "POST", "/v1/reservations", strings.Replace(body, `"x"`, `"x", "owner": "a"`, 1))
	s.mustAs(b, 404, "POST", "/v1/reservations", strings.Replace(body, `"x"`, `"x", "owner": "-"`, 1))
	s.mustAs(b, 404, "GET", "/v1/reservations?owner=a", "")
	s.mustAs(b, 403, "GET", "/v1/reservations/calendar?link=0000000000000001/1", "")
	for _, token := range []string{a, b} {
		for _, path := range []string{"/v1/reservations", "/v1/audit"} {
			r := s.mustAs(token, 200, "GET", path, "")
			if strings.Contains(r.text, "secret") || token == b && strings.Contains(r.text, "reservations/a") || token == b && strings.Contains(r.text, `"owner":"a"`) {
				t.Errorf("%s shows %s", path, r.text)
			}
		}
	}
	if p := s.mustAs(a, 409, "POST", "/v1/reservations", strings.Replace(body, `"name": "x", "rate": "10Mbit"`, `"name": "y", "rate": "40Mbit", "paths": 2`, 1)).problem(t); p.Refusal == nil || strings.Contains(*p.Detail, "secret") {
		t.Errorf("%+v", p)
	}
	s.mustAs(a, 200, "PUT", "/v1/reservations/a/x", `{"rate": "5Mbit", `+ends+`}`)
	// The operator sees all, and reserves for a tenant without its bounds.
	s.must(201, "POST", "/v1/reservations", `{"name": "big", "owner": "b", "rate": "100Mbit", `+ends+`}`)
	s.must(404, "POST", "/v1/reservations", `{"name": "big", "owner": "none", "rate": "100Mbit", `+ends+`}`)
	s.mustAs(b, 200, "GET", "/v1/reservations/b/big", "")
	s.must(200, "GET", "/v1/reservations?owner=a", "")
	viewer := s.token(`{"name": "v", "role": "viewer", "tenant": "a"}`)
	s.mustAs(viewer, 200, "GET", "/v1/reservations/a/x", "")
	s.mustAs(viewer, 403, "DELETE", "/v1/reservations/a/x", "")
	if r := s.must(409, "DELETE", "/v1/tenants/b", ""); !strings.Contains(r.text, "owns groups") {
		t.Error(r.text)
	}
	s.must(204, "DELETE", "/v1/reservations/a/x", "")
}

// Every controller takes requests for reservations, and the next leader has what was granted. Nothing that a client was
// granted is lost when the leader ends.
func TestReservationsForwarded(t *testing.T) {
	t.Parallel()
	member := storetest.Start(t)
	config := controllertest.Config()
	config.OpenFlow = "127.0.0.1:0"
	first := startOn(t, storetest.Open(t, member), config, nil)
	first.settled(0, 0, 0)
	config.Name, config.Peers = "c2", []string{strings.TrimPrefix(first.url, "https://")}
	second := startOn(t, storetest.Open(t, member), config, nil)
	second.operator = first.operator
	w := newSwitches(t)
	w.connect(first.openflow)
	w.connect(second.openflow)
	first.settled(2, 2, 0)
	w.ping()
	first.settled(2, 2, 2)

	var mu sync.Mutex
	granted := map[string]bool{}
	stop := make(chan struct{})
	var running sync.WaitGroup
	for client := range 3 {
		running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("r%d-%d", client, n)
				if r := second.do(second.operator, "POST", "/v1/reservations", `{"name": "`+name+`", "rate": "1Mbit", `+ends+`}`); r.status == 201 {
					mu.Lock()
					granted[name] = true
					mu.Unlock()
				} else if r.status != 503 {
					t.Errorf("%d %s", r.status, r.text)
				}
			}
		})
	}
	count := func() (all int, first bool) {
		mu.Lock()
		defer mu.Unlock()
		return len(granted), granted["r0-0"]
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if all, first := count(); all > 10 && first {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the leader grants nothing for 30 s")
		}
	}
	tag := second.must(200, "GET", "/v1/reservations/-/r0-0", "").tag
	second.must(412, "PUT", "/v1/reservations/-/r0-0", `{"rate": "2Mbit", `+ends+`}`, "If-Match", `"former"`)
	second.must(200, "PUT", "/v1/reservations/-/r0-0", `{"rate": "2Mbit", `+ends+`}`, "If-Match", tag)
	before, _ := count()
	first.stop()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if after, _ := count(); after > before+3 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the next leader grants nothing for 30 s")
		}
	}
	close(stop)
	running.Wait()
	var list api.ReservationList
	second.must(200, "GET", "/v1/reservations?limit=1000", "").into(t, &list)
	if list.Next != nil {
		t.Fatal("the list has more than a page")
	}
	total := int64(0)
	for _, r := range list.Items {
		delete(granted, r.Name)
		total += r.RateBps
	}
	if len(granted) > 0 {
		t.Errorf("these were granted and are lost: %v", granted)
	}
	var calendar api.ReservationCalendar
	second.must(200, "GET", "/v1/reservations/calendar?link=0000000000000001/1&arriving=true", "").into(t, &calendar)
	if calendar.Steps[0].ReservedBps != total {
		t.Errorf("the book has %d bit/s, and the list %d", calendar.Steps[0].ReservedBps, total)
	}
}
