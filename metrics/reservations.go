package metrics

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// maxReservations is the maximum number of reservations and of their directions that are exported, chosen by this project:
// as many as groups of an agent. Only the number of the other directions is exported.
const maxReservations = 2000

// Reservations is what a controller knows of reservations.
type Reservations struct {
	Active []reserve.Reservation
	Usage  []ReservationUsage
}

// ReservationUsage is what one direction of a reservation does. Rates are bit/s and bytes those of layer 2.
type ReservationUsage struct {
	ID                           reserve.ID
	Reverse                      bool
	Reserved, Offered, Delivered unit.Rate
	Limit                        *unit.Rate // nil without a limit
	Total                        usage.Usage
	Unused                       bool
}

// NewReservations returns the collector of reservations. Only the controller that decides about them exports them, so that
// each exists once: read returns nil on others.
func NewReservations(read func() *Reservations) prometheus.Collector { return reservations{read} }

type reservations struct{ read func() *Reservations }

var (
	ofReservation = []string{"owner", "reservation"}
	ofDirection   = []string{"owner", "reservation", "direction"}

	reservationsActive  = prometheus.NewDesc("headgate_reservations_active", "Number of reservations that have begun and have not ended.", nil, nil)
	reservationsOmitted = prometheus.NewDesc("headgate_reservations_not_exported", "Number of directions of reservations that are not exported, beyond the first 2000.", nil, nil)
	reservationDegraded = prometheus.NewDesc("headgate_reservation_degraded", "1 if less is reserved than was granted. The owner is a tenant, or - for the operator.", ofReservation, nil)

	reservationReserved     = prometheus.NewDesc("headgate_reservation_reserved_bits_per_second", "What is reserved, in layer 2.", ofDirection, nil)
	reservationLimit        = prometheus.NewDesc("headgate_reservation_limit_bits_per_second", "What may pass now, in layer 2, if there is a limit.", ofDirection, nil)
	reservationOffered      = prometheus.NewDesc("headgate_reservation_offered_bits_per_second", "What arrived at the limit in the latest second, in layer 2.", ofDirection, nil)
	reservationDelivered    = prometheus.NewDesc("headgate_reservation_delivered_bits_per_second", "What passed the limit in the latest second, in layer 2.", ofDirection, nil)
	reservationOfferedSum   = prometheus.NewDesc("headgate_reservation_offered_bytes_total", "Bytes that arrived at the limit, in layer 2. This and other totals begin with the term of the leader.", ofDirection, nil)
	reservationDeliveredSum = prometheus.NewDesc("headgate_reservation_delivered_bytes_total", "Bytes that passed the limit, in layer 2.", ofDirection, nil)
	reservationBorrowed     = prometheus.NewDesc("headgate_reservation_borrowed_bytes_total", "Bytes delivered beyond what is reserved.", ofDirection, nil)
	reservationLent         = prometheus.NewDesc("headgate_reservation_lent_bytes_total", "Bytes that the reservation left unused and others used.", ofDirection, nil)
	reservationUnmet        = prometheus.NewDesc("headgate_reservation_unmet_seconds_total", "Time in which at least the reserved rate was offered, and less than 99 % of it was delivered.", ofDirection, nil)
	reservationUnused       = prometheus.NewDesc("headgate_reservation_unused", "1 if the reservation has never offered half of what it holds, in at least an hour.", ofDirection, nil)
)

// Describe implements prometheus.Collector.
func (reservations) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{reservationsActive, reservationsOmitted, reservationDegraded, reservationReserved, reservationLimit, reservationOffered, reservationDelivered,
		reservationOfferedSum, reservationDeliveredSum, reservationBorrowed, reservationLent, reservationUnmet, reservationUnused} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c reservations) Collect(to chan<- prometheus.Metric) {
	now := c.read()
	if now == nil {
		return
	}
	gauge(to, reservationsActive, float64(len(now.Active)))
	gauge(to, reservationsOmitted, float64(max(0, len(now.Usage)-maxReservations)))
	owner := func(id reserve.ID) string { return cmp.Or(id.Tenant, "-") }
	for _, r := range now.Active[:min(len(now.Active), maxReservations)] {
		gauge(to, reservationDegraded, boolValue(r.Degraded != ""), owner(r.Request.ID), r.Request.ID.Name)
	}
	for _, u := range now.Usage[:min(len(now.Usage), maxReservations)] {
		direction := "forward"
		if u.Reverse {
			direction = "back"
		}
		of := []string{owner(u.ID), u.ID.Name, direction}
		gauge(to, reservationReserved, float64(u.Reserved), of...)
		if u.Limit != nil {
			gauge(to, reservationLimit, float64(*u.Limit), of...)
		}
		gauge(to, reservationOffered, float64(u.Offered), of...)
		gauge(to, reservationDelivered, float64(u.Delivered), of...)
		counter(to, reservationOfferedSum, u.Total.Offered, of...)
		counter(to, reservationDeliveredSum, u.Total.Delivered, of...)
		counter(to, reservationBorrowed, u.Total.Borrowed, of...)
		counter(to, reservationLent, u.Total.Lent, of...)
		to <- prometheus.MustNewConstMetric(reservationUnmet, prometheus.CounterValue, u.Total.Unmet, of...)
		gauge(to, reservationUnused, boolValue(u.Unused), of...)
	}
}
