package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	api "headgate.dev/headgate/api/client"
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
	client, err := api.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	a := &app{err: io.Discard}
	if err := a.events(ctx, client, 0, func(e event) error {
		got = append(got, fmt.Sprint(e.Event, e.Revision))
		if e.Revision == 4 {
			cancel()
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if all := strings.Join(got, " "); all != "change6 reset3 change4" {
		t.Errorf("events are %s", all)
	}
	if all := strings.Join(asked, " "); all != " 7 7 3" {
		t.Errorf("Last-Event-ID headers are %q", all)
	}
}

// A client that cannot connect the first time gets an error without retries.
func TestEventsFirstConnectionFails(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	client, err := api.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{err: io.Discard}
	for range 2 {
		if err := a.events(t.Context(), client, 0, nil); err == nil || !strings.Contains(err.Error(), "cannot watch events") {
			t.Errorf("refused: %v", err)
		}
		s.Close() // the second time the connection is refused
	}
}
