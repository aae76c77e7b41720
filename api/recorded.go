package api

import (
	"bytes"
	"maps"
	"net/http"
)

// Recorded is an answer that is not given yet.
type Recorded struct {
	Status int
	Body   bytes.Buffer
	header http.Header
}

// Record has a request answered.
func Record(by http.Handler, r *http.Request) *Recorded {
	out := &Recorded{Status: http.StatusOK, header: http.Header{}}
	by.ServeHTTP(out, r)
	return out
}

// Header is part of http.ResponseWriter.
func (a *Recorded) Header() http.Header { return a.header }

// WriteHeader is part of http.ResponseWriter.
func (a *Recorded) WriteHeader(status int) { a.Status = status }

// Write is part of http.ResponseWriter.
func (a *Recorded) Write(b []byte) (int, error) { return a.Body.Write(b) }

// Give answers with it.
func (a *Recorded) Give(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body.Bytes())
}
