package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/internal/golden"
)

// backupUsage is what a reservation of the operator does, with both directions.
const backupUsage = `{"items": [{"owner": "-", "name": "backup", "direction": "forward", "class": 4, "held_by": "switch", "reserved_bps": 200000000, "offered_bps": 250000000, "delivered_bps": 210000000, "limit_bps": 210000000, "peak_bps": 260000000, "since": "2026-05-01T10:00:00Z", "full": "2026-05-01T10:59:00Z", "seconds": 3600, "offered_bytes": 90000000000, "delivered_bytes": 88000000000, "reserved_bytes": 90000000000, "borrowed_bytes": 1000000000, "lent_bytes": 3000000000, "unmet_seconds": 12, "unused": false},
	{"owner": "-", "name": "backup", "direction": "back", "class": 4, "held_by": "nowhere", "reserved_bps": 1000000, "offered_bps": 0, "delivered_bps": 0, "peak_bps": 100000, "since": "2026-05-01T10:00:00Z", "seconds": 3600, "offered_bytes": 0, "delivered_bytes": 0, "reserved_bytes": 450000000, "borrowed_bytes": 0, "lent_bytes": 450000000, "unmet_seconds": 0, "unused": true}]}`

const backupReservation = `{"owner": "-", "name": "backup", "state": "active", "request": {"from": {"host": "web1", "at": {"switch": "0000000000000001", "port": 1}}, "to": {"host": "10.0.0.9"}, "class": 4, "rate": "200Mbit", "back": "1Mbit", "duration": "2h", "protected": true},
	"start": "2026-05-01T10:00:00Z", "end": "2026-05-01T12:00:00Z", "rate_bps": 200000000, "back_bps": 1000000, "reserved_bps": 200000000, "reserved_back_bps": 1000000, "generation": 1, "created": "2026-05-01T09:00:00Z", "changed": "2026-05-01T09:00:00Z", "paths": [
	{"links": [{"from": {"switch": "0000000000000001", "port": 2}, "to": {"switch": "0000000000000002", "port": 2}}], "rate_bps": 200000000, "back_bps": 1000000, "spare": false},
	{"links": [{"from": {"switch": "0000000000000001", "port": 4}, "to": {"switch": "0000000000000002", "port": 5}}], "rate_bps": 200000000, "back_bps": 1000000, "spare": true}]}`

