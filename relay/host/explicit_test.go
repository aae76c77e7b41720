package host

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/proxy"

	"headgate.dev/headgate/relay"
)

// proxied is an entry with proxies and an exit. Of the loopback's addresses the exit connects to 127.0.0.0/24 and ::1;
// the entry takes it for the exit of 127.0.2.0/24, too. 127.0.3.0/24 has an exit that does not run, and the others
// have none.
type proxied struct {
	t           *testing.T
	dialer      *Dialer
	socks, http string
}

func newProxied(t *testing.T, usersFile string) *proxied {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	prefixes := func(all ...string) (out []netip.Prefix) {
		for _, one := range all {
			out = append(out, netip.MustParsePrefix(one))
		}
		return out
	}
	a := &Acceptor{Auth: newKey(t, "k", false), Options: options, Accept: relay.Accept{Destinations: prefixes("127.0.0.0/24", "::1/128"), KeepSource: true}, Log: quiet}
	go a.Serve(l)
	paths := []relay.Path{{Name: "any", Streams: 2}}
	p := relay.Policy{
		Exits: []relay.Exit{
			{Address: netip.MustParseAddrPort(l.Addr().String()), Destinations: prefixes("127.0.0.0/24", "::1/128", "127.0.2.0/24"), Paths: paths},
			{Address: netip.MustParseAddrPort(closedPort(t)), Destinations: prefixes("127.0.3.0/24"), Paths: paths},
		},
		Socks:     relay.Proxy{Listen: "127.0.0.1:0", UsersFile: usersFile},
		HTTPProxy: relay.Proxy{Listen: "127.0.0.1:0", UsersFile: usersFile},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var dialers []carrier
	for _, e := range p.Exits {
		d := NewDialer(newKey(t, "k", false), e, options)
		d.Log = quiet
		dialers = append(dialers, d)
		done := make(chan struct{})
		go func() { d.Run(ctx); close(done) }()
		t.Cleanup(func() { <-done })
	}
	listeners, err := listenExplicit(&applications{ctx: ctx}, &sockets{}, p, dialers, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range listeners {
		go one.serve()
	}
	t.Cleanup(func() {
		cancel()
		l.Close()
		a.Close()
		for _, one := range listeners {
			one.Close()
		}
	})
	until(t, "the streams are open", func() bool { return dialers[0].Streams() == 2 })
	return &proxied{t, dialers[0].(*Dialer), listeners[0].Addr().String(), listeners[1].Addr().String()}
}

// carried returns how many connections the relay carries.
func (p *proxied) carried() int {
	p.dialer.mu.Lock()
	l := p.dialer.now.link
	p.dialer.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session.Conns()
}

// echoAt is echo at another address.
func echoAt(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Skipf("this machine has no %s: %v", address, err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// overSocks connects to a destination by SOCKS5.
func (p *proxied) overSocks(to string, auth *proxy.Auth) (net.Conn, error) {
	d, err := proxy.SOCKS5("tcp", p.socks, auth, proxy.Direct)
	if err != nil {
		p.t.Fatal(err)
	}
	return d.Dial("tcp", to)
}

// overHTTP connects to a destination by HTTP CONNECT. The error is the response's status.
func (p *proxied) overHTTP(to string, header http.Header) (net.Conn, error) {
	c, err := net.Dial("tcp", p.http)
	if err != nil {
		p.t.Fatal(err)
	}
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: to}, Host: to, Header: header}
	if err := r.Write(c); err != nil {
		return nil, err
	}
	in := bufio.NewReader(c)
	response, err := http.ReadResponse(in, r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		c.Close()
		return nil, errors.New(response.Status)
	}
	if in.Buffered() > 0 {
		p.t.Error("bytes follow the response")
	}
	return c, nil
}

// checkEcho checks that bytes go to the server and back, and that half-closing works.
func checkEcho(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	text := bytes.Repeat([]byte("text"), 50_000)
	go func() {
		c.Write(text)
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	}()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, text) {
		t.Errorf("other bytes, or %v", err)
	}
	if _, ok := c.(*net.TCPConn); ok {
		if n, err := c.Read(got); err != io.EOF {
			t.Errorf("after the end: %d bytes, %v", n, err)
		}
	}
}

// Both proxies connect to addresses and names, over the relay where the destination has an exit and direct where it
// has none or a dead one, and reply why a connection fails.
func TestExplicit(t *testing.T) {
	p := newProxied(t, "")
	at := func(address string) func(*testing.T) string {
		return func(t *testing.T) string { return echoAt(t, address) }
	}
	name := func(t *testing.T) string {
		_, port, _ := net.SplitHostPort(echoAt(t, "127.0.0.1"))
		return net.JoinHostPort("localhost", port) // whose ::1 refuses
	}
	closed := func(address string) func(*testing.T) string {
		return func(t *testing.T) string {
			_, port, _ := net.SplitHostPort(closedPort(t))
			return net.JoinHostPort(address, port)
		}
	}
	for _, c := range []struct {
		name        string
		to          func(t *testing.T) string
		carried     int
		socks, http string // what an error has
	}{
		{"IPv4", at("127.0.0.1"), 1, "", ""},
		{"IPv6", at("::1"), 1, "", ""},
		{"a name", name, 1, "", ""},
		{"no exit", at("127.0.1.1"), 0, "", ""},
		{"a dead exit", at("127.0.3.1"), 0, "", ""},
		{"refused at the exit", closed("127.0.0.1"), 0, "connection refused", "502 Bad Gateway"},
		{"refused direct", closed("127.0.1.1"), 0, "connection refused", "502 Bad Gateway"},
		{"not allowed by the exit", closed("127.0.2.1"), 0, "not allowed", "403 Forbidden"},
		{"no such name", func(*testing.T) string { return "name.invalid:80" }, 0, "host unreachable", "502 Bad Gateway"},
		{"an invalid name", func(*testing.T) string { return "a..b:80" }, 0, "host unreachable", "502 Bad Gateway"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, way := range []struct {
				name    string
				connect func(to string) (net.Conn, error)
				err     string
			}{
				{"SOCKS", func(to string) (net.Conn, error) { return p.overSocks(to, nil) }, c.socks},
				{"HTTP", func(to string) (net.Conn, error) { return p.overHTTP(to, nil) }, c.http},
			} {
				app, err := way.connect(c.to(t))
				if way.err != "" {
					if err == nil || !strings.Contains(err.Error(), way.err) {
						t.Errorf("%s: %v, want %s", way.name, err, way.err)
					}
				} else if err != nil {
					t.Errorf("%s: %v", way.name, err)
				} else {
					if got := p.carried(); got != c.carried {
						t.Errorf("%s: %d connections are carried, want %d", way.name, got, c.carried)
					}
					checkEcho(t, app)
				}
				if app != nil {
					app.Close()
				}
				until(t, "no connection is left", func() bool { return p.carried() == 0 })
			}
		})
	}
}

