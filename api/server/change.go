package server

import (
	"bytes"
	"context"
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

	"headgate.dev/headgate/store"
)

// response is the response to a change.
type response struct {
	Status int             `json:"status"`
	Tag    string          `json:"tag,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// storedResponse is the stored response to a request with an Idempotency-Key. A repeat of the request gets this
// response.
type storedResponse struct {
	response
	// Request is the hash of the request's method, URI, If-Match, If-None-Match and body.
	Request string    `json:"request"`
	At      time.Time `json:"at"`
	// Refusal, if set, is the refusal that a repeat gets, because the response has a secret or is larger than maxStoredBody and is not stored.
	Refusal string `json:"once,omitempty"`
}

// maxStoredBody is the largest body of a stored response, in bytes. A repeat of a request with a larger one gets the resource as it is then.
const maxStoredBody = 16 << 10

// errRepeated means that a request was repeated whose response was too large to be stored.
var errRepeated = errors.New("repeated request with a large response")

// changeRequest is a requested change.
type changeRequest struct {
	server   *Server
	tx       *store.Tx
	by       store.Token
	ifMatch  string // If-Match; "" if the request has none
	create   bool   // If-None-Match is *: the resource must not exist
	resource string // the changed resource, for the audit log
	// secretRefusal, if set, marks a response with a secret, which is not stored: a repeat with the same
	// Idempotency-Key gets this text as a refusal.
	secretRefusal string
	// afterCommit, if set, is called after the commit and before the response, but not for a dry run and not
	// for a repeat with the same Idempotency-Key.
	afterCommit func()
	// read is the interface that interfaceAt has read, with its key: it takes milliseconds to decode. It is not changed.
	readKey string
	read    *store.Interface
	// tenantBytes is the size of what the tenant has in the document that it changes.
	tenantBytes int
}

// errDryRun aborts the transaction of a dry run, so that nothing is written.
var errDryRun = errors.New("dry run")

// change runs decide in a transaction and writes the response. The store runs the changes of one ledger
// one after the other. The transaction also writes the audit entry and, for a request with an
// Idempotency-Key, the response: a change is committed with both or not at all.
func (s *Server) change(w http.ResponseWriter, r *http.Request, ledger string, decide func(c *changeRequest) (response, error)) {
	s.changeIn(w, r, func(ctx context.Context, do func(*store.Tx) error) error {
		_, err := s.Store.Do(ctx, ledger, do)
		return err
	}, decide)
}

// changeIn is change in the transactions that run runs.
func (s *Server) changeIn(w http.ResponseWriter, r *http.Request, run func(context.Context, func(*store.Tx) error) error, decide func(c *changeRequest) (response, error)) {
	if !s.Writable() {
		problem(w, r, &Refusal{Status: http.StatusServiceUnavailable, Detail: "the controller is read-only: its disk or the store is nearly full", RetryAfter: 30})
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		problem(w, r, invalid(err))
		return
	}
	by := principalOf(r)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s%s\n%s", r.Method, r.URL.RequestURI(), r.Header.Get("If-Match"), r.Header.Get("If-None-Match"), body))
	request := hex.EncodeToString(sum[:])
	again := ""
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		again = store.Key(store.IdempotentAnswers, ownerOf(by), by.ID, key)
	}
	dry, _ := strconv.ParseBool(r.URL.Query().Get("dry_run")) // the request was validated against the specification
	var out response
	var then func()
	var c *changeRequest
	err = run(store.ForTenant(r.Context(), by.Tenant), func(tx *store.Tx) error {
		then = nil // the transaction may run several times
		if again != "" {
			var before storedResponse
			if _, ok, err := tx.Get(again, &before); err != nil {
				return err
			} else if ok && before.Request != request {
				return refuse(http.StatusUnprocessableEntity, "the Idempotency-Key was already used for another request")
			} else if ok && before.Refusal == largeResponse {
				return errRepeated
			} else if ok && before.Refusal != "" {
				return refuse(http.StatusConflict, "%s", before.Refusal)
			} else if ok {
				out = before.response
				return nil
			}
		}
		c = &changeRequest{server: s, tx: tx, by: by, ifMatch: r.Header.Get("If-Match"), create: r.Header.Get("If-None-Match") == "*"}
		var err error
		if out, err = decide(c); err != nil {
			return err
		}
		if dry {
			return errDryRun
		}
		now := time.Now().UTC()
		if again != "" {
			said := storedResponse{response: out, Request: request, At: now, Refusal: c.secretRefusal}
			if len(out.Body) > maxStoredBody {
				said.Refusal = largeResponse
			}
			if said.Refusal != "" {
				said.response = response{}
			}
			if err := tx.Put(again, said); err != nil {
				return err
			}
		}
		then = c.afterCommit
		return record(tx, now, c, r, out.Status)
	})
	if c != nil && r.Context().Err() == nil { // else the transaction may go on
		s.rateLimits.charge(by, c.tenantBytes/bytesPerRequest)
	}
	if errors.Is(err, errRepeated) {
		s.showInstead(w, r)
		return
	}
	if err != nil && !errors.Is(err, errDryRun) {
		problem(w, r, err)
		return
	}
	if then != nil {
		then()
	}
	out.write(w)
}

// largeResponse is the refusal of a repeat whose response was too large to be stored, if it cannot be read.
const largeResponse = "the request was made before, and its response was too large to be kept: read the resource"

// showInstead responds to a repeat of a change, whose response is not stored, with the resource as it is now.
func (s *Server) showInstead(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost { // the path is not that of the resource
		problem(w, r, refuse(http.StatusConflict, largeResponse))
		return
	}
	get, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, r.URL.Path, http.NoBody)
	get.URL.RawPath = r.URL.RawPath
	get.RemoteAddr, get.Host = r.RemoteAddr, r.Host
	get.Header.Set("Authorization", r.Header.Get("Authorization"))
	s.mux.ServeHTTP(w, get)
}

// record writes the audit entry of a change.
func record(tx *store.Tx, now time.Time, c *changeRequest, r *http.Request, status int) error {
	id := fmt.Sprintf("%016x-%s", now.UnixNano(), NewSecret()[len(tokenPrefix):][:8])
	fields, more := differencesIn(tx)
	return tx.Put(store.Key(store.Audit, id), store.AuditEntry{
		ID: id, At: now, By: c.by.Name, Role: c.by.Role, Tenant: c.by.Tenant,
		Change: r.Method + " " + r.URL.Path, Resource: c.resource, Status: status, Differences: fields, MoreDifferences: more,
	})
}

// respondWith returns a response that contains the resource and its ETag.
func respondWith(status int, resource any) (response, error) {
	text, err := json.Marshal(resource)
	return response{status, etag(text), text}, err
}

// noContent is the response to a deletion.
var noContent = response{Status: http.StatusNoContent}

// etag returns the ETag of a resource as one caller sees it. A caller that sees only part of a
// resource gets an ETag that changes only with that part.
func etag(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// checkIfMatch refuses a change whose If-Match is not the ETag of the current resource, or whose If-None-Match is * if
// there is one. current is nil if the resource does not exist.
func (c *changeRequest) checkIfMatch(current any) error {
	if c.create && current != nil {
		return refuse(http.StatusPreconditionFailed, "the resource exists already: If-None-Match: * creates only")
	}
	if c.ifMatch == "" {
		return nil
	}
	if current == nil {
		return refuse(http.StatusPreconditionFailed, "the resource does not exist: If-Match requires it")
	}
	text, err := json.Marshal(current)
	if err != nil {
		return err
	}
	if c.ifMatch != "*" && c.ifMatch != etag(text) {
		return refuse(http.StatusPreconditionFailed, "the resource has been changed: its ETag is now %s", etag(text))
	}
	return nil
}

// resourceOf returns a document's name in the audit log, such as hosts/h1.
func resourceOf(key string) string { return strings.TrimPrefix(key, store.Root) }

// readCurrent reads the document that a change is about and checks the caller's If-Match against it.
// The result is the zero value if the document does not exist.
func readCurrent[Doc, T any](c *changeRequest, key string, shown func(Doc) T) (doc Doc, err error) {
	c.resource = resourceOf(key)
	_, there, err := c.tx.Get(key, &doc)
	if err != nil {
		return doc, err
	}
	if !there {
		return doc, c.checkIfMatch(nil)
	}
	return doc, c.checkIfMatch(shown(doc))
}

// readExisting is like readCurrent, but refuses the change with missing if the document does not exist.
func readExisting[Doc, T any](c *changeRequest, key string, missing *Refusal, shown func(Doc) T) (doc Doc, err error) {
	if _, there, err := c.tx.Get(key, nil); err != nil {
		return doc, err
	} else if !there {
		return doc, missing
	}
	return readCurrent(c, key, shown)
}

// put writes the document and returns a response that contains the resource.
func put[Doc, T any](c *changeRequest, key string, doc Doc, shown func(Doc) T) (response, error) {
	if err := c.tx.Put(key, doc); err != nil {
		return response{}, err
	}
	return respondWith(http.StatusOK, shown(doc))
}

// write sends the response to the client.
func (a response) write(w http.ResponseWriter) {
	if a.Tag != "" {
		w.Header().Set("ETag", a.Tag)
	}
	if a.Body != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.Status)
	w.Write(a.Body)
}

// writeResource sends a resource, 304 if the client has it already (If-None-Match), or the error.
func writeResource(w http.ResponseWriter, r *http.Request, resource any, err error) {
	var a response
	if err == nil {
		a, err = respondWith(http.StatusOK, resource)
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

// parseBody parses the request body, which was validated against the specification before.
func parseBody[T any](r *http.Request) (v T, err error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return v, err
	}
	r.Body = io.NopCloser(bytes.NewReader(text)) // change reads the body again
	if err := json.Unmarshal(text, &v); err != nil {
		return v, refuse(http.StatusBadRequest, "%v", err)
	}
	return v, nil
}
