package controller_test

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/controller"
	"headgate.dev/headgate/store/storetest"
)

// A live stream requests a path again only after a change, and then within a second.
func TestLiveIsPushed(t *testing.T) {
	t.Parallel()
	metrics, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := startOn(t, storetest.Open(t, storetest.Start(t)), controller.Config{Name: "c1", API: "127.0.0.1:0", Agents: "127.0.0.1:0", Version: "test", Metrics: metrics}, func() {})
	requests := func() int {
		t.Helper()
		r, err := http.Get("http://" + metrics.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, m := range regexp.MustCompile(`(?m)^headgate_controller_request_duration_seconds_count\{.*operation="listTenants".*\} (\d+)$`).FindAllSubmatch(text, -1) {
			n, _ := strconv.Atoi(string(m[1]))
			total += n
		}
		return total
	}
	_, told := s.look(s.operator, "/v1/tenants")
	shown := onScreen{}
	shown.until(t, told, "/v1/tenants", func(n seenNow) bool { return n.Status == 200 })
	first := requests()
	if first == 0 {
		t.Fatal("the metrics have no requests for the path")
	}
	// The controller reads the store when it starts, which are changes, too.
	for end := time.Now().Add(20 * time.Second); ; {
		time.Sleep(2 * time.Second)
		n := requests()
		if n == first {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("without a change the path was requested %d times in 2 s, want 0", n-first)
		}
		first = n
	}
	began := time.Now()
	s.must(200, "PUT", "/v1/tenants/a", `{}`)
	shown.until(t, told, "/v1/tenants", func(n seenNow) bool { return strings.Contains(string(n.Data), `"a"`) })
	if took := time.Since(began); took > time.Second && !testing.Short() {
		t.Errorf("a change was shown after %v", took)
	}
	if n := requests() - first; n > 2 {
		t.Errorf("the path was requested %d times for one change", n)
	}
}

// A live stream of one controller shows what agents report to another, without waiting for the next poll.
func TestLiveOfAnotherController(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.twoTenants()
	other := s.beside(t)
	const path, hosts = "/v1/hosts/h1", "/v1/hosts"
	_, told := other.look(s.operator, path, hosts)
	shown := onScreen{}
	is := func(connected string) func(n seenNow) bool {
		return func(n seenNow) bool { return strings.Contains(string(n.Data), `"connected":`+connected) }
	}
	shown.until(t, told, path, is("false"))
	time.Sleep(2500 * time.Millisecond) // the stream between the controllers is open; the next poll comes 5 s after the first
	began := time.Now()
	h := s.connect(t.TempDir())
	shown.until(t, told, path, is("true"))
	shown.until(t, told, hosts, is("true"))
	h.Stop()
	shown.until(t, told, path, is("false"))
	shown.until(t, told, hosts, is("false"))
	if took := time.Since(began); took > 4*time.Second && !testing.Short() { // short tests run under the race detector, at low priority
		t.Errorf("an agent that connected and disconnected was shown after %v", took)
	}
}