// A client of net/http works through both proxies.
func TestExplicitHTTPClient(t *testing.T) {
	p := newProxied(t, "")
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
	defer s.Close()
	for _, by := range []string{"socks5h://" + p.socks, "http://" + p.http} {
		u, err := url.Parse(by)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{Proxy: http.ProxyURL(u), TLSClientConfig: &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
		client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
		r, err := client.Get(s.URL)
		if err != nil {
			t.Errorf("%s: %v", by, err)
			continue
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		transport.CloseIdleConnections()
		if err != nil || string(text) != "hello" {
			t.Errorf("%s: %q, %v", by, text, err)
		}
	}
}

// Curl works through both proxies, and sees which connection is refused.
func TestExplicitCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	p := newProxied(t, "")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for _, c := range []struct {
		proxy   []string
		refused string
	}{{[]string{"--socks5-hostname", p.socks}, "(5)"}, {[]string{"--proxytunnel", "--proxy", "http://" + p.http}, "502"}} {
		run := func(to string) (string, error) {
			args := append([]string{"--silent", "--show-error", "--max-time", "10", "--noproxy", "", to}, c.proxy...)
			out, err := exec.CommandContext(t.Context(), "curl", args...).CombinedOutput()
			return string(out), err
		}
		if out, err := run("http://localhost:" + port + "/"); err != nil || out != "hello" {
			t.Errorf("%v: %q, %v", c.proxy, out, err)
		}
		if out, err := run("http://" + closedPort(t) + "/"); err == nil || !strings.Contains(out, c.refused) {
			t.Errorf("%v to a closed port: %q, %v", c.proxy, out, err)
		}
	}
}

// Data that a client sends with its request, before the reply, is not lost.
func TestExplicitEarlyData(t *testing.T) {
	p := newProxied(t, "")
	to := netip.MustParseAddrPort(echoAt(t, "127.0.0.1"))
	four := to.Addr().As4()
	request := append([]byte{5, 1, 0, 5, 1, 0, 1}, four[:]...)
	request = append(request, byte(to.Port()>>8), byte(to.Port()))
	for _, c := range []struct{ at, request, reply string }{
		{p.socks, string(request), "\x05\x00" + string(socksReply(replySucceeded))},
		{p.http, "CONNECT " + to.String() + " HTTP/1.1\r\nHost: " + to.String() + "\r\n\r\n", "HTTP/1.1 200 Connection established\r\n\r\n"},
	} {
		app, err := net.Dial("tcp", c.at)
		if err != nil {
			t.Fatal(err)
		}
		app.SetDeadline(time.Now().Add(5 * time.Second))
		io.WriteString(app, c.request+"early")
		got := make([]byte, len(c.reply)+len("early"))
		if _, err := io.ReadFull(app, got); err != nil || string(got) != c.reply+"early" {
			t.Errorf("read %q, %v", got, err)
		}
		io.WriteString(app, "late")
		app.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(app); err != nil || string(got) != "late" {
			t.Errorf("read %q, %v", got, err)
		}
		app.Close()
	}
}

// A malformed request gets an error as reply, if SOCKS or HTTP have one for it, and its connection ends.
func TestExplicitMalformed(t *testing.T) {
	p := newProxied(t, "")
	reply := func(code byte) string { return "\x05\x00" + string(socksReply(code)) }
	for _, c := range []struct{ name, at, request, reply string }{
		{"version 4", p.socks, "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", ""},
		{"no methods", p.socks, "\x05\x00", "\x05\xff"},
		{"methods without none", p.socks, "\x05\x02\x01\x02", "\x05\xff"},
		{"another version in the request", p.socks, "\x05\x01\x00\x04\x01\x00\x01\x7f\x00\x00\x01\x00\x50", reply(replyFailure)},
		{"a reserved byte", p.socks, "\x05\x01\x00\x05\x01\x01\x01\x7f\x00\x00\x01\x00\x50", reply(replyFailure)},
		{"BIND", p.socks, "\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", reply(replyCommand)},
		{"UDP ASSOCIATE", p.socks, "\x05\x01\x00\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", reply(replyCommand)},
		{"an address type", p.socks, "\x05\x01\x00\x05\x01\x00\x02\x7f\x00\x00\x01\x00\x50", reply(replyAddressType)},
		{"an empty name", p.socks, "\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", reply(replyFailure)},
		{"port 0", p.socks, "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x00", reply(replyFailure)},
		{"a short request", p.socks, "\x05\x01\x00\x05\x01\x00\x01\x7f", "\x05\x00"},
		{"GET", p.http, "GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 405 "},
		{"no port", p.http, "CONNECT 127.0.0.1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 400 "},
		{"an HTTP port 0", p.http, "CONNECT 127.0.0.1:0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 400 "},
		{"a port that is none", p.http, "CONNECT 127.0.0.1:99999 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 400 "},
		{"an empty host", p.http, "CONNECT :80 HTTP/1.1\r\nHost: :80\r\n\r\n", "HTTP/1.1 400 "},
		{"a path", p.http, "CONNECT / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP/1.1 400 "},
		{"not HTTP", p.http, "\x05\x01\x00\r\n\r\n", "HTTP/1.1 400 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			app, err := net.Dial("tcp", c.at)
			if err != nil {
				t.Fatal(err)
			}
			defer app.Close()
			app.SetDeadline(time.Now().Add(5 * time.Second))
			io.WriteString(app, c.request)
			app.(*net.TCPConn).CloseWrite()
			got, err := io.ReadAll(app)
			if c.at == p.http && strings.HasPrefix(string(got), c.reply) {
				return
			}
			if err != nil || string(got) != c.reply {
				t.Errorf("read %q, %v, want %q", got, err, c.reply)
			}
		})
	}
}

