package controller

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// bodyTimeout is how long a request's body may take to arrive. The client may not be authenticated yet.
const bodyTimeout = 10 * time.Second

// answerTimeout is how long a client may take to read an answer, from its first byte on. Event streams set deadlines of their own.
const answerTimeout = 10 * time.Second

// withDeadlines sets a read deadline for request bodies, and a write deadline for answers. The server's ReadTimeout and WriteTimeout would also end event
// streams: with HTTP/1 the former continues after the body.
func withDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if r.ProtoMajor == 1 {
			_ = rc.SetWriteDeadline(time.Time{}) // that of the answer before, on the same connection
		}
		w = &deadlineWriter{ResponseWriter: w, rc: rc}
		if r.Body != nil && r.Body != http.NoBody {
			if err := rc.SetReadDeadline(time.Now().Add(bodyTimeout)); err == nil {
				// The server looks at the body of its own request for what is left of it, and closes the connection if that is much: what is left must never be
				// taken for the next request.
				r = r.WithContext(r.Context())
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

// deadlineWriter sets a write deadline when the answer begins.
type deadlineWriter struct {
	http.ResponseWriter
	rc    *http.ResponseController
	began bool
}

func (w *deadlineWriter) begin() {
	if !w.began {
		w.began = true
		_ = w.rc.SetWriteDeadline(time.Now().Add(answerTimeout))
	}
}

func (w *deadlineWriter) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

func (w *deadlineWriter) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
