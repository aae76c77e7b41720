package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Reservations decides about reservations. Errors are a Refusal with status 503 at a controller that is not the leader.
type Reservations interface {
	// Do runs one change in a transaction, which decide may refuse. It may be called several times.
	Do(ctx context.Context, decide func(*store.Tx, ReservationDecision) error) error
	// WhatIf returns what ReservationDecision.Create would return, without effect.
	WhatIf(r reserve.Request, within *store.ReservationBounds) (store.Reservation, error)
	// Calendar returns the rate that is reserved on the link at a port, and the limit: on that which leaves the port's
	// switch, or that which arrives.
	Calendar(link string, arriving bool, from, to time.Time) ([]reserve.Step, unit.Rate, error)
	// Usage returns what each direction of the reservations that have begun does, by tenant and name.
	Usage() ([]api.ReservationUsage, error)
}

// ReservationDecision decides one change. Bounds are those of a tenant, nil for an operator. Errors are a
// *reserve.Refusal, or join a *reserve.Invalid for each mistake.
type ReservationDecision interface {
	Create(r reserve.Request, within *store.ReservationBounds) (store.Reservation, error)
	// Change changes a reservation that exists.
	Change(r reserve.Request, move bool, within *store.ReservationBounds) (store.Reservation, error)
	// Cancel removes a reservation that exists, and returns it.
	Cancel(id reserve.ID) (store.Reservation, error)
}

// reservationID returns the name of a reservation of a tenant, or of the operator (-). For a tenant the reservations of
// others do not exist.
func reservationID(owner, name string, by store.Token) (reserve.ID, error) {
	id := reserve.ID{Tenant: owner, Name: name}
	if owner == store.OperatorOwner {
		id.Tenant = ""
	}
	if by.Tenant != "" && id.Tenant != by.Tenant {
		return id, notFound("reservation", name)
	}
	return id, nil
}

// showReservation returns the API form of a document as it is now.
func showReservation(d store.Reservation) (api.Reservation, error) {
	return reservationOf(d, time.Now())
}

// ListReservations lists the reservations that the caller may see.
func (s *Server) ListReservations(w http.ResponseWriter, r *http.Request, p api.ListReservationsParams) {
	owner, err := askedTenant(p.Owner, principalOf(r))
	if err != nil {
		problem(w, r, err)
		return
	}
	below := store.Prefix(store.Reservations)
	if owner != "" {
		below = store.Prefix(store.Reservations, owner)
	}
	var failed error
	out, err := listPage(r.Context(), s.Store, below, p.After, p.Limit, func(d store.Reservation) (api.Reservation, bool) {
		one, err := showReservation(d)
		failed = errors.Join(failed, err)
		return one, true
	})
	writeResource(w, r, out, errors.Join(err, failed))
}

// GetReservation shows a reservation.
func (s *Server) GetReservation(w http.ResponseWriter, r *http.Request, owner, name string) {
	id, err := reservationID(owner, name, principalOf(r))
	var doc store.Reservation
	if err == nil {
		doc, err = get[store.Reservation](s, r, store.ReservationKey(id), notFound("reservation", name))
	}
	var out api.Reservation
	if err == nil {
		out, err = showReservation(doc)
	}
	writeResource(w, r, out, err)
}

// changeReservation runs a change of a reservation. decide gets the bounds of the caller's tenant, nil for an operator.
func (s *Server) changeReservation(w http.ResponseWriter, r *http.Request, id reserve.ID, decide func(c *changeRequest, d ReservationDecision, within *store.ReservationBounds) (response, error)) {
	end, err := s.turns.take(r.Context(), principalOf(r).Tenant)
	if err != nil {
		return // the client has disconnected
	}
	defer end()
	var made ReservationDecision
	s.changeIn(w, r, func(ctx context.Context, do func(*store.Tx) error) error {
		return s.Reservations.Do(ctx, func(tx *store.Tx, d ReservationDecision) error {
			made = d
			return do(tx)
		})
	}, func(c *changeRequest) (response, error) {
		c.resource = resourceOf(store.ReservationKey(id))
		within, err := boundsOf(id.Tenant, c.by, func(key string, into any) (bool, error) {
			_, ok, err := c.tx.Get(key, into)
			return ok, err
		})
		if err != nil {
			return response{}, err
		}
		out, err := decide(c, made, within)
		return out, reservationRefusal(err)
	})
}

