package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
)

// Errors of responses, besides fs.ErrNotExist and os.ErrPermission.
var (
	// ErrPreconditionFailed means that another request changed the resource.
	ErrPreconditionFailed = errors.New("precondition failed")
	// ErrInvalid means that the service rejects the request as invalid: sent again, it fails again.
	ErrInvalid = errors.New("invalid request")
)

// RefusedError is the error of a reservation that does not fit, with what would be granted instead.
type RefusedError struct {
	error
	Refusal ReservationRefusal
}

// Decode decodes the response to a request of a Client: the value, or the problem as an error. The error is
// fs.ErrNotExist for a resource that does not exist or that the user may not see, os.ErrPermission,
// ErrPreconditionFailed, ErrInvalid, or a *RefusedError.
func Decode[T any](r *http.Response, err error) (out T, _ error) {
	if err != nil {
		return out, fmt.Errorf("request to the service failed: %w", err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return out, fmt.Errorf("cannot read the response of the service: %w", err)
	}
	if r.StatusCode >= http.StatusBadRequest {
		return out, problemError(r, text)
	}
	if len(text) > 0 {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// DecodeWithETag decodes a resource and its ETag, for a change with If-Match. The ETag is nil if the resource does
// not exist, which is no error.
func DecodeWithETag[T any](r *http.Response, err error) (now T, tag *string, _ error) {
	now, err = Decode[T](r, err)
	if errors.Is(err, fs.ErrNotExist) {
		return now, nil, nil
	}
	if err != nil {
		return now, nil, err
	}
	if text := r.Header.Get("ETag"); text != "" {
		tag = &text
	}
	return now, tag, nil
}

// ListAll reads all pages of a list. one requests the page after a cursor.
func ListAll[T any](one func(after *string) (items []T, next *string, err error)) ([]T, error) {
	all := []T{}
	for after := (*string)(nil); ; {
		items, next, err := one(after)
		if err != nil {
			return nil, err
		}
		if all = append(all, items...); next == nil {
			return all, nil
		}
		after = next
	}
}

// ListUpTo reads up to most items of a list whose newest items come first, over several pages: a page may have
// fewer items than requested although more exist. one requests the page before a cursor.
func ListUpTo[T any](most int, one func(before *string, limit *int) (items []T, next *string, err error)) ([]T, error) {
	all := []T{}
	for before := (*string)(nil); ; {
		left := most - len(all)
		items, next, err := one(before, &left)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if before = next; before == nil || len(all) >= most {
			return all, nil
		}
	}
}

// problemError converts a problem response to an error.
func problemError(r *http.Response, text []byte) error {
	var p Problem
	if json.Unmarshal(text, &p) != nil || p.Title == "" {
		return fmt.Errorf("the service returned %s", r.Status)
	}
	lines := []string{p.Title}
	if p.Detail != nil {
		lines[0] = *p.Detail
	}
	if p.Errors != nil {
		for _, e := range *p.Errors {
			if len(*p.Errors) == 1 && strings.Contains(lines[0], e.Message) {
				break // the detail has it already
			}
			lines = append(lines, "  "+e.Field+": "+e.Message)
		}
	}
	err := errors.New(strings.Join(slices.Compact(lines), "\n"))
	if p.Refusal != nil {
		return &RefusedError{err, *p.Refusal}
	}
	switch r.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w (%w)", err, os.ErrPermission)
	case http.StatusNotFound:
		return failure{err, fs.ErrNotExist}
	case http.StatusPreconditionFailed:
		return failure{err, ErrPreconditionFailed}
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return failure{err, ErrInvalid}
	}
	return err
}

// failure is an error with a text of the service, and a kind for errors.Is.
type failure struct {
	error
	kind error
}

func (f failure) Is(target error) bool { return target == f.kind }
