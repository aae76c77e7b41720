package host

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/relay"
)

// plainLog logs lines without time.
func plainLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// An outage is logged when it begins, once a minute, and when it ends; a stream that ends beside open ones is not.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		o := outage{log: plainLog(&log)}
		refused := errors.New("connection refused")
		a, b := o.opened(), o.opened()
		a()
		o.failed(refused)
		b()
		for range 13 { // 2 minutes
			o.failed(refused)
			time.Sleep(10 * time.Second)
		}
		o.opened()()
		o.failed(refused)
		want := `level=WARN msg="exit is unreachable on this path, trying again" error="connection refused"
level=WARN msg="exit is still unreachable on this path" for=1m0s tries=6 error="connection refused"
level=WARN msg="exit is still unreachable on this path" for=2m0s tries=6 error="connection refused"
level=INFO msg="exit is reachable again on this path" after=2m10s
level=WARN msg="exit is unreachable on this path, trying again" error="connection refused"
`
		if log.String() != want {
			t.Errorf("logged\n%swant\n%s", log.String(), want)
		}
	})
}

// Failures of peers are logged at once, and then once a minute with their number.
func TestSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var s summary
		for n := range 25 {
			s.add(plainLog(&log), "failed", &net.TCPAddr{IP: net.IPv4(192, 0, 2, byte(n%2)), Port: 1000 + n}, errors.New("another key"))
			time.Sleep(5 * time.Second)
		}
		want := `level=WARN msg=failed count=1 peers=[192.0.2.0] error="another key"
level=WARN msg=failed count=12 peers="[192.0.2.1 192.0.2.0]" error="another key"
level=WARN msg=failed count=12 peers="[192.0.2.1 192.0.2.0]" error="another key"
`
		if log.String() != want {
			t.Errorf("logged\n%swant\n%s", log.String(), want)
		}
	})
}

// An entry with another key than the exit's logs one line, and the exit too, whatever the number of streams and tries.
func TestOtherKeyIsLoggedOnce(t *testing.T) {
	var entry, exit safeBuffer
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &Acceptor{Auth: newKey(t, "a", true), Options: options, Log: plainLog(&exit)}
	go a.Serve(l)
	defer a.Close()
	defer l.Close()
	d := NewDialer(newKey(t, "b", true), relay.Exit{Address: netip.MustParseAddrPort(l.Addr().String()), Paths: []relay.Path{{Name: "only", Streams: 3}}}, options)
	d.Log = plainLog(&entry)
	done := make(chan struct{})
	ctx := t.Context()
	go func() { d.Run(ctx); close(done) }()
	t.Cleanup(func() { <-done })
	until(t, "six streams have failed", func() bool {
		a.refused.mu.Lock()
		defer a.refused.mu.Unlock()
		return a.refused.count >= 5
	})
	if text := entry.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="exit is unreachable on this path, trying again" exit=`+l.Addr().String()+" path=only error=") {
		t.Error(text)
	}
	if text := exit.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `msg="authentication of relay agents failed" count=1 peers=[127.0.0.1] error="shared key does not match`) {
		t.Error(text)
	}
}
