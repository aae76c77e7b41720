package controller_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// wire is a TCP proxy between a controller and its store. While cut is set it passes no data and keeps
// the connections open.
type wire struct {
	at  string
	mu  sync.Mutex
	cut bool
}

func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &wire{at: l.Addr().String()}
	pass := func(from, to net.Conn) {
		defer from.Close()
		defer to.Close()
		for b := make([]byte, 64<<10); ; {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			for {
				w.mu.Lock()
				cut := w.cut
				w.mu.Unlock()
				if !cut {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil {
				a.Close()
				continue
			}
			go pass(a, b)
			go pass(b, a)
		}
	}()
	return w
}

// said collects an agent's log.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) has(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), what)
}

// A controller that is disconnected from the store rejects agents with that reason, also before it
// has read anything, and its connected agents move to another controller. Agents learn the addresses
// of all controllers from each of them.
func TestCutOff(t *testing.T) {
	m := storetest.Start(t)
	direct := storetest.Open(t, m)
	tls, err := m.TLS()
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, fmt.Sprintf("127.0.0.1:%d", m.ClientPort))
	far, err := store.Open(t.Context(), store.Endpoint{URLs: []string{"https://" + w.at}, TLS: tls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	ports := storetest.Ports(t, 2)
	at := []string{fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])}
	run := func(s *store.Store, n int, agentsAt []string) *service {
		t.Helper()
		return startOn(t, s, controller.Config{Name: fmt.Sprint("c", n+1), API: "127.0.0.1:0", Agents: at[n], AgentAddresses: agentsAt, Version: "test"}, func() { w.set(n == 0) })
	}
	second := run(direct, 1, at[1:])
	second.must(200, "PUT", "/v1/hosts/h1", `{}`)
	dir := t.TempDir()
	token := second.token(`{"name": "join", "role": "agent", "host": "h1"}`)
	if err := remote.Join(t.Context(), dir, remote.Controller{URL: second.url, Host: "h1", Token: token, Pin: second.pin}); err != nil {
		t.Fatal(err)
	}
	// The agent knows only the first controller.
	tell := func(at []string) {
		t.Helper()
		id, err := remote.ReadIdentity(dir)
		if err != nil {
			t.Fatal(err)
		}
		id.Agents = at
		text, err := json.Marshal(id)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "identity.json"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tell(at[:1])
	run(far, 0, at) // disconnected before its first read
	var log said
	defer func() {
		if t.Failed() {
			io.Copy(os.Stderr, &log.text)
		}
	}()
	h := second.connect(dir, func(h *host) { h.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	within := func(what string, d time.Duration, so func() bool) {
		t.Helper()
		for deadline := time.Now().Add(d); !so(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not within %v: %s", d, what)
			}
		}
	}
	within("the agent is rejected", 10*time.Second, func() bool { return log.has("disconnected from the store") })
	if log.has("was removed or revoked") {
		t.Error("the agent is rejected as a removed host")
	}
	w.set(false)
	within("the agent is accepted after the store is back, and learns both addresses", 20*time.Second, func() bool {
		id, err := remote.ReadIdentity(dir)
		return err == nil && slices.Equal(id.Agents, at)
	})
	connected := func() bool {
		return strings.Contains(second.must(200, "GET", "/v1/hosts/h1", "").text, `"connected":true`)
	}
	if connected() {
		t.Fatal("the agent is connected to the second controller")
	}
	w.set(true)
	within("the agent moves to the second controller when the first is disconnected from the store", 12*time.Second, connected)
	second.must(200, "PUT", "/v1/hosts/h1/interfaces/eth0", `{"out": {"limit": "1Mbit", "groups": [{"name": "all", "default": true}]}}`)
	h.Wait(t)
	w.set(false)
}