// boundsOf returns the bounds of the caller for a reservation of a tenant: nil for an operator. read reads a document. The
// tenant must exist.
func boundsOf(tenant string, by store.Token, read func(key string, into any) (bool, error)) (*store.ReservationBounds, error) {
	if tenant == "" {
		return nil, nil
	}
	var t store.Tenant
	if ok, err := read(store.Key(store.Tenants, tenant), &t); err != nil {
		return nil, err
	} else if !ok {
		return nil, notFound("tenant", tenant)
	}
	switch {
	case by.Tenant == "":
		return nil, nil
	case t.Reservations == nil:
		return &store.ReservationBounds{}, nil
	}
	return t.Reservations, nil
}

// CreateReservation reserves bandwidth. A dry run is a what-if, which needs no transaction.
func (s *Server) CreateReservation(w http.ResponseWriter, r *http.Request, p api.CreateReservationParams) {
	by := principalOf(r)
	named, err := parseBody[struct{ Name, Owner string }](r)
	var body api.ReservationRequest
	if err == nil {
		body, err = parseBody[api.ReservationRequest](r)
	}
	owner := named.Owner
	if owner == "" {
		owner = store.ReservationOwner(by.Tenant)
	}
	var want reserve.Request
	if err == nil {
		want.ID, err = reservationID(owner, named.Name, by)
	}
	if err == nil {
		want, err = requestFrom(want.ID, body)
	}
	if err != nil {
		problem(w, r, err)
		return
	}
	if valueOr(p.DryRun, false) {
		s.whatIf(w, r, want)
		return
	}
	s.changeReservation(w, r, want.ID, func(_ *changeRequest, d ReservationDecision, within *store.ReservationBounds) (response, error) {
		return respondReservation(http.StatusCreated)(d.Create(want, within))
	})
}

func (s *Server) whatIf(w http.ResponseWriter, r *http.Request, want reserve.Request) {
	end, err := s.turns.take(r.Context(), principalOf(r).Tenant)
	if err != nil {
		return // the client has disconnected
	}
	defer end()
	within, err := boundsOf(want.Tenant, principalOf(r), func(key string, into any) (bool, error) {
		d, ok, err := s.Store.Get(r.Context(), key, 0)
		if err == nil && ok {
			err = d.Into(into)
		}
		return ok, err
	})
	var doc store.Reservation
	if err == nil {
		doc, err = s.Reservations.WhatIf(want, within)
	}
	out, err := respondReservation(http.StatusCreated)(doc, err)
	if err != nil {
		problem(w, r, reservationRefusal(err))
		return
	}
	out.write(w)
}

// respondReservation returns a function that responds with a reservation, if there is no error.
func respondReservation(status int) func(store.Reservation, error) (response, error) {
	return func(doc store.Reservation, err error) (response, error) {
		var out api.Reservation
		if err == nil {
			out, err = showReservation(doc)
		}
		if err != nil {
			return response{}, err
		}
		return respondWith(status, out)
	}
}

// PutReservation creates a reservation, or changes one.
func (s *Server) PutReservation(w http.ResponseWriter, r *http.Request, owner, name string, p api.PutReservationParams) {
	body, err := parseBody[api.ReservationRequest](r)
	var want reserve.Request
	if err == nil {
		want.ID, err = reservationID(owner, name, principalOf(r))
	}
	if err == nil {
		want, err = requestFrom(want.ID, body)
	}
	if err != nil {
		problem(w, r, err)
		return
	}
	s.changeReservation(w, r, want.ID, func(c *changeRequest, d ReservationDecision, within *store.ReservationBounds) (response, error) {
		exists, err := c.matchReservation(want.ID)
		switch {
		case err != nil:
			return response{}, err
		case !exists:
			return respondReservation(http.StatusOK)(d.Create(want, within))
		}
		return respondReservation(http.StatusOK)(d.Change(want, valueOr(p.Move, false), within))
	})
}

