package controller_test

import (
	"strings"
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
)

// The usage of reservations is shown from their begin on, and a tenant sees its own alone.
func TestReservationUsage(t *testing.T) {
	t.Parallel()
	s, _ := reservationsOf(t)
	a, b := s.twoTenants()
	s.must(201, "POST", "/v1/reservations", `{"name": "secret", "rate": "800Mbit", "back": "5Mbit", `+ends+`}`)
	s.must(201, "POST", "/v1/reservations", `{"name": "x", "owner": "a", "rate": "10Mbit", `+ends+`}`)
	s.must(201, "POST", "/v1/reservations", `{"name": "later", "rate": "10Mbit", "start": "`+time.Now().Add(time.Hour).Format(time.RFC3339)+`", `+ends+`}`)
	var all api.ReservationUsageList
	for end := time.Now().Add(20 * time.Second); len(all.Items) < 3 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		s.must(200, "GET", "/v1/reservations/usage", "").into(t, &all)
	}
	if len(all.Items) != 3 || all.Items[0].Name != "secret" || all.Items[0].Direction != api.ReservationForward || all.Items[0].ReservedBps != 800e6 || all.Items[0].Since.IsZero() ||
		all.Items[1].Direction != api.ReservationBack || all.Items[1].ReservedBps != 5e6 || all.Items[2].Owner != "a" {
		t.Errorf("the usage is %+v", all)
	}
	for _, path := range []string{"/v1/reservations/usage", "/v1/reservations/usage?owner=a&reservation=x"} {
		s.mustAs(a, 200, "GET", path, "").into(t, &all)
		if len(all.Items) != 1 || all.Items[0].Name != "x" {
			t.Errorf("%s shows tenant a %+v", path, all)
		}
	}
	if r := s.mustAs(b, 200, "GET", "/v1/reservations/usage", ""); strings.Contains(r.text, "name") {
		t.Errorf("tenant b gets %s", r.text)
	}
	for _, owner := range []string{"-", "a"} {
		s.mustAs(b, 404, "GET", "/v1/reservations/usage?owner="+owner, "")
	}
}
