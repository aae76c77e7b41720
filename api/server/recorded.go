package server

import (
	"bytes"
	"maps"
	"net/http"
)

// Recorded is a response in memory.
type Recorded struct {
	Status int
	Body   bytes.Buffer
	header http.Header
}

// RecordResponse calls the handler and returns its response.
func RecordResponse(by http.Handler, r *http.Request) *Recorded {
	out := &Recorded{Status: http.StatusOK, header: http.Header{}}
	by.ServeHTTP(out, r)
	return out
}

// Header implements http.ResponseWriter.
func (a *Recorded) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *Recorded) WriteHeader(status int) { a.Status = status }

// Write implements http.ResponseWriter.
func (a *Recorded) Write(b []byte) (int, error) { return a.Body.Write(b) }

// Replay writes the recorded response to w.
func (a *Recorded) Replay(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body.Bytes())
}
