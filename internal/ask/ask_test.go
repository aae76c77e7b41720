package ask

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// echo is a response with the content and the user of the request.
type echo struct {
	ErrorResponse
	Text string `json:"text,omitempty"`
	User uint32 `json:"user"`
	FD   bool   `json:"fd"`
}

func answer(q Request) any {
	return echo{Text: string(q.Text), User: q.User, FD: q.FD >= 0}
}

func serve(t *testing.T, path string) *Server {
	t.Helper()
	s, err := Serve(path, answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestServe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "s")
	var out echo
	if err := Call(path, 1, &out); !errors.Is(err, ErrNotListening) {
		t.Errorf("without a server: %v", err)
	}
	s := serve(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("the socket has the mode %v, %v, want 0666", info, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("its directory has the mode %v, %v, want 0755", info, err)
	}
	if err := Call(path, "x", &out, 0); err != nil || out.Text != `"x"` || !out.FD || out.User != uint32(os.Getuid()) {
		t.Errorf("the response is %+v, %v", out, err)
	}
	out = echo{}
	if err := Call(path, "x", &out); err != nil || out.FD {
		t.Errorf("without a descriptor: %+v, %v", out, err)
	}
	out = echo{}
	if err := Call(path, "x", &out, 0, 0); err != nil || out.Err() == nil || !strings.Contains(out.Error, "more than one file descriptor") {
		t.Errorf("with two descriptors: %+v, %v", out, err)
	}
	out = echo{}
	if err := Call(path, strings.Repeat("x", 10_000), &out); err == nil && len(out.Text) > maxRequestSize {
		t.Errorf("%d bytes were read", len(out.Text))
	}
	// A client that sends nothing does not block other clients, and times out.
	silent, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	began := time.Now()
	if err := Call(path, "x", &out); err != nil || time.Since(began) > Timeout/2 {
		t.Errorf("next to a silent client: %v after %v", err, time.Since(began))
	}
	if err := silent.SetReadDeadline(time.Now().Add(3 * Timeout)); err != nil {
		t.Fatal(err)
	}
	if n, err := silent.Read(make([]byte, 1000)); err != nil || n == 0 || time.Since(began) < Timeout/2 {
		t.Errorf("the silent client receives %d bytes, %v, after %v", n, err, time.Since(began))
	}
	if _, err := Serve(path, answer); !errors.Is(err, ErrInUse) {
		t.Errorf("a second server: %v", err)
	}
	s.Close()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket exists after Close: %v", err)
	}
}

// Of several servers that start at the same time, exactly one gets the socket, also if a killed
// server left a socket file.
func TestConcurrentServers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	killed, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	killed.SetUnlinkOnClose(false)
	killed.Close()
	var wait sync.WaitGroup
	var mu sync.Mutex
	var have []*Server
	for range 20 {
		wait.Go(func() {
			s, err := Serve(path, answer)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				have = append(have, s)
			} else if !errors.Is(err, ErrInUse) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	var out echo
	if err := Call(path, "x", &out); err != nil || len(have) != 1 {
		t.Errorf("%d servers got the socket, and a request returns %v", len(have), err)
	}
	for _, s := range have {
		s.Close()
	}
}

// A file that is not a socket is not removed.
func TestNoSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Serve(path, answer); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		s.Close()
		t.Errorf("replacing a file: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "x" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// One user cannot block the requests of others, and all users together not those of root.
func TestUserRequestLimit(t *testing.T) {
	s := &Server{activeRequests: map[uint32]int{}}
	var leave func()
	for n := range maxConcurrentPerUser + 1 {
		l, err := s.acquire(1001)
		if (err == nil) != (n < maxConcurrentPerUser) {
			t.Errorf("%d requests of a user: %v", n+1, err)
		}
		if err == nil {
			leave = l
		}
	}
	for user := range uint32(maxConcurrent/maxConcurrentPerUser - 1) {
		for range maxConcurrentPerUser {
			if _, err := s.acquire(1002 + user); err != nil {
				t.Errorf("another user is rejected: %v", err)
			}
		}
	}
	if _, err := s.acquire(2000); err == nil {
		t.Errorf("more than %d requests of users", maxConcurrent)
	}
	for range maxConcurrentRoot {
		if _, err := s.acquire(0); err != nil {
			t.Errorf("root is rejected: %v", err)
		}
	}
	leave()
	if _, err := s.acquire(2000); err != nil {
		t.Errorf("a finished request still counts: %v", err)
	}
}

// A descriptor whose close waits for data that cannot leave makes nobody wait, however many there are.
func TestLingeringDescriptors(t *testing.T) {
	s, err := Serve(filepath.Join(t.TempDir(), "s"), answer)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began := time.Now()
	for range maxClosing + 8 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		d, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close() // resets what waits
		if err := errors.Join(c.(*net.TCPConn).SetWriteBuffer(4096), d.(*net.TCPConn).SetReadBuffer(4096)); err != nil {
			t.Fatal(err)
		}
		c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		for { // until nothing fits any more
			if _, err := c.Write(make([]byte, 1<<16)); err != nil {
				break
			}
		}
		f, err := c.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 20}); err != nil {
			t.Fatal(err)
		}
		c.Close()
		s.closeLater(fd)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("closing took %v", took)
	}
}

func TestUser(t *testing.T) {
	for name, want := range map[string]uint32{"root": 0, "1001": 1001, "4294967295": 1<<32 - 1} {
		if got, err := User(name); err != nil || got != want {
			t.Errorf("%s: %d %v, want %d", name, got, err, want)
		}
	}
	for _, name := range []string{"no such user", "4294967296"} {
		if got, err := User(name); err == nil {
			t.Errorf("%s: %d", name, got)
		}
	}
}
