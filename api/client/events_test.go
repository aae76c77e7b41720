package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"headgate.dev/headgate/api/client"
)

// After a lost connection, the stream continues after the last event. A reset sets the position to
// the revision of the reset.
func TestEventsReconnect(t *testing.T) {
	answers := []string{
		"id: 5\nevent: hello\ndata: {}\n\nid: 6\nevent: change\ndata: {\"id\":\"a\",\"at\":\"2026-05-01T00:00:00Z\",\"by\":\"x\",\"what\":\"PUT /a\"}\n\nid: 7\nevent: quiet\ndata: {}\n\nid: 8\nevent: chan",
		"", // the service is unavailable
		"id: 3\nevent: reset\ndata: {}\n\n",
		"id: 4\nevent: change\ndata: {\"id\":\"b\",\"at\":\"2026-05-01T00:00:00Z\",\"by\":\"x\",\"what\":\"PUT /b\"}\n\n",
	}
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := len(asked)
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		if answers[n] == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, answers[n])
	}))
	defer s.Close()
	c, err := client.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	lost := 0
	if err := client.Events(ctx, c, 0, func(e client.Event) error {
		got = append(got, fmt.Sprint(e.Event, e.Revision))
		if e.Revision == 4 {
			cancel()
		}
		return nil
	}, func(error) { lost++ }); err != nil {
		t.Error(err)
	}
	if all := strings.Join(got, " "); all != "change6 reset3 change4" {
		t.Errorf("events are %s", all)
	}
	if all := strings.Join(asked, " "); all != " 7 7 3" {
		t.Errorf("Last-Event-ID headers are %q", all)
	}
	if lost != 2 { // once for two failures in a row
		t.Errorf("a lost connection was reported %d times", lost)
	}
}

// A client that cannot connect the first time gets an error without retries.
func TestEventsFirstConnectionFails(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	c, err := client.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := client.Events(t.Context(), c, 0, nil, nil); err == nil || !strings.Contains(err.Error(), "cannot watch events") {
			t.Errorf("refused: %v", err)
		}
		s.Close() // the second time the connection is refused
	}
}
