package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"headgate/store"
)

// Refusal is why something is not done, for who asked (RFC 9457).
type Refusal struct {
	Status int
	Detail string
	Fields []Field
	// RetryAfter is in seconds; 0 is not said.
	RetryAfter int
}

// Field is what is wrong with one field of a request.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (r *Refusal) Error() string { return r.Detail }

func refuse(status int, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Detail: fmt.Sprintf(format, args...)}
}

// notFound is for what there is not, and for what is another's.
func notFound(what, name string) *Refusal {
	return refuse(http.StatusNotFound, "there is no %s %q", what, name)
}

// retryAfter is when it is worth trying again where the store does not answer: a new leader of it
// is there within some seconds.
const retryAfter = 2

// problem answers with an error.
func problem(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
	case errors.Is(err, store.ErrUnknown):
		if r.Context().Err() == nil { // else nobody waits for it any more
			slog.Warn("the store does not answer", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		refusal = &Refusal{Status: http.StatusServiceUnavailable, Detail: "the store does not answer: ask again, with the same Idempotency-Key if it was a change", RetryAfter: retryAfter}
	case errors.Is(err, store.ErrFull):
		slog.Error("the store takes no changes", "error", err)
		refusal = &Refusal{Status: http.StatusServiceUnavailable, Detail: "no changes are taken: the store is full", RetryAfter: 30}
	case errors.Is(err, store.ErrTooLarge):
		slog.Error("a change is too large", "method", r.Method, "path", r.URL.Path, "error", err)
		refusal = refuse(http.StatusRequestEntityTooLarge, "%v", err)
	case errors.Is(err, store.ErrCompacted):
		refusal = refuse(http.StatusGone, "the store does not remember that revision any more")
	case errors.Is(err, store.ErrFuture):
		refusal = refuse(http.StatusNotFound, "the store has no such revision yet")
	case r.Context().Err() != nil:
		return // nobody waits for it
	default:
		slog.Error("a request cannot be answered", "method", r.Method, "path", r.URL.Path, "error", err)
		refusal = refuse(http.StatusInternalServerError, "the controller cannot do it: its log says why")
	}
	if refusal.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(refusal.RetryAfter))
	}
	if refusal.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(refusal.Status)
	json.NewEncoder(w).Encode(struct {
		Type   string  `json:"type"`
		Title  string  `json:"title"`
		Status int     `json:"status"`
		Detail string  `json:"detail,omitempty"`
		Errors []Field `json:"errors,omitempty"`
	}{"about:blank", http.StatusText(refusal.Status), refusal.Status, refusal.Detail, refusal.Fields})
}
