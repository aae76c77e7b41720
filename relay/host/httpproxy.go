package host

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"
)

// maxHeader is the size limit of an HTTP request to the proxy.
const maxHeader = 16 << 10

// serveHTTP serves the method CONNECT of HTTP (RFC 9110, section 9.3.6) until the listener is closed.
func (e *explicit) serveHTTP(l net.Listener, users Users) error {
	s := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { e.request(w, r, users) }),
		BaseContext:       func(net.Listener) context.Context { return e.apps.ctx },
		ReadHeaderTimeout: handshakeTimeout, IdleTimeout: handshakeTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(e.log.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(e.apps.ctx, func() { s.Close() })()
	err := s.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	_ = s.Shutdown(e.apps.ctx) // waits for the requests that have come
	return err
}

func (e *explicit) request(w http.ResponseWriter, r *http.Request, users Users) {
	e.apps.Add(1) // Shutdown does not wait for a connection that was hijacked
	defer e.apps.Done()
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		http.Error(w, "this proxy has the method CONNECT only: make the client tunnel", http.StatusMethodNotAllowed)
		return
	}
	if users != nil && !users.allowRequest(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="headgate relay"`)
		http.Error(w, "this proxy requires a user name and password", http.StatusProxyAuthRequired)
		return
	}
	host, text, err := net.SplitHostPort(r.URL.Host)
	port, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || host == "" || port == 0 {
		http.Error(w, "the destination is not a host and port", http.StatusBadRequest)
		return
	}
	client := remote(r.RemoteAddr)
	to, err := e.connect(r.Context(), client, host, uint16(port))
	if err != nil {
		e.refusedRequest(client, r.URL.Host, err)
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	c, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		e.log.Error("cannot carry connection", "from", client, "to", r.URL.Host, "error", err)
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(handshakeTimeout))
	_, _ = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n") // carry sees a broken connection
	_ = c.SetDeadline(time.Time{})
	if n := buffer.Reader.Buffered(); n > 0 { // the client has sent data with its request
		c = begun{c, io.MultiReader(io.LimitReader(buffer.Reader, int64(n)), c)}
	}
	to.carry(c)
}

// remote is a client's address, as net/http has it.
type remote string

func (r remote) Network() string { return "tcp" }
func (r remote) String() string  { return string(r) }

// allowRequest reports whether a request has a user's name and password (RFC 7617, in Proxy-Authorization).
func (u Users) allowRequest(r *http.Request) bool {
	given := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	name, password, ok := given.BasicAuth()
	return ok && u.allow(name, password)
}

// statusOf returns the status for an error (RFC 9110, sections 15.5.4, 15.6.3 and 15.6.5).
func statusOf(err error) int {
	switch refusalOf(err).cause {
	case notAllowed:
		return http.StatusForbidden
	case timedOut:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// begun is a connection of which a part was read.
type begun struct {
	net.Conn
	rest io.Reader
}

func (b begun) Read(p []byte) (int, error) { return b.rest.Read(p) }

// CloseWrite ends the direction to the application.
func (b begun) CloseWrite() error {
	closeWrite(b.Conn)
	return nil
}

// SetLinger is that of the connection.
func (b begun) SetLinger(sec int) error {
	if tcp, ok := b.Conn.(interface{ SetLinger(sec int) error }); ok {
		return tcp.SetLinger(sec)
	}
	return nil
}
