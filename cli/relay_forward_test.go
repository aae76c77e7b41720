package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/relay"
	"headgate.dev/headgate/relay/host"
)

// A port is forwarded to a destination over an exit, without a file.
func TestRelayForward(t *testing.T) {
	w := newWorld(t)
	key := strings.Repeat("k", 32)
	file := w.write("relay.key", key)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			io.Copy(c, c)
			c.Close()
		}
	}()
	var ports [2]string // of the exit and of the forwarding
	for n := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports[n] = l.Addr().String()
		l.Close()
	}
	auth, err := host.ReadAuth(relay.Policy{KeyFile: file})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		accept := relay.Accept{Listen: ports[0], Destinations: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		done <- host.Run(ctx, relay.Policy{Name: "exit", Accept: accept}, auth, slog.New(slog.DiscardHandler), func() { close(ready) })
	}()
	<-ready
	c := exec.CommandContext(t.Context(), os.Args[0], "relay", "forward", ports[1], server.Addr().String(), "--exit", ports[0], "--key-file", file, "--streams", "2")
	c.Env = append(os.Environ(), fakeEnv+"="+w.dir)
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.HasPrefix(line, "forwarding "+ports[1]+" to "+server.Addr().String()+" over "+ports[0]) {
		t.Fatalf("%q, %v", line, err)
	}
	app, err := net.Dial("tcp", ports[1])
	if err != nil {
		t.Fatal(err)
	}
	app.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(app, "hello")
	app.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(app); err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v", got, err)
	}
	app.Close()
	if err := errors.Join(c.Process.Signal(unix.SIGTERM), c.Wait()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The arguments are those of an agent's policy; wrong ones are usage errors.
func TestRelayForwardArguments(t *testing.T) {
	p, err := forwarding{exits: []string{"192.0.2.2:8424", "[2001:db8::2]:8424"}, streams: 3, encrypt: true}.policy(t.Context(), "8022", "localhost:22")
	if err != nil {
		t.Fatal(err)
	}
	e := p.Exits[0]
	if p.Name != "forward-8022" || p.Forwards[0].Listen != "127.0.0.1:8022" || !p.Forwards[0].To.Addr().IsLoopback() || p.ExitFor(p.Forwards[0].To.Addr()) != 0 || p.Plain ||
		e.Address.String() != "192.0.2.2:8424" || len(e.Paths) != 2 || e.Paths[1].Address.String() != "[2001:db8::2]:8424" || e.Paths[1].Streams != 3 {
		t.Errorf("%+v", p)
	}
	if p, err := (forwarding{exits: []string{"192.0.2.2:8424"}}).policy(t.Context(), "0.0.0.0:8022", "localhost:22"); err != nil || p.Name != "forward-0.0.0.0:8022" {
		t.Errorf("%+v, %v", p, err)
	}
	w := newWorld(t)
	key := w.write("relay.key", strings.Repeat("k", 32))
	for line, want := range map[string]string{
		"8022":                                   "missing argument",
		"8022 10.2.0.5:22 --key-file " + key:     "--exit or --key-file is missing",
		"8022 10.2.0.5:22 --exit 192.0.2.2:8424": "--exit or --key-file is missing",
		"0 10.2.0.5:22 --exit 192.0.2.2:8424 --key-file " + key:                  "not an address to listen on",
		"8022 10.2.0.5 --exit 192.0.2.2:8424 --key-file " + key:                  "\"10.2.0.5\" is not HOST:PORT",
		"8022 10.2.0.5:22 --exit 192.0.2.2 --key-file " + key:                    "--exit: \"192.0.2.2\" is not HOST:PORT",
		"8022 10.2.0.5:22 --streams 999 --exit 192.0.2.2:8424 --key-file " + key: "--streams 999 is out of range",
	} {
		if r := w.run(append([]string{"relay", "forward"}, strings.Fields(line)...)...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d, %s", line, r.code, r.err)
		}
	}
}

// Check notes a proxy that other hosts reach without authentication.
func TestCheckNotesOpenProxy(t *testing.T) {
	w := newWorld(t)
	const agent = "kind: Relay\nname: east\nkey: /etc/headgate/relay.key\nexits: [{address: \"192.0.2.1:8424\", destinations: [10.2.0.0/16]}]\n"
	for text, noted := range map[string]bool{"socks: {listen: \"0.0.0.0:1080\"}\n": true, "socks: {listen: \"1080\"}\n": false} {
		if r := w.must("check", "-f", w.write("relay.yaml", agent+text)); strings.Contains(r.err, "relay.yaml:5: socks.listen: note: 0.0.0.0:1080 is an open proxy") != noted {
			t.Errorf("%s: %s", text, r.err)
		}
	}
}
