package session

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"sync"
	"time"
)

// errGone ends what is done for a client.
var errGone = errors.New("the client has gone, or speaks before it is asked")

// watch gives a context that ends when a client goes while it has nothing to say: it
// leaves its place to others at once. stop is called before it may speak again.
func watch(ctx context.Context, conn *tls.Conn, l *lines) (there context.Context, stop func()) {
	there, cancel := context.WithCancelCause(ctx)
	conn.SetReadDeadline(time.Time{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := l.in.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel(errGone)
		}
	}()
	return there, sync.OnceFunc(func() {
		conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		cancel(nil)
	})
}
