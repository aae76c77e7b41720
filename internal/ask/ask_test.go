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
)

// echo answers with what it was asked, and by whom.
type echo struct {
	Failure
	Text string `json:"text,omitempty"`
	User uint32 `json:"user"`
	FD   bool   `json:"fd"`
}

func answer(q Question) any {
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

func TestAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "s")
	var out echo
	if err := Call(path, 1, &out); !errors.Is(err, ErrNobody) {
		t.Errorf("with nobody to ask: %v", err)
	}
	s := serve(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("its folder is %v, %v", info, err)
	}
	if err := Call(path, "x", &out, 0); err != nil || out.Text != `"x"` || !out.FD || out.User != uint32(os.Getuid()) {
		t.Errorf("the answer is %+v, %v", out, err)
	}
	out = echo{}
	if err := Call(path, "x", &out); err != nil || out.FD {
		t.Errorf("without a descriptor: %+v, %v", out, err)
	}
	out = echo{}
	if err := Call(path, "x", &out, 0, 0); err != nil || out.Err() == nil || !strings.Contains(out.Error, "more than one descriptor") {
		t.Errorf("with two: %+v, %v", out, err)
	}
	out = echo{}
	if err := Call(path, strings.Repeat("x", 10_000), &out); err == nil && len(out.Text) > most {
		t.Errorf("%d bytes were read", len(out.Text))
	}
	// Who says nothing keeps nobody for long, and nobody else from it.
	silent, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	began := time.Now()
	if err := Call(path, "x", &out); err != nil || time.Since(began) > Patience/2 {
		t.Errorf("beside one who is silent: %v after %v", err, time.Since(began))
	}
	if err := silent.SetReadDeadline(time.Now().Add(3 * Patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := silent.Read(make([]byte, 1000)); err != nil || n == 0 || time.Since(began) < Patience/2 {
		t.Errorf("who is silent hears %d bytes, %v, after %v", n, err, time.Since(began))
	}
	if _, err := Serve(path, answer); !errors.Is(err, ErrTaken) {
		t.Errorf("a second at the socket: %v", err)
	}
	s.Close()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end the socket is there: %v", err)
	}
}

// Of those who begin at the same time, one has the socket: also where a killed one left it.
func TestOneOfMany(t *testing.T) {
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
			} else if !errors.Is(err, ErrTaken) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	var out echo
	if err := Call(path, "x", &out); err != nil || len(have) != 1 {
		t.Errorf("%d have it, and asked it says %v", len(have), err)
	}
	for _, s := range have {
		s.Close()
	}
}

// What is no socket is somebody's, and stays.
func TestNoSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Serve(path, answer); err == nil || !strings.Contains(err.Error(), "is no socket") {
		s.Close()
		t.Errorf("in place of a file: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "x" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// One user does not keep the others from asking.
func TestMostOfUser(t *testing.T) {
	s := &Server{asking: map[uint32]int{}}
	var leave func()
	for n := range mostOfUser + 1 {
		l, ok := s.enter(1001)
		if ok != (n < mostOfUser) {
			t.Errorf("%d of a user: %v", n+1, ok)
		}
		if ok {
			leave = l
		}
	}
	if _, ok := s.enter(1002); !ok {
		t.Error("another is kept from it")
	}
	for range 2 * mostOfUser {
		if _, ok := s.enter(0); !ok {
			t.Error("root is kept from it")
		}
	}
	leave()
	if _, ok := s.enter(1001); !ok {
		t.Error("one who leaves makes no room")
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
