package web

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Objects of the API, as far as the page of the network shows them.
type (
	network struct {
		At       time.Time        `json:"at"`
		Name     string           `json:"name,omitempty"`
		Sites    []site           `json:"sites,omitempty"`
		Listen   []listener       `json:"listen"`
		Settled  bool             `json:"settled"`
		Switches []*networkSwitch `json:"switches"`
		Links    []link           `json:"links"`
		Hosts    []host           `json:"hosts"`
		Faults   []fault          `json:"faults"`
		Counters struct{}         `json:"counters"`
	}
	listener struct {
		Address string `json:"address"`
		TLS     bool   `json:"tls"`
		Error   string `json:"error,omitempty"`
	}
	site struct {
		Name   string `json:"name"`
		Parent string `json:"parent,omitempty"`
	}
	networkSwitch struct {
		ID       string   `json:"id"`
		Name     string   `json:"name,omitempty"`
		Site     string   `json:"site,omitempty"`
		Address  string   `json:"address"`
		Hardware string   `json:"hardware,omitempty"`
		Software string   `json:"software,omitempty"`
		Limits   []string `json:"limits"`
		Ports    []port   `json:"ports"`
		Current  bool     `json:"current"`
		Error    string   `json:"error,omitempty"`
	}
	port struct {
		Number int    `json:"number"`
		Name   string `json:"name,omitempty"`
		State  string `json:"state"`
		Use    string `json:"use"`
		Rx     *int64 `json:"rx_bps,omitempty"`
		Tx     *int64 `json:"tx_bps,omitempty"`
	}
	portID struct {
		Switch string `json:"switch"`
		Port   int    `json:"port"`
	}
	link struct {
		From     portID  `json:"from"`
		To       portID  `json:"to"`
		Capacity int64   `json:"capacity_bps"`
		Source   string  `json:"capacity_source"`
		Cost     int     `json:"cost,omitempty"`
		Rate     *int64  `json:"rate_bps,omitempty"`
		Drops    float64 `json:"drops_per_s"`
		Errors   float64 `json:"errors_per_s"`
	}
	host struct {
		MAC       string   `json:"mac"`
		Name      string   `json:"name,omitempty"`
		Addresses []string `json:"addresses"`
		At        portID   `json:"at"`
		Learned   string   `json:"learned"`
	}
	fault struct {
		Kind    string  `json:"kind"`
		At      portID  `json:"at"`
		Peer    *portID `json:"peer,omitempty"`
		Message string  `json:"message"`
	}
	networkEvent struct {
		At      time.Time      `json:"at"`
		Kind    string         `json:"kind"`
		Switch  string         `json:"switch,omitempty"`
		Link    map[string]any `json:"link,omitempty"`
		Message string         `json:"message"`
	}
)

// now is the time of the networks of the tests.
var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// add adds a switch and returns its number, from 1.
func (n *network) add(name, site string) int {
	number := len(n.Switches) + 1
	n.Switches = append(n.Switches, &networkSwitch{
		Limits: []string{},
		ID:     fmt.Sprintf("%016x", number), Name: name, Site: site, Address: fmt.Sprintf("10.9.%d.%d:41000", number/250, number%250+1),
		Hardware: "Open vSwitch", Software: "3.1.0", Ports: []port{}, Current: true,
	})
	return number
}

// port adds a port to a switch.
func (n *network) port(number int, use string) portID {
	s := n.Switches[number-1]
	no := len(s.Ports) + 1
	rx, tx := int64(no)*1e6, int64(no)*2e6
	s.Ports = append(s.Ports, port{Number: no, Name: fmt.Sprint("eth", no), State: "up", Use: use, Rx: &rx, Tx: &tx})
	return portID{s.ID, no}
}

// cable connects two switches, with the utilization of each direction, below 0 for one that is not measured.
func (n *network) cable(a, b int, capacity int64, there, back float64) (from, to portID) {
	from, to = n.port(a, "link"), n.port(b, "link")
	for _, l := range []link{{From: from, To: to}, {From: to, To: from}} {
		l.Capacity, l.Source, l.Cost = capacity, "reported", 1
		if there >= 0 {
			rate := int64(there * float64(capacity))
			l.Rate = &rate
		}
		n.Links = append(n.Links, l)
		there = back
	}
	return from, to
}

// host adds a host at a switch.
func (n *network) host(at int, name string) {
	no := len(n.Hosts) + 1
	n.Hosts = append(n.Hosts, host{
		MAC: fmt.Sprintf("02:00:00:00:%02x:%02x", no/256, no%256), Name: name, Addresses: []string{fmt.Sprintf("10.0.%d.%d", no/250, no%250+1)},
		At: n.port(at, "hosts"), Learned: "arp",
	})
}

// ring is a ring of six switches at two sites, with a host each.
func ring() *network {
	n := &network{At: now, Name: "campus", Settled: true, Listen: []listener{{Address: "10.9.0.1:6653", TLS: true}}, Sites: []site{{Name: "north"}, {Name: "south"}}, Faults: []fault{}}
	for i := range 6 {
		n.add(fmt.Sprint("s", i+1), []string{"north", "north", "north", "south", "south", "south"}[i])
	}
	for i, load := range []float64{0.62, 0.003, 0.18, 0.93, 0.4, -1} {
		n.cable(i+1, (i+1)%6+1, 1e9, load, min(load, 0.11))
	}
	for i := range 6 {
		n.host(i+1, fmt.Sprint("h", i+1))
	}
	return n
}