// A proxy with users requires a user's password.
func TestExplicitUsers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("# users\n\nanne:se:cret\r\nbob:x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProxied(t, file)
	to := echoAt(t, "127.0.0.1")
	for _, c := range []struct {
		name, password string
		ok             bool
	}{{"anne", "se:cret", true}, {"bob", "x", true}, {"bob", "se:cret", false}, {"carl", "", false}, {"", "", false}} {
		var auth *proxy.Auth
		header := http.Header{}
		if c.name != "" {
			auth = &proxy.Auth{User: c.name, Password: c.password}
			r := http.Request{Header: http.Header{}}
			r.SetBasicAuth(c.name, c.password)
			header["Proxy-Authorization"] = r.Header["Authorization"]
		}
		app, err := p.overSocks(to, auth)
		if (err == nil) != c.ok {
			t.Errorf("SOCKS with %q: %v", c.name, err)
		}
		if err == nil {
			checkEcho(t, app)
			app.Close()
		}
		app, err = p.overHTTP(to, header)
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "407") {
			t.Errorf("HTTP with %q: %v", c.name, err)
		}
		if err == nil {
			checkEcho(t, app)
			app.Close()
		}
	}
	for text, want := range map[string]string{
		"":              "has no user",
		"anne":          ":1: not a name",
		"# a\n:x":       ":2: not a name",
		"anne:":         ":1: not a name",
		"a:1\na:2":      ":2: \"a\" has a password already",
		"a:x\n\nb: \nc": ":4: not a name",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadUsers(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadUsers(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may read: %v", err)
	}
}

// The end of an agent ends its connections, direct ones included.
func TestExplicitEnd(t *testing.T) {
	socks := closedPort(t)
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- Run(ctx, relay.Policy{Socks: relay.Proxy{Listen: socks}, HTTPProxy: relay.Proxy{Listen: "127.0.0.1:0"}}, newKey(t, "k", true), slog.New(slog.DiscardHandler), func() { close(ready) })
	}()
	<-ready
	app, err := (&proxied{t: t, socks: socks}).overSocks(echoAt(t, "127.0.0.1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	half, err := net.Dial("tcp", socks) // a client that sends nothing
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(app, "hello")
	if _, err := io.ReadFull(app, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, c := range []net.Conn{app, half} {
		c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after the end of the agent: %v", err)
		}
	}
}

// What a client of SOCKS sends gives a destination, or a reply that is well-formed.
func FuzzSocks(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"), false)
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x04name\x00\x50"), false)
	f.Add([]byte("\x05\x02\x00\x02\x01\x04anne\x06secret\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\xbb"), true)
	f.Add([]byte("\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50"), false)
	f.Fuzz(func(t *testing.T, in []byte, auth bool) {
		var users Users
		if auth {
			users = Users{"anne": "secret"}
		}
		var out bytes.Buffer
		host, port, err := readSocks(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(in), &out}, users)
		if (err == nil) != (host != "" && port != 0) || len(host) > 255 {
			t.Errorf("host %q, port %d, %v", host, port, err)
		}
		got := out.Bytes()
		if err == nil && (len(got) < 2 || got[0] != socksVersion || auth != bytes.Contains(got, []byte{passwordVersion, 0})) {
			t.Errorf("a request after %x", got)
		}
		if len(got) > 2+2+10 || len(got) > 0 && got[0] != socksVersion {
			t.Errorf("the answers are %x", got)
		}
	})
}
