package controller

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// bodyTimeout is how long a request's body may take to arrive. The client may not be authenticated yet.
const bodyTimeout = 10 * time.Second

// withBodyDeadline sets a read deadline for request bodies. The server's ReadTimeout would also end event
// streams: with HTTP/1 it continues after the body.
func withBodyDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			rc := http.NewResponseController(w)
			if err := rc.SetReadDeadline(time.Now().Add(bodyTimeout)); err == nil {
				r.Body = &deadlineBody{r.Body, rc}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// deadlineBody is a body with a read deadline, which is cleared at the end of the body.
type deadlineBody struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *deadlineBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}
