package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"headgate/store"
)

// answer is what is said to a change.
type answer struct {
	Status int             `json:"status"`
	Tag    string          `json:"tag,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// kept is an answer with the request that it was given to, for whoever asks again.
type kept struct {
	answer
	Request string    `json:"request"`
	At      time.Time `json:"at"`
	// Once is why the answer is not kept: who asks again is told this.
	Once string `json:"once,omitempty"`
}

// call is a change that somebody asks for.
type call struct {
	tx       *store.Tx
	by       store.Token
	match    string // If-Match; "" is not said
	resource string // what is changed, for the record
	// once, if set, says that the answer has a secret, which is not kept, and what who asks again with
	// the same Idempotency-Key is told instead.
	once string
	// then, if set, is done when the change was made, before the answer: not in a dry run, and not for
	// who asks again.
	then func()
}

// errDry ends a dry run: nothing is written.
var errDry = errors.New("it was a dry run")

// change has a change decided, and answers. What is decided on one ledger is decided in its order.
// A change is on record, with the answer to an Idempotency-Key, or it is not made.
func (s *Server) change(w http.ResponseWriter, r *http.Request, ledger string, decide func(c *call) (answer, error)) {
	if !s.Writable() {
		problem(w, r, &Refusal{Status: http.StatusServiceUnavailable, Detail: "no changes are taken: the controller's disk, or the store, is nearly full", RetryAfter: 30})
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		problem(w, r, invalid(err))
		return
	}
	by := principalOf(r)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s\n%s", r.Method, r.URL.RequestURI(), r.Header.Get("If-Match"), body))
	request := hex.EncodeToString(sum[:])
	again := ""
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		again = store.Key(store.Answers, by.ID, key)
	}
	dry, _ := strconv.ParseBool(r.URL.Query().Get("dry_run")) // it was held against the specification
	var out answer
	var then func()
	_, err = s.Store.Do(r.Context(), ledger, func(tx *store.Tx) error {
		then = nil // it may be tried several times
		if again != "" {
			var before kept
			if _, ok, err := tx.Get(again, &before); err != nil {
				return err
			} else if ok && before.Request != request {
				return refuse(http.StatusUnprocessableEntity, "the Idempotency-Key was that of another request")
			} else if ok && before.Once != "" {
				return refuse(http.StatusConflict, "%s", before.Once)
			} else if ok {
				out = before.answer
				return nil
			}
		}
		c := &call{tx: tx, by: by, match: r.Header.Get("If-Match")}
		var err error
		if out, err = decide(c); err != nil {
			return err
		}
		if dry {
			return errDry
		}
		now := time.Now().UTC()
		if again != "" {
			said := kept{answer: out, Request: request, At: now, Once: c.once}
			if c.once != "" {
				said.answer = answer{}
			}
			if err := tx.Put(again, said); err != nil {
				return err
			}
		}
		then = c.then
		return record(tx, now, c, r, out.Status)
	})
	if err != nil && !errors.Is(err, errDry) {
		problem(w, r, err)
		return
	}
	if then != nil {
		then()
	}
	out.write(w)
}

// record puts a change on record.
func record(tx *store.Tx, now time.Time, c *call, r *http.Request, status int) error {
	id := fmt.Sprintf("%016x-%s", now.UnixNano(), NewSecret()[len(tokenPrefix):][:8])
	return tx.Put(store.Key(store.Audit, id), store.AuditEntry{
		ID: id, At: now, By: c.by.Name, Role: c.by.Role, Tenant: c.by.Tenant,
		What: r.Method + " " + r.URL.Path, Resource: c.resource, Status: status,
	})
}

// shows is an answer that shows a resource.
func shows(status int, resource any) (answer, error) {
	text, err := json.Marshal(resource)
	return answer{status, tag(text), text}, err
}

// gone is the answer to a removal.
var gone = answer{Status: http.StatusNoContent}

// tag is the ETag of a resource as somebody sees it: whoever sees less of it sees less of it
// change.
func tag(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// matches refuses a change of what is not any more what the caller has seen; current is nil if
// there is none.
func (c *call) matches(current any) error {
	if c.match == "" {
		return nil
	}
	if current == nil {
		return refuse(http.StatusPreconditionFailed, "there is none: If-Match asks for one")
	}
	text, err := json.Marshal(current)
	if err != nil {
		return err
	}
	if c.match != "*" && c.match != tag(text) {
		return refuse(http.StatusPreconditionFailed, "it was changed meanwhile: its ETag is %s", tag(text))
	}
	return nil
}

// resourceOf is the name of a document on record: hosts/h1.
func resourceOf(key string) string { return strings.TrimPrefix(key, store.Root) }

// current reads the document that a change is about, and refuses the change if the caller has seen
// another; the zero value is none.
func current[Doc, T any](c *call, key string, shown func(Doc) T) (doc Doc, err error) {
	c.resource = resourceOf(key)
	_, there, err := c.tx.Get(key, &doc)
	if err != nil {
		return doc, err
	}
	if !there {
		return doc, c.matches(nil)
	}
	return doc, c.matches(shown(doc))
}

// existing is current of a document that has to be there: a host, of that name.
func existing[Doc, T any](c *call, key, what, name string, shown func(Doc) T) (doc Doc, err error) {
	if _, there, err := c.tx.Get(key, nil); err != nil {
		return doc, err
	} else if !there {
		return doc, notFound(what, name)
	}
	return current(c, key, shown)
}

// put writes the document, and shows it.
func put[Doc, T any](c *call, key string, doc Doc, shown func(Doc) T) (answer, error) {
	if err := c.tx.Put(key, doc); err != nil {
		return answer{}, err
	}
	return shows(http.StatusOK, shown(doc))
}

func (a answer) write(w http.ResponseWriter) {
	if a.Tag != "" {
		w.Header().Set("ETag", a.Tag)
	}
	if a.Body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.Status)
	w.Write(a.Body)
}

// show answers with a resource.
func show(w http.ResponseWriter, r *http.Request, resource any, err error) {
	var a answer
	if err == nil {
		a, err = shows(http.StatusOK, resource)
	}
	if err != nil {
		problem(w, r, err)
		return
	}
	if r.Header.Get("If-None-Match") == a.Tag {
		w.Header().Set("ETag", a.Tag)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	a.write(w)
}

// body is a request's, read into a domain value. It was held against the specification before.
func body[T any](r *http.Request) (v T, err error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return v, err
	}
	r.Body = io.NopCloser(bytes.NewReader(text)) // change reads it, too
	if err := json.Unmarshal(text, &v); err != nil {
		return v, refuse(http.StatusBadRequest, "%v", err)
	}
	return v, nil
}