// answers are the responses of a service, by method and path.
var answers = map[string]string{
	"GET /v1/tenants":              `{"items": [{"name": "shop", "description": "the web shop", "requests_per_second": 200}], "next": "shop"}`,
	"GET /v1/tenants?after":        `{"items": [{"name": "video"}]}`,
	"GET /v1/tenants/shop":         `{"name": "shop", "description": "the web shop", "requests_per_second": 200}`,
	"DELETE /v1/tenants/shop":      ``,
	"GET /v1/hosts":                `{"items": [{"name": "web1", "connected": true, "version": "1.2.3", "applied": "1/4711", "description": "rack 4"}, {"name": "web2", "connected": false}, {"name": "web3", "revoked": true}], "next": "web3"}`,
	"GET /v1/hosts?after":          `{"items": [{"name": "web4"}]}`,
	"GET /v1/hosts/web1":           `{"name": "web1", "connected": true, "version": "1.2.3", "description": "rack 4", "devices": [{"name": "eth0", "up": true, "mtu": 1500, "speed_bps": 1000000000, "owner": "controller"}, {"name": "eth1", "up": false, "error": "no such device", "foreign": ["qdisc tbf 8001: root", "qdisc ingress ffff:"]}]}`,
	"GET /v1/hosts/web2":           `{"name": "web2"}`,
	"DELETE /v1/hosts/web1":        ``,
	"GET /v1/tokens":               `{"items": [{"id": "3f9a", "name": "ci", "role": "tenant", "tenant": "shop", "created": "2026-05-01T00:00:00Z", "expires": "2026-06-01T10:00:00Z"}], "next": "3f9a"}`,
	"GET /v1/tokens?after":         `{"items": [{"id": "4f9a", "name": "web1", "role": "agent", "host": "web1", "created": "2026-05-01T00:00:00Z", "expires": "2026-05-01T01:00:00Z"}, {"id": "5f", "name": "admin", "role": "operator", "created": "2026-05-01T00:00:00Z", "expires": "2026-07-01T00:00:00Z"}]}`,
	"POST /v1/tokens":              `{"id": "6f9a", "name": "ci", "role": "tenant", "tenant": "shop", "token": "secret", "created": "2026-05-01T00:00:00Z", "expires": "2026-06-01T00:00:00Z"}`,
	"DELETE /v1/tokens/3f9a":       ``,
	"GET /v1/audit":                `{"items": [{"id": "a", "at": "2026-05-01T10:00:00Z", "principal": "ci", "role": "tenant", "request": "PUT /v1/hosts/web1/interfaces/eth0", "revision": 4711}], "next": "a"}`,
	"GET /v1/audit?before":         `{"items": [{"id": "b", "at": "2026-05-01T09:00:00Z", "principal": "admin", "request": "POST /v1/tokens"}]}`,
	"GET /v1/probe-schedule":       `{"measures": [{"measure": "path", "every": "6h"}], "bytes": "10MB", "time": "30s", "budget": "1GB", "quiet": [{"days": ["mon", "tue"], "from": "08:00", "to": "18:00"}], "zone": "Europe/Berlin", "hosts": [{"host": "web1"}, {"host": "web2"}]}`,
	"GET /v1/probe-state":          `{"running": [{"id": "x", "from": "web1", "to": "web2", "measure": "path", "began": "2026-05-01T10:00:00Z"}], "spent": [{"host": "web1", "used_bytes": 12000000}]}`,
	"DELETE /v1/probe-schedule":    ``,
	"GET /v1/probes":               `{"items": [{"from": "web1", "to": "web2", "measure": "tokenrate", "at": "2026-05-01T10:00:00Z", "attempted": "2026-05-01T10:00:00Z", "answer": {"capacity": {"value": 1e9, "low": 9e8, "high": 1.1e9}, "token_rate": {"rate": {"value": 1e8, "low": 9.9e7, "high": 1.01e8}, "bucket": {"cannot_tell": "none was emptied"}}, "sent_bytes": 10000000, "seconds": 2.5}}], "next": "x"}`,
	"GET /v1/probes?after":         `{"items": [{"from": "web2", "to": "web1", "measure": "capacity", "attempted": "2026-05-01T11:00:00Z", "error": "no response"}, {"from": "web2", "to": "web3", "measure": "capacity", "at": "2026-05-01T10:00:00Z", "attempted": "2026-05-01T10:00:00Z", "answer": {"capacity": {"value": 1e9, "at_least": true}}}]}`,
	"GET /v1/hosts/web1/proposals": `{"items": [{"dev": "eth0", "out": {"limit_bps": 45000000, "before_bps": 50000000, "from": "web1", "to": "web2", "measure": "tokenrate", "at": "2026-05-01T10:00:00Z", "notes": ["one of 3 results differs"]}, "in": {"cannot_tell": "no result"}}]}`,
	"POST /v1/hosts/web1/probes":   `{"id": "p1", "state": "running"}`,
	"GET /v1/hosts/web1/probes/p1": `{"id": "p1", "state": "done", "result": {"host": "10.0.0.2", "rtt_ns": 2000000, "directions": {"out": {"capacity": {"value": 1e9, "low": 9e8, "high": 1.1e9}, "token_rate": {"rate": {"value": 1e8, "low": 9.9e7, "high": 1.01e8}, "bucket": {"value": 1e6, "low": 9e5, "high": 1.1e6}}, "layer_3": 0.99, "lost": 0.01, "flaws": ["2 packets reordered"], "bytes": "10MB", "seconds": 2.5}, "in": {"capacity": {"cannot_tell": "no packets"}, "bytes": "1MB"}}}}`,
	"GET /v1/usage": `{"missing": ["web2"], "items": [{"host": "web1", "dev": "eth0", "direction": "out", "group": "web", "tenant": "shop", "seconds": 3600, "offered_bytes": 2000000, "delivered_bytes": 1900000, "guaranteed_bytes": 1000000, "borrowed_bytes": 900000, "lent_bytes": 5, "drops": 3, "marks": 4, "unmet_seconds": 7},
		{"host": "web1", "dev": "eth0", "direction": "in", "group": "rest", "seconds": 60}]}`,
	"GET /v1/hosts/web1/interfaces":                        `{"items": [{"dev": "eth0"}]}`,
	"GET /v1/hosts/web1/interfaces/eth0":                   `{"dev": "eth0", "engine": "htb", "out": {"limit": "50Mbit", "spare": "equal", "groups": []}}`,
	"GET /v1/hosts/web1/interfaces/eth0/out/groups":        `{"items": [{"path": "web", "guaranteed_bps": 20000000, "ceiling_bps": 50000000}, {"path": "web/a", "ceiling_bps": 40000000}]}`,
	"GET /v1/hosts/web1/interfaces/eth0/history":           `{"items": [{"id": "a", "at": "2026-05-01T10:00:00Z", "principal": "ci", "role": "tenant", "request": "PUT /v1/hosts/web1/interfaces/eth0", "revision": 4711}]}`,
	"POST /v1/hosts/web1/interfaces/eth0/rollback":         `{"dev": "eth0", "out": {"limit": "50Mbit", "groups": []}}`,
	"DELETE /v1/hosts/web1/interfaces/eth0":                ``,
	"GET /v1/hosts/web1/interfaces/eth0/connections":       `{"items": [{"connection": "tcp 10.0.0.1:443 10.0.0.2:55000", "group": "web/a"}], "next": "tcp"}`,
	"GET /v1/hosts/web1/interfaces/eth0/connections?after": `{"items": [{"connection": "udp 10.0.0.1:53 10.0.0.2:999", "group": "rest"}]}`,
	"GET /v1/hosts/web1/policy":                            `{"text": "kind: Interface\ndev: eth0\nout:\n  limit: 50Mbit\n  groups:\n    - {name: web, guarantee: 20Mbit, match: [{dport: 443}], groups: [{name: a}]}\n    - {name: rest, default: true}\n---\nkind: Collective\nname: db\ncgroup: /db\n"}`,
	"GET /v1/hosts/web1/rates": `{"items": [
		{"dev": "eth0", "direction": "out", "group": "web", "guaranteed_bps": 20000000, "delivered_bps": 1, "borrowed_bps": 0, "lent_bps": 0, "unused_bps": 0, "at": "2026-05-01T10:00:00Z", "delivered_bytes": 2500000, "drops": 3, "marks": 4},
		{"dev": "eth0", "direction": "out", "group": "web/a", "guaranteed_bps": 20000000, "delivered_bps": 1, "borrowed_bps": 0, "lent_bps": 0, "unused_bps": 0, "at": "2026-05-01T10:00:00Z", "delivered_bytes": 2500000, "backlog_bytes": 3000, "queue_delay_ns": 2000000}]}`,
	"GET /v1/hosts/web1/collective-states": `{"items": [{"set": "db", "controlling": true, "connections": [{"id": 7, "local": "10.0.0.1:5432", "remote": "10.0.1.1:40000", "learned_bps": 5000000, "rate_bps": 4000000, "rtt_ns": 24000000, "window_cap_bytes": 30000, "pacing_cap_bps": 4000000, "retransmits": 3}, {"id": 8, "local": "10.0.0.1:5432", "remote": "10.0.1.2:40000", "weight": 4}]}, {"set": "backup", "destination": "10.0.0.9", "cgroup_missing": true, "error": "no cgroup"}], "truncated": true}`,
	"DELETE /v1/hosts/web1/collectives/db": ``,
	"GET /v1/hosts/web1/relays": `{"items": [{"agent": "east", "at": "2026-05-04T10:00:00Z", "began": "2026-05-04T09:00:00Z", "exits": [{"address": "192.0.2.2:8424", "destinations": ["10.2.0.0/16"], "paths": [
		{"name": "fibre", "selection": "address 192.0.2.2:8424", "state": "open", "open_streams": 2, "suspect_streams": 1, "closed_streams": 1, "rtt_ns": 54000000, "send_rate_bps": 480000000, "receive_rate_bps": 1000, "sent_bytes": 3000000000, "received_bytes": 5, "error": "dial tcp 192.0.2.2:8424: connection refused",
		"streams": [{"number": 1, "state": "open", "rtt_ns": 54000000, "estimated_rate_bps": 500000000, "send_rate_bps": 480000000, "receive_rate_bps": 1000, "unsent_bytes": 1, "unacknowledged_bytes": 2, "sent_bytes": 3, "received_bytes": 4}]}]}],
		"entries": [], "connections": [{"client": "10.1.0.5:40000", "destination": "10.2.0.5:22", "exit": "192.0.2.2:8424", "state": "open", "began": "2026-05-04T09:59:30Z", "age_ns": 30000000000, "sent_bytes": 10, "received_bytes": 0, "send_rate_bps": 480000000, "receive_rate_bps": 0, "waiting_bytes": 1, "unacknowledged_bytes": 2, "unread_bytes": 3, "reordering_bytes": 4, "paths": [{"path": "fibre", "sent_bytes": 10, "received_bytes": 0}]}],
		"total": {"streams": 2, "connections": 7, "ended": 1, "failed": 0, "sent_bytes": 10, "received_bytes": 0, "send_rate_bps": 480000000, "receive_rate_bps": 1000, "waiting_bytes": 1, "unread_bytes": 3, "reordering_bytes": 4}, "omitted": {"connections": 6, "streams": 1}}]}`,
	"GET /v1/hosts/web1/relays/east/ended": `{"items": [{"client": "10.1.0.5:40000", "destination": "10.2.0.5:22", "exit": "192.0.2.2:8424", "state": "failed", "error": "reset", "began": "2026-05-04T09:59:30Z", "age_ns": 30000000000, "sent_bytes": 10, "received_bytes": 30, "paths": [{"path": "fibre", "sent_bytes": 10, "received_bytes": 0}, {"path": "radio", "sent_bytes": 0, "received_bytes": 30}]}]}`,
	"GET /v1/network": `{"at": "2026-05-01T10:00:00Z", "listen": [{"address": "10.9.0.1:6653", "tls": false}], "settled": false, "switches": [
		{"id": "0000000000000001", "name": "n1", "site": "north", "address": "10.9.0.11:41000", "hardware": "Open vSwitch", "software": "3.1.0", "current": true, "ports": [{"number": 1, "name": "eth1", "state": "up", "use": "hosts"}, {"number": 2, "name": "eth2", "speed_bps": 1000000000, "state": "up", "use": "link"}, {"number": 3, "name": "eth3", "state": "down", "use": "none"}]},
		{"id": "0000000000000002", "address": "10.9.0.12:41000", "current": false, "error": "the switch refused a group: OFPGMFC_OUT_OF_GROUPS", "ports": [{"number": 2, "state": "up", "use": "link"}]}],
		"links": [{"from": {"switch": "0000000000000001", "port": 2}, "to": {"switch": "0000000000000002", "port": 2}, "capacity_bps": 1000000000, "capacity_source": "reported", "cost": 1, "rate_bps": 812345678, "drops_per_s": 1.5, "errors_per_s": 0}, {"from": {"switch": "0000000000000002", "port": 2}, "to": {"switch": "0000000000000001", "port": 2}, "capacity_bps": 1000000000, "capacity_source": "reported"},
			{"from": {"switch": "0000000000000001", "port": 4}, "to": {"switch": "0000000000000002", "port": 5}, "capacity_bps": 100000000, "capacity_source": "configured"}, {"from": {"switch": "0000000000000002", "port": 5}, "to": {"switch": "0000000000000001", "port": 4}, "capacity_bps": 50000000, "capacity_source": "measured", "cost": 10, "rate_bps": 1500}],
		"hosts": [{"mac": "02:00:00:00:00:01", "addresses": ["10.0.0.1", "fd00::1"], "at": {"switch": "0000000000000001", "port": 1}, "learned": "arp"}, {"mac": "02:00:00:00:00:02", "vlan": 20, "addresses": [], "at": {"switch": "0000000000000002", "port": 3}, "learned": "packet"}],
		"faults": [{"kind": "looped", "at": {"switch": "0000000000000002", "port": 7}, "message": "port 0000000000000002/7 receives its switch's own frames from 0000000000000002/8: remove the cable"}],
		"counters": {"packet_ins": 20, "dropped": 0, "forged": 0, "answered": 3, "flooded": 1, "plans": 4}}`,
	"GET /v1/network/path":   `{"capacity_bps": 1000000000, "hops": [{"switch": "0000000000000001", "in_port": 1, "out_port": 2}, {"switch": "0000000000000002", "in_port": 2}]}`,
	"GET /v1/network/trace":  `{"hops": [{"switch": "0000000000000001", "in_port": 1, "frame": "a > b", "text": "s1 port 1: a > b", "steps": [{"kind": "table", "indent": 1, "text": "table 0 port: no flow matches", "table": 0}, {"kind": "dropped", "indent": 2, "text": "dropped: no flow matches", "end": "dropped"}]}]}`,
	"GET /v1/network/events": `{"items": [{"at": "2026-05-01T10:00:00.25Z", "kind": "switch-added", "switch": "0000000000000001", "message": "switch 0000000000000001 is connected from 10.9.0.11:41000"}]}`,
	"GET /v1/network/switches/0000000000000001/flows": `{"items": [{"table": 0, "table_name": "port", "rule": "LLDP: to the controller", "priority": 3000, "match": "dl_type=0x88cc", "instructions": "CONTROLLER:65535", "packets": 4, "bytes": 400, "age_ns": 1000000000},
		{"table": 0, "priority": 1, "match": "in_port=9", "instructions": "drop", "packets": 0, "bytes": 0, "age_ns": 1000000000}]}`,
	"GET /v1/reservations":                ` {"items": [` + backupReservation + `], "next": "-/backup"}`,
	"GET /v1/reservations?after":          `{"items": [{"owner": "shop", "name": "sync", "state": "degraded", "degraded": "no path has bandwidth", "request": {"from": {"site": "north"}, "to": {"vlan": 20}, "class": 1, "carry": "relay"}, "start": "2026-05-01T10:00:00Z", "end": "2026-05-01T11:00:00Z", "rate_bps": 50000000, "back_bps": 0, "reserved_bps": 0, "reserved_back_bps": 0, "paths": [], "generation": 2, "created": "2026-05-01T09:00:00Z", "changed": "2026-05-01T10:30:00Z"}]}`,
	"GET /v1/reservations/-/backup":       backupReservation,
	"PUT /v1/reservations/-/backup":       backupReservation,
	"GET /v1/reservations/usage":          backupUsage,
	"POST /v1/reservations":               backupReservation,
	"DELETE /v1/reservations/-/backup":    ``,
	"DELETE /v1/reservations/shop/backup": ``,
	"GET /v1/reservations/calendar":       `{"limit_bps": 1000000000, "steps": [{"at": "2026-05-01T10:00:00Z", "reserved_bps": 200000000}, {"at": "2026-05-01T12:00:00Z", "reserved_bps": 0}]}`,
	"GET /v1/session":                     `{"name": "admin", "role": "operator"}`,
	"GET /v1/hosts/web2/relays":           `{"items": [], "connected": false, "error": "the agent is not connected to this controller"}`,
	"GET /v1/hosts/web3/relays":           `{"items": [{"agent": "a"}, {"agent": "b"}], "connected": true}`,
}

