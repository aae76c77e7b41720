package api

import (
	"context"
	"encoding/base64"
	"net/http"

	"headgate/store"
)

// ordinaryPage is how many items a page has if it is not said.
const ordinaryPage = 100

// page is a part of a list.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// list reads a page of documents, and shows each in the caller's terms; one that is not for the
// caller is left out. It reads on until the page is full and another is known to follow: next has the
// name of what was shown last, and tells of nothing that was not.
func list[Doc, T any](ctx context.Context, s *store.Store, below string, after *string, limit *int, shown func(Doc) (T, bool)) (page[T], error) {
	out := page[T]{Items: []T{}}
	from, err := cursor(after)
	if err != nil {
		return out, err
	}
	if from != "" {
		from = below + from
	}
	most, last := or(limit, ordinaryPage), ""
	for {
		docs, more, _, err := s.List(ctx, below, from, most+1)
		if err != nil {
			return out, err
		}
		for _, d := range docs {
			from = d.Key
			var v Doc
			if err := d.Into(&v); err != nil {
				return out, err
			}
			item, ok := shown(v)
			switch {
			case !ok:
			case len(out.Items) == most:
				out.Next = base64.RawURLEncoding.EncodeToString([]byte(last))
				return out, nil
			default:
				out.Items, last = append(out.Items, item), d.Key[len(below):]
			}
		}
		if !more {
			return out, nil
		}
	}
}

// get is a document, as it is now: a host, of that name.
func get[Doc any](s *Server, r *http.Request, key, what, name string) (v Doc, err error) {
	doc, ok, err := s.Store.Get(r.Context(), key, 0)
	if err == nil && !ok {
		err = notFound(what, name)
	}
	if err == nil {
		err = doc.Into(&v)
	}
	return v, err
}

// cut is a page of what is there as a whole.
func cut[T any](all []T, name func(T) string, after *string, limit *int) (page[T], error) {
	from, err := cursor(after)
	if err != nil {
		return page[T]{}, err
	}
	if from != "" {
		for i, v := range all {
			if name(v) == from {
				all = all[i+1:]
				break
			}
		}
	}
	out := page[T]{Items: append([]T{}, all...)}
	if n := or(limit, ordinaryPage); len(all) > n {
		out.Items = out.Items[:n]
		out.Next = base64.RawURLEncoding.EncodeToString([]byte(name(all[n-1])))
	}
	return out, nil
}

func cursor(after *string) (string, error) {
	if after == nil || *after == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(*after)
	if err != nil {
		return "", &Refusal{Status: http.StatusBadRequest, Detail: "after is not the next of a page", Fields: []Field{{"after", "not of a page"}}}
	}
	return string(text), nil
}

// or is a value that may be left out.
func or[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}
