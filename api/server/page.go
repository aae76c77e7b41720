package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"

	"headgate.dev/headgate/store"
)

// defaultPageSize is the default number of items in a page.
const defaultPageSize = 100

// page is a part of a list, with the cursor of the next page.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// listPage reads a page of documents and converts each with shown, which returns false for a document that the
// caller may not see. listPage reads on until the page is full and one more visible document follows. The cursor
// is the key of the last document in the page, so that the cursor reveals no hidden document.
func listPage[Doc, T any](ctx context.Context, s *store.Store, below string, after *string, limit *int, shown func(Doc) (T, bool)) (page[T], error) {
	out := page[T]{Items: []T{}}
	from, err := cursor(after)
	if err != nil {
		return out, err
	}
	if from != "" {
		from = below + from
	}
	most, last := valueOr(limit, defaultPageSize), ""
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

// get reads the current revision of a document, and returns missing if it does not exist.
func get[Doc any](s *Server, r *http.Request, key string, missing *Refusal) (v Doc, err error) {
	doc, ok, err := s.Store.Get(r.Context(), key, 0)
	if err == nil && !ok {
		err = missing
	}
	if err == nil {
		err = doc.Into(&v)
	}
	return v, err
}

// cursorNames is the number of items that the cursor of a list in memory names: the last ones of the page, any of which may have been deleted when the next page is
// requested.
const cursorNames = 8

// pageOf returns a page of a list that is in memory. It begins after the last item of the page before that still exists.
func pageOf[T any](all []T, name func(T) string, after *string, limit *int) (page[T], error) {
	text, err := cursor(after)
	if err != nil {
		return page[T]{}, err
	}
	var from listCursor
	if text != "" {
		if json.Unmarshal([]byte(text), &from) != nil {
			return page[T]{}, invalidCursor()
		}
		begin := max(from.Count-len(from.Names), 0) // if none of them exists
		for _, one := range from.Names {
			if i := slices.IndexFunc(all, func(v T) bool { return name(v) == one }); i >= 0 {
				begin = i + 1
				break
			}
		}
		all = all[min(begin, len(all)):]
	}
	out := page[T]{Items: append([]T{}, all...)}
	if n := valueOr(limit, defaultPageSize); len(all) > n {
		out.Items = out.Items[:n]
		next := listCursor{Count: from.Count + n}
		for i := n - 1; i >= max(n-cursorNames, 0); i-- {
			next.Names = append(next.Names, name(all[i]))
		}
		text, err := json.Marshal(next)
		if err != nil {
			return out, err
		}
		out.Next = base64.RawURLEncoding.EncodeToString(text)
	}
	return out, nil
}

// listCursor is the end of a page of a list in memory: the names of its last items, the last one first, and the number of items up to there.
type listCursor struct {
	Names []string `json:"names"`
	Count int      `json:"count"`
}

// cursor decodes the cursor of a page.
func cursor(after *string) (string, error) {
	if after == nil || *after == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(*after)
	if err != nil {
		return "", invalidCursor()
	}
	return string(text), nil
}

func invalidCursor() error {
	return &Refusal{Status: http.StatusBadRequest, Detail: "after is not a valid page cursor: use next of the previous page", Fields: []Field{{"after", "not a valid page cursor"}}}
}

// valueOr returns an optional value, or otherwise if the value is absent.
func valueOr[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}
