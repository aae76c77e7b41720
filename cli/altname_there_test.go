package cli

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAltNameThere: a device of a host of a service is meant by any of its names, whichever of them the
// service has; so it is for a tenant, who may not see the host.
func TestAltNameThere(t *testing.T) {
	const (
		device = `{"name": "h1", "devices": [{"name": "eth0", "altnames": ["enp0s3", "wan"], "up": true}, {"name": "eth1", "altnames": ["lan1"], "up": true}, {"name": "wan7", "up": true}]}`
		rates  = `{"items": [{"dev": "eth0", "direction": "out", "group": "web", "delivered": "1Mbit", "at": "NOW"}],
			"totals": [{"dev": "eth0", "altnames": ["enp0s3", "wan"], "direction": "out", "delivered": "1Mbit", "guaranteed": "0bit", "backlog": 0, "groups": 1, "at_risk": 0}]}`
		conn = "tcp 10.0.0.1:443 10.0.0.2:55000"
	)
	var mu sync.Mutex
	var asked []string
	var written, seen string // which name the service has, and what it tells of the host
	serveWith(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		path := strings.TrimPrefix(r.URL.Path, "/v1/hosts/h1")
		query := r.URL.Query()
		asked = append(asked, r.Method+" "+path+" "+query.Get("dev"))
		switch at := "/interfaces/" + written; {
		case path == "" && seen == "":
			w.WriteHeader(http.StatusForbidden)
		case path == "":
			io.WriteString(w, seen)
		case path == "/interfaces":
			io.WriteString(w, `{"items": [{"dev": "`+written+`"}, {"dev": "w*"}]}`)
		case path == "/policy":
			io.WriteString(w, `{"text": "kind: Interface\ndev: `+written+`\nout: {limit: 50Mbit, groups: [{name: web, default: true}]}\n"}`)
		case path == "/rates":
			io.WriteString(w, strings.Replace(rates, "NOW", time.Now().Format(time.RFC3339Nano), 1))
		case path == at:
			io.WriteString(w, `{"dev": "`+written+`", "engine": "htb", "out": {"limit": "50Mbit", "groups": []}}`)
		case path == at+"/history":
			io.WriteString(w, `{"items": [{"at": "2026-11-26T00:00:00Z", "by": "me", "what": "made it"}]}`)
		case path == at+"/connections", path == at+"/out/groups", path == "/proposals":
			io.WriteString(w, `{"items": []}`)
		case strings.HasPrefix(path, at+"/"):
			io.WriteString(w, `{"group": "web"}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	for _, c := range []struct {
		verb string
		want string // what the service is asked at last, %s is what it calls the interface, and %d what was written
	}{
		{"show", "GET /rates %d"},
		{"top --once --interval 100ms", "GET /interfaces/%s/out/groups "},
		{"show assignments", "GET /interfaces/%s/connections "},
		{"explain --packet|" + conn, "GET /interfaces/%s/connections "},
		{"assign web --conn|" + conn, "PUT /interfaces/%s/connections/" + conn + " "},
		{"unassign --conn|" + conn, "DELETE /interfaces/%s/connections/" + conn + " "},
		{"clear", "DELETE /interfaces/%s "},
		{"tune DEV", "GET /proposals %s"},
		{"history", "GET /interfaces/%s/history "},
		{"rollback --to 7", "POST /interfaces/%s/rollback "},
	} {
		for _, of := range []string{device, ""} {
			for _, has := range []string{"eth0", "enp0s3"} {
				for _, dev := range []string{"eth0", "enp0s3", "wan"} {
					asked, written, seen = nil, has, of
					verb, last, _ := strings.Cut(c.verb, "|")
					args := strings.Fields(verb)
					if last != "" {
						args = append(args, last)
					}
					if n := slices.Index(args, "DEV"); n > 0 {
						args[n] = dev
					} else {
						args = append(args, "--dev", dev)
					}
					r := newWorld(t).run(append(args, "--server", "default", "--host", "h1")...)
					want := strings.NewReplacer("%s", has, "%d", dev).Replace(c.want)
					if !slices.Contains(asked, want) {
						t.Errorf("%s --dev %s, which the service has as %s, asks for %q, not for %q: %s", c.verb, dev, has, asked, want, r.err)
					}
				}
			}
		}
	}
	// What is another device, and what is none, stay so; what nothing is wanted of is so by its own name.
	for dev, want := range map[string]string{"eth1": "eth1", "wan7": "wan7", "enp0s4": "enp0s4", "lan1": "eth1"} {
		asked, written, seen = nil, "enp0s3", device
		if newWorld(t).run("clear", "--dev", dev, "--server", "default", "--host", "h1"); !slices.Contains(asked, "DELETE /interfaces/"+want+" ") {
			t.Errorf("clear --dev %s asks for %q", dev, asked)
		}
	}
}