// TestResources holds the requests and the output of the commands of a service, against one that has a few of
// each resource.
func TestResources(t *testing.T) {
	zone := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = zone })
	var mu sync.Mutex
	var asked strings.Builder
	serveWith(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		query, _ := url.QueryUnescape(r.URL.RawQuery)
		request := strings.Join([]string{r.Method, r.URL.Path, query, r.Header.Get("If-Match"), string(body)}, " ")
		fmt.Fprintln(&asked, strings.Join(strings.Fields(request), " "))
		key := r.Method + " " + r.URL.Path
		for _, page := range []string{"after", "before"} {
			if r.URL.Query().Has(page) {
				key += "?" + page
			}
		}
		text, known := answers[key]
		switch {
		case known:
			w.Header().Set("ETag", `"7"`)
			io.WriteString(w, text)
		case r.Method == http.MethodPut:
			w.Write(body)
		default:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"type": "about:blank", "title": "not found", "status": 404}`)
		}
	})
	w := newWorld(t)
	w.write("host.yaml", "kind: Interface\ndev: eth0\nout: {limit: 40Mbit, groups: [{name: web, guarantee: 20Mbit}, {name: rest, default: true}]}\n---\nkind: Collective\nname: backup\ncgroup: /backup\n")
	w.write("schedule.yaml", strings.ReplaceAll(scheduleExample, "\n  ", "\n")[2:])
	var b strings.Builder
	for line := range strings.Lines(readFile("testdata/resources.commands")) {
		args := strings.Fields(line)
		for i, a := range args {
			args[i] = strings.ReplaceAll(strings.ReplaceAll(a, "_", " "), "DIR", w.dir)
		}
		asked.Reset()
		r := w.run(args...)
		fmt.Fprintf(&b, "$ headgate %s", line)
		for request := range strings.Lines(asked.String()) {
			b.WriteString("> " + request)
		}
		fmt.Fprintf(&b, "%s%s", r.err, r.out)
		if r.code != 0 {
			fmt.Fprintf(&b, "exit %d\n", r.code)
		}
		b.WriteByte('\n')
	}
	golden.Compare(t, "testdata/resources.txt", b.String())
}
