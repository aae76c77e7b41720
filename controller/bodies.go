package controller

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// bodyWithin is how long a request's body may take to arrive: nobody knows yet who sends it.
const bodyWithin = 10 * time.Second

// inTime bounds how long bodies are waited for. A server's ReadTimeout would end streams of events, too:
// with HTTP/1 it goes on behind the body.
func inTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			rc := http.NewResponseController(w)
			if err := rc.SetReadDeadline(time.Now().Add(bodyWithin)); err == nil {
				r.Body = &bounded{r.Body, rc}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// bounded is a body with a deadline, which is over when it was read.
type bounded struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}
