package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/store"
)

// Refusal is the reason for which a request is refused, for the client (RFC 9457).
type Refusal struct {
	Status int
	Detail string
	Fields []Field
	// RetryAfter is in seconds; 0 leaves the header out.
	RetryAfter int
	// Reservation is why a reservation does not fit, and what would be granted instead.
	Reservation *api.ReservationRefusal
}

// Field is the error of one field of a request.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (r *Refusal) Error() string { return r.Detail }

// refuse returns a refusal with a formatted detail.
func refuse(status int, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Detail: fmt.Sprintf(format, args...)}
}

// notFound returns the refusal for a resource that does not exist or belongs to another tenant.
func notFound(what, name string) *Refusal {
	return refuse(http.StatusNotFound, "%s %q not found", what, name)
}

// askedTenant returns the tenant whose things are asked for: "" for all, and for a tenant its own. Other tenants do not exist for it.
func askedTenant(asked *string, by store.Token) (string, error) {
	tenant := valueOr(asked, by.Tenant)
	if by.Tenant != "" && tenant != by.Tenant {
		return "", notFound("tenant", tenant)
	}
	return tenant, nil
}

// retryAfter is the Retry-After, in seconds, while the store is unavailable: the store elects a new leader
// within some seconds.
const retryAfter = 2

// problem answers with an error as problem+json, and logs the errors that are not the client's.
func problem(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *Refusal
	var tooLarge *store.DocumentTooLarge
	switch {
	case errors.As(err, &refusal):
	case errors.Is(err, store.ErrUnavailable):
		if r.Context().Err() == nil { // otherwise the client has disconnected
			slog.Warn("store unavailable", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		refusal = &Refusal{Status: http.StatusServiceUnavailable, Detail: "the store is unavailable: retry, with the same Idempotency-Key if the request is a change", RetryAfter: retryAfter}
	case errors.Is(err, store.ErrFull):
		slog.Error("store is full, rejecting changes", "error", err)
		refusal = &Refusal{Status: http.StatusServiceUnavailable, Detail: "the store is full: changes are rejected", RetryAfter: 30}
	case errors.Is(err, store.ErrTooLarge):
		slog.Error("change too large", "method", r.Method, "path", r.URL.Path, "error", err)
		refusal = refuse(http.StatusRequestEntityTooLarge, "%v", err)
	case errors.As(err, &tooLarge):
		refusal = refuse(http.StatusRequestEntityTooLarge, "%v", err)
	case errors.Is(err, store.ErrCompacted):
		refusal = refuse(http.StatusGone, "the revision was removed by compaction")
	case errors.Is(err, store.ErrFuture):
		refusal = refuse(http.StatusNotFound, "the revision does not exist yet")
	case r.Context().Err() != nil:
		return // the client has disconnected
	default:
		slog.Error("cannot answer request", "method", r.Method, "path", r.URL.Path, "error", err)
		refusal = refuse(http.StatusInternalServerError, "internal error: see the log of the controller")
	}
	if refusal.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(refusal.RetryAfter))
	}
	if refusal.Status == http.StatusRequestEntityTooLarge || refusal.Status == http.StatusRequestTimeout {
		w.Header().Set("Connection", "close") // the rest of the body may still come
	}
	if refusal.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(refusal.Status)
	json.NewEncoder(w).Encode(struct {
		Type    string                  `json:"type"`
		Title   string                  `json:"title"`
		Status  int                     `json:"status"`
		Detail  string                  `json:"detail,omitempty"`
		Errors  []Field                 `json:"errors,omitempty"`
		Refusal *api.ReservationRefusal `json:"refusal,omitempty"`
	}{"about:blank", http.StatusText(refusal.Status), refusal.Status, refusal.Detail, refusal.Fields, refusal.Reservation})
}
