package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/gorilla/websocket"
)

// randomBytes returns bytes that cannot be compressed, the same each time.
func randomBytes(size int) []byte {
	b := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(b)
	return b
}

// serve serves HTTP at the server, and logs the clients' addresses.
func (a *applications) serve(h http.Handler) error {
	log, err := os.Create(filepath.Join(a.dir, "log"))
	if err != nil {
		return err
	}
	l, err := listen(a.server, net.JoinHostPort(a.to.String(), appPort))
	if err != nil {
		log.Close()
		return err
	}
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	s := &http.Server{Protocols: both, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(log, r.RemoteAddr, r.Proto, r.URL)
		h.ServeHTTP(w, r)
	})}
	go s.Serve(l)
	a.stop = append(a.stop, func() { s.Close(); log.Close() })
	return nil
}

func serveHTTP2(_ context.Context, a *applications) error {
	return a.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			http.Error(w, "not HTTP/2", http.StatusHTTPVersionNotSupported)
			return
		}
		http.ServeFile(w, r, filepath.Join(a.dir, "data"))
	}))
}

// message is the size of a message of the WebSocket echo.
const message = 64 << 10

func serveWebSocket(_ context.Context, a *applications) error {
	var upgrader websocket.Upgrader
	return a.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			kind, b, err := c.ReadMessage()
			if err != nil || c.WriteMessage(kind, b) != nil {
				return
			}
		}
	}))
}

// echoWebSocket sends messages, eight ahead of what has come back, and checks what comes back.
func echoWebSocket(ctx context.Context, a *applications) error {
	dialer := websocket.Dialer{NetDialContext: func(context.Context, string, string) (net.Conn, error) {
		return dial(a.client, net.JoinHostPort(a.to.String(), appPort))
	}}
	c, _, err := dialer.DialContext(ctx, a.url("ws", ""), nil)
	if err != nil {
		return err
	}
	defer c.Close()
	data := randomBytes(message)
	count := max(a.size/message, 1)
	ahead := make(chan struct{}, 8)
	sent := make(chan error, 1)
	go func() {
		for range count {
			ahead <- struct{}{}
			if err := c.WriteMessage(websocket.BinaryMessage, data); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for range count {
		_, got, err := c.ReadMessage()
		if err == nil && !bytes.Equal(got, data) {
			err = errors.New("another message came back")
		}
		if err != nil {
			return err
		}
		<-ahead
	}
	return <-sent
}