// campus is a network of 200 switches at 10 sites: 4 in the core, 2 at each site's top, and the others below with two uplinks each.
func campus() *network {
	n := &network{At: now, Name: "large", Settled: true, Listen: []listener{{Address: "10.9.0.1:6653", TLS: true}}, Faults: []fault{}}
	load := func(i int) float64 { return math.Abs(math.Sin(float64(i)*12.9898)) * math.Abs(math.Sin(float64(i))) }
	for i := range 4 {
		core := n.add(fmt.Sprint("core", i+1), "")
		for j := 1; j < core; j++ {
			n.cable(j, core, 100e9, load(i+j), load(3*i))
		}
	}
	for s := range 10 {
		name := fmt.Sprint("site-", s+1)
		n.Sites = append(n.Sites, site{Name: name})
		tops := []int{n.add(fmt.Sprintf("d%d-1", s+1), name), n.add(fmt.Sprintf("d%d-2", s+1), name)}
		n.cable(tops[0], tops[1], 40e9, load(s), load(s+7))
		for i, top := range tops {
			n.cable(top, 1+(s+i)%4, 40e9, load(s+i), load(s+20))
		}
		for len(n.Switches) < 4+(196*(s+1))/10 {
			access := n.add(fmt.Sprintf("a%d-%d", s+1, len(n.Switches)), name)
			for i, top := range tops {
				n.cable(top, access, 10e9, load(access+i), load(access+5))
			}
			for i := range access % 12 {
				n.host(access, fmt.Sprintf("pc%d-%d", access, i))
			}
		}
	}
	return n
}

// mesh is a network of 200 switches with 800 cables anywhere.
func mesh() *network {
	n := &network{At: now, Name: "random", Settled: true, Faults: []fault{}, Hosts: []host{}}
	state := uint32(1)
	next := func(below int) int {
		state = state*1664525 + 1013904223
		return int(state>>8) % below
	}
	for i := range 200 {
		n.add("", "")
		if i > 0 {
			n.cable(next(i)+1, i+1, 1e9, 0.3, 0.1)
		}
	}
	for len(n.Links) < 1600 {
		if a, b := next(200)+1, next(200)+1; a != b {
			n.cable(a, b, 1e9, float64(next(100))/100, float64(next(100))/100)
		}
	}
	return n
}

// service serves the dashboard with fixed answers of the API.
type service struct {
	*httptest.Server
	t       testing.TB
	mu      sync.Mutex
	answers map[string]answer
	changed chan struct{} // closed when an answer changes
	sent    []sent
}

// sent is a request that changes something, or would without dry_run.
type sent struct {
	what         string // method, path and query, such as "DELETE /v1/reservations/-/a"
	key, ifMatch string
	body         string
}

type answer struct {
	status int
	body   json.RawMessage
}

// serve starts a service for an operator.
func serve(t testing.TB) *service {
	s := &service{t: t, changed: make(chan struct{}), answers: map[string]answer{}}
	for _, path := range []string{"/v1/session", "/v1/login"} {
		s.set(path, 200, map[string]string{"name": "admin", "role": "operator"})
	}
	pages := Handler()
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/live":
			s.live(w, r)
		case strings.HasPrefix(r.URL.Path, "/v1/"):
			a := s.answerTo(r)
			w.Header().Set("ETag", etag)
			if a.status == http.StatusNoContent {
				w.WriteHeader(a.status)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(a.status)
			_, _ = w.Write(a.body)
		default:
			pages.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// etag is the ETag of every answer.
const etag = `"7"`

// answerTo returns the answer to a request. A request that is no GET is recorded, and has the answer that is set for its method, path
// and query.
func (s *service) answerTo(r *http.Request) answer {
	if r.Method == http.MethodGet || r.URL.Path == "/v1/login" {
		return s.answer(r.URL.Path)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	one := sent{r.Method + " " + r.URL.RequestURI(), r.Header.Get("Idempotency-Key"), r.Header.Get("If-Match"), string(body)}
	s.mu.Lock()
	s.sent = append(s.sent, one)
	s.mu.Unlock()
	return s.answer(one.what)
}

// requests returns the requests of a method, path and query.
func (s *service) requests(what string) (out []sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.sent {
		if one.what == what {
			out = append(out, one)
		}
	}
	return out
}

// answer returns the answer to requests of a path.
func (s *service) answer(path string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := s.answers[path]; ok {
		return a
	}
	return answer{404, json.RawMessage(`{"title": "Not Found", "status": 404}`)}
}

// set changes the answer to requests of a path.
func (s *service) set(path string, status int, body any) {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = answer{status, text}
	close(s.changed)
	s.changed = make(chan struct{})
}

// live streams the answers of paths, all of them after each change.
func (s *service) live(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		for _, path := range r.URL.Query()["see"] {
			u, err := url.Parse(path)
			if err != nil {
				return
			}
			a := s.answer(u.Path)
			data, err := json.Marshal(map[string]any{"path": path, "status": a.status, "data": a.body})
			if err != nil {
				return
			}
			fmt.Fprintf(w, "event: seen\ndata: %s\n\n", data)
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}
