package session

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"sync"
	"time"
)

// errDisconnected is the cause that cancels the work for a client.
var errDisconnected = errors.New("client disconnected or sent an unexpected message")

// watch returns a context that is cancelled when the client disconnects while no message
// is expected from it, so that its turn is free at once. stop must be called before the
// next message is read.
func watch(ctx context.Context, conn *tls.Conn, l *lines) (there context.Context, stop func()) {
	there, cancel := context.WithCancelCause(ctx)
	conn.SetReadDeadline(time.Time{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := l.in.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel(errDisconnected)
		}
	}()
	return there, sync.OnceFunc(func() {
		conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		cancel(nil)
	})
}
