package server

import (
	"net/http"

	api "headgate.dev/headgate/api/client"
)

// ListReservationUsage shows what the reservations that the caller may see use, lend and lack.
func (s *Server) ListReservationUsage(w http.ResponseWriter, r *http.Request, p api.ListReservationUsageParams) {
	owner, err := askedTenant(p.Owner, principalOf(r))
	if err != nil {
		problem(w, r, err)
		return
	}
	all, err := s.Reservations.Usage()
	out := api.ReservationUsageList{Items: []api.ReservationUsage{}}
	for _, u := range all {
		if (owner == "" || u.Owner == owner) && (p.Reservation == nil || *p.Reservation == u.Name) {
			out.Items = append(out.Items, u)
		}
	}
	writeResource(w, r, out, err)
}
