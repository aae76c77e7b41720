package cli

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// TestClients: rates and drops are those between two readings, for clients with the same class in both.
func TestClients(t *testing.T) {
	at := time.Unix(1700000000, 0)
	client := func(group, prefix, class string, bytes, passed, drops uint64, at time.Time) shaper.Client {
		c := shaper.Client{Direction: "out", Group: group, Class: class, Bytes: bytes, Passed: passed, Drops: drops, At: at}
		if prefix != "" {
			c.Client = netip.MustParsePrefix(prefix)
		}
		return c
	}
	was := []shaper.Client{
		client("users", "10.0.0.1/32", "8010:4000", 1000, 5000, 7, at), client("users", "10.0.0.2/32", "8010:4001", 1000, 5000, 0, at),
	}
	later := at.Add(2 * time.Second)
	now := []shaper.Client{
		client("users", "10.0.0.1/32", "8010:4000", 2_501_000, 2_505_000, 9, later),
		client("users", "10.0.0.9/32", "8010:4001", 500, 9000, 0, later), // reuses the class of 10.0.0.2
		client("users", "fd00:1::/64", "8010:4002", 900, 900, 0, later), client("guests", "", "8011:4100", 60, 60, 0, later),
	}
	now[0].BacklogBytes, now[0].QueueDelay = 2048, 3*time.Millisecond
	list := clientRates(was, now)
	if len(list) != 4 || list[1].Rate != 10e6 || list[1].Drops != 2 || list[2].Rate != 0 || list[0].Client != "no address" {
		t.Fatalf("%+v", list)
	}
	var b bytes.Buffer
	if err := clientsTable(&b, []devClients{{"eth0", list}}); err != nil {
		t.Fatal(err)
	}
	tree := &group.Tree{Limit: 100 * unit.Mbit, Nodes: []group.Node{{Path: "users", Depth: 1, Leaf: true}, {Path: "rest", Depth: 1, Leaf: true}}}
	st := shaper.State{Dev: "eth0", Engine: group.HTB, Plan: shaper.Plan{Dev: "eth0", Out: tree}, Out: &shaper.DirectionState{
		Groups: []shaper.GroupState{
			{Path: "users", Class: "4847:10", Guarantee: 80 * unit.Mbit, Ceiling: 100 * unit.Mbit, Clients: &shaper.ClientsState{Active: 3, Max: 2048}}, {Path: "rest"},
		},
	}}
	if err := groupsTable(&b, []shaper.State{st}, nil); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/clients.txt", b.String())
}

const eachFile = `kind: Interface
dev: eth0
out:
  limit: 400Mbit
  groups:
    - name: tenant
      guarantee: 50%
      groups:
        - {name: users, guarantee: 1Mbit, ceiling: 20Mbit, each: [src/24, src/64], clients: 500, default: true}
    - {name: voice, guarantee: 50%, match: [{dscp: ef}]}
`

// TestExplainClient: explain shows the client that a packet belongs to, by the key of each:, and the
// client's current class.
func TestExplainClient(t *testing.T) {
	set, err := config.Parse("eth0.yaml", []byte(eachFile))
	if err != nil {
		t.Fatal(err)
	}
	e := explainer{file: &set.Interfaces[0], clients: []shaper.Client{
		{Direction: "out", Group: "tenant/users", Client: netip.MustParsePrefix("10.0.3.0/24"), Class: "8011:4007"},
	}}
	var b bytes.Buffer
	for _, text := range []string{"udp 10.0.3.4:1 192.0.2.1:2", "udp 10.0.4.4:1 192.0.2.1:2", "udp [fd00::5]:1 [fd00:1::1]:2", "udp 10.0.3.4:1 192.0.2.1:2 dscp ef"} {
		p, err := group.ParsePacket(text)
		if err != nil {
			t.Fatal(err)
		}
		answer := explanation{Packet: text, Dev: "eth0", Directions: []directionExplanation{e.explain("out", p)}}
		if err := answer.table(&b); err != nil {
			t.Fatal(err)
		}
	}
	golden.Compare(t, "testdata/explain_clients.txt", b.String())
}

// TestCheckClients: check notes how many clients' guarantees can be met at once, if not all can.
func TestCheckClients(t *testing.T) {
	file := filepath.Join(t.TempDir(), "eth0.yaml")
	if err := os.WriteFile(file, []byte(eachFile), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	a := fakeApp(t.TempDir())
	a.out, a.err = &out, &notes
	if code := a.run([]string{"check", "-f", file}); code != 0 {
		t.Fatalf("%d: %s", code, notes.String())
	}
	if want := "eth0.yaml:9: out.groups[0].groups[0]: note: of 500 clients, 200 at once can have their guarantee of 1Mbit: the clients together are guaranteed 200Mbit"; !strings.Contains(notes.String(), want) {
		t.Errorf("%s\nwant %s", notes.String(), want)
	}
	if want := "default; each src/24,src/64: 1Mbit to 20Mbit, 500 clients"; !strings.Contains(out.String(), want) {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}
