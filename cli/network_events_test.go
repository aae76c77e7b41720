package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric"
)

// Each kind of events is in the table of docs/fabric.md, and no other.
func TestEventKinds(t *testing.T) {
	_, section, _ := strings.Cut(networkPage(t), "\n| kind | when |\n")
	section, _, _ = strings.Cut(section, "\n\n")
	written := map[string]bool{}
	for line := range strings.Lines(section) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(first, -1) {
			written[m[1]] = true
		}
	}
	var kinds []string
	for _, kind := range fabric.EventKinds {
		kinds = append(kinds, string(kind))
	}
	slices.Sort(kinds)
	if got := slices.Sorted(maps.Keys(written)); !slices.Equal(got, kinds) {
		t.Errorf("the kinds in the document are\n%q, want\n%q", got, kinds)
	}
}

// eventServer is a service that has events.
type eventServer struct {
	mu     sync.Mutex
	events []api.NetworkEvent
	asked  []string // the queries
	broken bool
}

func (s *eventServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.RawQuery)
	if s.broken {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	since, _ := time.Parse(time.RFC3339Nano, r.URL.Query().Get("since"))
	out := api.NetworkEventList{Items: []api.NetworkEvent{}}
	for _, e := range s.events {
		if last := e.At; !last.Before(since) || e.Last != nil && !e.Last.Before(since) {
			out.Items = append(out.Items, e)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func (s *eventServer) add(at time.Time, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, api.NetworkEvent{At: at, Kind: "link-added", Message: message})
}

// change does something with the service.
func (s *eventServer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// With --follow each event is printed once, from now on or from --since on, also if the service does not answer for a while, and if one
// happens again.
func TestFollowEvents(t *testing.T) {
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprintf("all %t", all), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &eventServer{}
				client, err := api.NewClient("http://service", api.WithHTTPClient(handled{s}))
				if err != nil {
					t.Fatal(err)
				}
				var out, said strings.Builder
				a := &app{out: &out, err: &said}
				began := time.Now()
				s.add(began, "before")
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- a.followEvents(ctx, client, &api.ListNetworkEventsParams{}, all, "json") }()
				time.Sleep(eventInterval / 2)
				now := time.Now()
				s.add(now, "one")
				s.add(now, "another at that time")
				time.Sleep(3 * eventInterval)
				s.change(func() { s.broken = true })
				time.Sleep(3 * eventInterval)
				s.add(time.Now(), "while it does not answer")
				s.change(func() { s.broken = false })
				time.Sleep(3 * eventInterval)
				s.change(func() {
					count, last := 7, time.Now()
					s.events[0].Count, s.events[0].Last = &count, &last
				})
				time.Sleep(3 * eventInterval)
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				var got []string
				for line := range strings.Lines(out.String()) {
					var e api.NetworkEvent
					if err := json.Unmarshal([]byte(line), &e); err != nil {
						t.Fatalf("%v: %q", err, line)
					}
					got = append(got, e.Message)
				}
				want := []string{"before", "one", "another at that time", "while it does not answer"}
				if !all {
					want = want[1:]
				}
				if !slices.Equal(got, want) {
					t.Errorf("it prints %q, want %q", got, want)
				}
				if strings.Count(said.String(), "trying again") != 1 {
					t.Errorf("it says %q, want that it tries again, once", said.String())
				}
				if last := s.asked[len(s.asked)-1]; !strings.Contains(last, "since=") {
					t.Errorf("it asks for all events: %q", last)
				}
			})
		})
	}
}

// handled is a client whose requests a handler answers.
type handled struct{ http.Handler }

func (h handled) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}
