package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// The controller that decides exports each reservation and each direction, up to a bound, and another one nothing.
func TestReservations(t *testing.T) {
	var now *Reservations
	c := NewReservations(func() *Reservations { return now })
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d metrics of a controller that does not decide", n)
	}
	now = &Reservations{
		Active: []reserve.Reservation{{Request: reserve.Request{ID: reserve.ID{Name: "backup"}}}, {Request: reserve.Request{ID: reserve.ID{Tenant: "shop", Name: "sync"}}, Degraded: "no path"}},
		Usage: []ReservationUsage{
			{ID: reserve.ID{Name: "backup"}, Reverse: true, Reserved: unit.Mbit, Unused: true},
			{ID: reserve.ID{Tenant: "shop", Name: "sync"}, Reserved: 20 * unit.Mbit, Limit: new(21 * unit.Mbit), Offered: 25 * unit.Mbit, Delivered: 10 * unit.Mbit, Total: usage.Usage{Offered: 9, Delivered: 7, Borrowed: 2, Lent: 3, Unmet: 1.5}},
		},
	}
	got := scrape(t, c)
	want := `
headgate_reservation_borrowed_bytes_total{direction="forward",owner="shop",reservation="sync"} 2
headgate_reservation_degraded{owner="-",reservation="backup"} 0
headgate_reservation_degraded{owner="shop",reservation="sync"} 1
headgate_reservation_delivered_bits_per_second{direction="forward",owner="shop",reservation="sync"} 1e+07
headgate_reservation_delivered_bytes_total{direction="forward",owner="shop",reservation="sync"} 7
headgate_reservation_lent_bytes_total{direction="forward",owner="shop",reservation="sync"} 3
headgate_reservation_limit_bits_per_second{direction="forward",owner="shop",reservation="sync"} 2.1e+07
headgate_reservation_offered_bits_per_second{direction="forward",owner="shop",reservation="sync"} 2.5e+07
headgate_reservation_offered_bytes_total{direction="forward",owner="shop",reservation="sync"} 9
headgate_reservation_reserved_bits_per_second{direction="back",owner="-",reservation="backup"} 1e+06
headgate_reservation_unmet_seconds_total{direction="forward",owner="shop",reservation="sync"} 1.5
headgate_reservation_unused{direction="back",owner="-",reservation="backup"} 1
headgate_reservation_unused{direction="forward",owner="shop",reservation="sync"} 0
headgate_reservations_active 2
headgate_reservations_not_exported 0
`
	for line := range strings.Lines(strings.TrimSpace(want)) {
		if !strings.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
	if strings.Contains(got, `limit_bits_per_second{direction="back"`) {
		t.Errorf("a direction without a limit has one: %s", got)
	}
	now.Usage = nil
	for n := range maxReservations + 5 {
		now.Usage = append(now.Usage, ReservationUsage{ID: reserve.ID{Tenant: "t" + unit.Rate(n).String(), Name: "x"}})
	}
	if n := testutil.CollectAndCount(c, "headgate_reservation_unused"); n != maxReservations {
		t.Errorf("%d directions are exported, want %d", n, maxReservations)
	}
	if got := scrape(t, c); !strings.Contains(got, "headgate_reservations_not_exported 5\n") {
		t.Errorf("the others are not counted: %s", got)
	}
}