// matchReservation checks the caller's If-Match against a reservation, and reports whether it exists.
func (c *changeRequest) matchReservation(id reserve.ID) (exists bool, err error) {
	var doc store.Reservation
	if _, exists, err = c.tx.Get(store.ReservationKey(id), &doc); err != nil {
		return false, err
	}
	if !exists {
		return false, c.checkIfMatch(nil)
	}
	shown, err := showReservation(doc)
	if err != nil {
		return true, err
	}
	return true, c.checkIfMatch(shown)
}

// DeleteReservation cancels a reservation.
func (s *Server) DeleteReservation(w http.ResponseWriter, r *http.Request, owner, name string, _ api.DeleteReservationParams) {
	id, err := reservationID(owner, name, principalOf(r))
	if err != nil {
		problem(w, r, err)
		return
	}
	s.changeReservation(w, r, id, func(c *changeRequest, d ReservationDecision, _ *store.ReservationBounds) (response, error) {
		if exists, err := c.matchReservation(id); err != nil {
			return response{}, err
		} else if !exists {
			return response{}, notFound("reservation", name)
		}
		_, err := d.Cancel(id)
		return noContent, err
	})
}

// calendarLength is the default length of a calendar: the week for which reservations are planned most often.
const calendarLength = 7 * 24 * time.Hour

// GetReservationCalendar shows what is reserved on a link over time.
func (s *Server) GetReservationCalendar(w http.ResponseWriter, r *http.Request, p api.GetReservationCalendarParams) {
	from := valueOr(p.From, time.Now().UTC())
	to := valueOr(p.To, from.Add(calendarLength))
	if !to.After(from) {
		problem(w, r, invalidField("to", errors.New("the end "+to.Format(time.RFC3339)+" is not after the start: write a later one")))
		return
	}
	steps, limit, err := s.Reservations.Calendar(p.Link, valueOr(p.Arriving, false), from, to)
	out := api.ReservationCalendar{Steps: []api.ReservationStep{}}
	if limit <= unit.MaxRate {
		out.LimitBps = new(int64(limit))
	}
	for _, one := range steps {
		out.Steps = append(out.Steps, api.ReservationStep{At: one.At, ReservedBps: int64(one.Reserved)})
	}
	writeResource(w, r, out, err)
}

// reservationRefusal returns the refusal of a request with mistakes, or of one that does not fit.
func reservationRefusal(err error) error {
	var refused *reserve.Refusal
	if errors.As(err, &refused) {
		return &Refusal{Status: http.StatusConflict, Detail: refused.Error(), Reservation: refusalOf(refused)}
	}
	fields := mistakes(err)
	if len(fields) == 0 {
		return err
	}
	out := refuse(http.StatusUnprocessableEntity, "%s: %s", fields[0].Field, fields[0].Message)
	if len(fields) > 1 {
		out.Detail = "the reservation has " + strconv.Itoa(len(fields)) + " mistakes"
	}
	out.Fields = fields
	return out
}

// reservationFields maps the keys of package reserve to the fields of a request, where they differ.
var reservationFields = map[string]string{"source": "from", "destination": "to", "reverse": "back", "end": "duration"}

// mistakes returns the mistakes that an error joins.
func mistakes(err error) (all []Field) {
	switch e := err.(type) {
	case *reserve.Invalid:
		field := e.Key
		if f, ok := reservationFields[field]; ok {
			field = f
		}
		return []Field{{field, e.Problem}}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, mistakes(one)...)
		}
	}
	return all
}
