package controller_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// listen opens an event stream. events receives the events' names and is closed at the end of the
// stream.
func (s *service) listen(token, query string) (status int, events <-chan string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+"/v1/events"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := (&http.Client{Transport: s.client.Transport}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { got.Body.Close() })
	out := make(chan string, 100)
	go func() {
		defer close(out)
		lines := bufio.NewScanner(got.Body)
		for lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				out <- name
			}
		}
	}()
	return got.StatusCode, out
}

// next returns the name of the next event, "" at the end of the stream or after 5 s without one.
func next(events <-chan string) string {
	select {
	case e := <-events:
		return e
	case <-time.After(5 * time.Second):
		return ""
	}
}

// ended waits for the end of a stream.
func ended(events <-chan string, within time.Duration) error {
	late := time.After(within)
	for {
		select {
		case _, more := <-events:
			if !more {
				return nil
			}
		case <-late:
			return fmt.Errorf("the stream is open after %v", within)
		}
	}
}

// An event stream ends when its token is deleted, and the number of streams of a tenant is limited.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.twoTenants()
	var made struct{ ID, Token string }
	s.mustAs(a, 201, "POST", "/v1/tokens", `{"name": "child", "role": "viewer"}`).into(t, &made)
	_, back := s.listen(made.Token, "")
	_, stays := s.listen(a, "")
	for _, events := range []<-chan string{back, stays} {
		if e := next(events); e != "hello" {
			t.Fatalf("the first event is %q", e)
		}
	}
	s.mustAs(a, 204, "DELETE", "/v1/tokens/"+made.ID, "")
	for n := range 101 {
		status, _ := s.listen(b, "")
		if want := map[bool]int{true: 200, false: 429}[n < 100]; status != want {
			t.Fatalf("stream %d of one tenant: %d", n+1, status)
		}
	}
	if status, _ := s.listen(s.operator, ""); status != 200 {
		t.Errorf("a stream of the operator: %d", status)
	}
	if err := ended(back, 11*time.Second); err != nil {
		t.Errorf("the stream of a deleted token: %v", err)
	}
	s.mustAs(a, 200, "PUT", group("a/rest"), `{"default": true}`)
	changes := 0
	for e := next(stays); e != "" && changes < 2; e = next(stays) {
		if e == "change" { // the deletion of the token, and the group
			changes++
		}
	}
	if changes < 2 {
		t.Errorf("the stream of a valid token has %d changes", changes)
	}
}

// A watch from a revision that the store has not reached begins with a reset event.
func TestStreamOfAnotherStore(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, events := s.listen(s.operator, "?after=1000000000")
	if first, second := next(events), next(events); first != "hello" || second != "reset" {
		t.Errorf("the events are %q and %q", first, second)
	}
}
