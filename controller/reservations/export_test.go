package reservations

import "headgate.dev/headgate/fabric/reserve"

// List returns all reservations, by tenant and name.
func (o *Owner) List() []reserve.Reservation {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.book.All()
}
