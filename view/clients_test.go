package view

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

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
	list := ClientRates(was, now)
	if len(list) != 4 || list[1].Rate != 10e6 || list[1].Drops != 2 || list[2].Rate != 0 || list[0].Client != "no address" {
		t.Fatalf("%+v", list)
	}
	var b bytes.Buffer
	if err := WriteClients(&b, []DeviceClients{{"eth0", list}}); err != nil {
		t.Fatal(err)
	}
	tree := &group.Tree{Limit: 100 * unit.Mbit, Nodes: []group.Node{{Path: "users", Depth: 1, Leaf: true}, {Path: "rest", Depth: 1, Leaf: true}}}
	st := shaper.State{Dev: "eth0", Engine: group.HTB, Plan: shaper.Plan{Dev: "eth0", Out: tree}, Out: &shaper.DirectionState{
		Groups: []shaper.GroupState{
			{Path: "users", Class: "4847:10", Guarantee: 80 * unit.Mbit, Ceiling: 100 * unit.Mbit, Clients: &shaper.ClientsState{Active: 3, Max: 2048}}, {Path: "rest"},
		},
	}}
	if err := WriteGroups(&b, []shaper.State{st}, nil); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/clients.txt", b.String())
}
