package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
)

// granting is a service that grants reservations while their rates total at most 100Mbit. With late it counts what exists only when a request is
// no dry run, as it is if another program reserves in between.
type granting struct {
	rates map[string]string
	late  bool
	puts  int
}

func (g *granting) serve(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	answer := func() {
		fmt.Fprintf(w, `{"owner": "-", "name": %q, "state": "active", "request": {"from": {"host": "a"}, "to": {"host": "b"}}, "rate_bps": %s, "start": "2030-05-01T10:00:00Z", "end": "2030-05-01T12:00:00Z", "paths": []}`, name, strings.Replace(g.rates[name], "Mbit", "000000", 1))
	}
	switch {
	case r.URL.Path == "/v1/session":
		io.WriteString(w, `{"name": "admin", "role": "operator"}`)
	case r.Method == http.MethodDelete:
		delete(g.rates, name)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet && g.rates[name] == "":
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"type": "about:blank", "title": "Not Found", "status": 404}`)
	case r.Method == http.MethodGet:
		answer()
	case r.Method == http.MethodPut:
		var body struct{ Rate string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		dry := r.URL.Query().Get("dry_run") == "true"
		before := maps.Clone(g.rates)
		g.rates[name] = body.Rate
		sum := 0
		for other, rate := range g.rates {
			n := 0
			fmt.Sscanf(rate, "%dMbit", &n)
			if other == name || g.late && !dry || !g.late {
				sum += n
			}
		}
		if sum > 100 {
			g.rates = before
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"type": "about:blank", "title": "Conflict", "status": 409, "detail": "link s1/2 -> s2/2 is full", "refusal": {"reason": "no bandwidth"}}`)
			return
		}
		answer()
		if dry {
			g.rates = before
		} else {
			g.puts++
		}
	}
}

// The reservations of a file are created, then stay as they are, and change with the file. If one is refused none is created.
func TestReserveApply(t *testing.T) {
	g := &granting{rates: map[string]string{}}
	serveWith(t, g.serve)
	w := newWorld(t)
	document := func(name, rate string) string {
		return fmt.Sprintf("kind: Reservation\nname: %s\nfrom: a\nto: b\nrate: %s\nfor: 2h\n", name, rate)
	}
	file := w.write("two.yaml", document("one", "40Mbit")+"---\n"+document("two", "50Mbit"))
	for _, want := range []struct{ text, change string }{{"", "created"}, {"", "unchanged"}, {document("one", "30Mbit"), "changed"}} {
		if want.text != "" {
			file = w.write("two.yaml", want.text)
		}
		r := w.run("reserve", "apply", "-f", file)
		if r.code != exitOK || !strings.Contains(r.out, "reservation one: "+want.change+"\n") {
			t.Errorf("want %s: %+v", want.change, r)
		}
	}
	if g.rates["one"] != "30Mbit" || g.rates["two"] != "50Mbit" {
		t.Errorf("the service has %v", g.rates)
	}
	puts := g.puts
	if r := w.run("reserve", "apply", "-f", w.write("dry.yaml", document("three", "5Mbit")), "--dry-run", "-o", "json"); r.code != exitOK || !strings.Contains(r.out, `"change": "created"`) || g.puts != puts {
		t.Errorf("%+v", r)
	}
	three := w.write("three.yaml", document("three", "5Mbit")+"---\n"+document("four", "90Mbit"))
	if r := w.run("reserve", "apply", "-f", three); r.code != exitUsage || !strings.Contains(r.err, "three.yaml:8: reservation four: link s1/2 -> s2/2 is full") || g.puts != puts {
		t.Errorf("%+v, %v", r, g.rates)
	}
	g.late = true
	late := w.write("late.yaml", document("three", "5Mbit")+"---\n"+document("four", "50Mbit"))
	if r := w.run("reserve", "apply", "-f", late); r.code == exitOK || !strings.Contains(r.err, "reservation three was created and is cancelled again") {
		t.Errorf("%+v", r)
	}
	if got := slices.Sorted(maps.Keys(g.rates)); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the service has %v", got)
	}
	if r := w.run("reserve", "apply", "-f", w.write("other.yaml", "kind: Interface\ndev: lo\nout: {limit: 1Gbit, groups: [{name: all, default: true}]}\n")); r.code != exitUsage || !strings.Contains(r.err, "no document with kind: Reservation") {
		t.Errorf("%+v", r)
	}
}
