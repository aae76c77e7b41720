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

// TestAltNameRemote: with --server, --dev takes any name of the host's device, whichever of the names the
// service has in its document. The same holds for a tenant, which has no access to the host resource.
func TestAltNameRemote(t *testing.T) {
	const (
		device = `{"name": "h1", "devices": [{"name": "eth0", "altnames": ["enp0s3", "wan"], "up": true}, {"name": "eth1", "altnames": ["lan1"], "up": true}, {"name": "wan7", "up": true}]}`
		rates  = `{"items": [{"dev": "eth0", "direction": "out", "group": "web", "guaranteed_bps": 0, "delivered_bps": 1000000, "borrowed_bps": 1000000, "lent_bps": 0, "unused_bps": 0, "at": "NOW"}],
			"totals": [{"dev": "eth0", "altnames": ["enp0s3", "wan"], "direction": "out", "delivered_bps": 1000000, "guaranteed_bps": 0, "backlog_bytes": 0, "groups": 1, "at_risk": 0}]}`
		conn = "tcp 10.0.0.1:443 10.0.0.2:55000"
	)
	var mu sync.Mutex
	var asked []string
	var written, seen string // the name in the service's document; the host resource, "" for forbidden
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
			io.WriteString(w, `{"items": [{"at": "2026-11-26T00:00:00Z", "principal": "me", "request": "made it"}]}`)
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
		want string // the expected request: %s is the service's name of the interface, %d the value of --dev
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
						t.Errorf("%s --dev %s, in the service as %s: requests %q, want %q: %s", c.verb, dev, has, asked, want, r.err)
					}
				}
			}
		}
	}
	// Names of other devices and of no device are used unchanged; a device without a document is
	// addressed by its own name.
	for dev, want := range map[string]string{"eth1": "eth1", "wan7": "wan7", "enp0s4": "enp0s4", "lan1": "eth1"} {
		asked, written, seen = nil, "enp0s3", device
		if newWorld(t).run("clear", "--dev", dev, "--server", "default", "--host", "h1"); !slices.Contains(asked, "DELETE /interfaces/"+want+" ") {
			t.Errorf("clear --dev %s: requests %q", dev, asked)
		}
	}
}
