package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/api/local"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// passing returns an agent with an applied plan on each device of its files, enough to answer
// requests from programs.
func passing(t *testing.T, files string) (*Agent, *machine) {
	t.Helper()
	m := newMachine(t, files)
	set, err := config.Parse("files", []byte(files))
	if err != nil {
		t.Fatal(err)
	}
	claim, err := NewClaim(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { claim.Close() })
	a := &Agent{StateFile: claim, Engines: map[group.Engine]shaper.Shaper{group.HTB: fakeEngine{m}}, set: set, named: set, devices: map[int]*deviceState{}, Log: slog.New(slog.DiscardHandler)}
	for n, i := range set.Interfaces {
		a.devices[n] = &deviceState{name: i.Dev, appliedHash: "x", desired: &DesiredState{engine: group.HTB, plan: shaper.Plan{Dev: i.Dev, Out: i.OutTree, In: i.InTree}}}
	}
	return a, m
}

func connection(port int) shaper.Conn {
	return shaper.Conn{Proto: group.TCP, A: netip.MustParseAddrPort(fmt.Sprint("10.0.0.1:", port)), B: netip.MustParseAddrPort("10.0.0.2:443")}
}

const passedFiles = `kind: Interface
dev: eth0
out:
  limit: 1Gbit
  groups:
    - {name: both, join: 1001}
    - {name: shop, join: [1001], groups: [{name: web}, {name: backup, join: 1002}]}
    - {name: oneway, join: 1001}
    - {name: rest, default: true}
in:
  limit: 1Gbit
  groups:
    - {name: oneway}
    - {name: rest, default: true}
---
kind: Interface
dev: eth1
out:
  limit: 1Gbit
  groups:
    - {name: both, join: 1001}
    - {name: web}
    - {name: rest, default: true}
`

// Permissions decide to which groups a user may assign a connection.
func TestAssignPermission(t *testing.T) {
	a, m := passing(t, passedFiles)
	c := connection(1)
	for _, x := range []struct {
		user      uint32
		group     string
		dev, want string // want begins with the devices, or is part of the error
		denied    bool
	}{
		{1001, "both", "", "[eth0 eth1] both", false},
		{1001, "both", "eth1", "[eth1] both", false},
		{1001, "both", "eth2", `does not shape device "eth2"`, false},
		{1002, "both", "", "no permission to assign connections to group both of eth1", true},
		{1001, "shop/web", "", "[eth0] shop/web", false},
		{1002, "shop/web", "", "no permission to assign", true},
		{1002, "shop/backup", "", "[eth0] shop/backup", false},
		{1001, "backup", "", "[eth0] shop/backup", false},
		{1001, "web", "", "[eth0] shop/web", false}, // the user has no permission for eth1's group
		{0, "web", "", `"web" is ambiguous: shop/web on one device, web on another`, false},
		{1001, "shop", "", `there is no group "shop"`, false},
		{1001, "none", "", `there is no group "none"`, false},
		{1001, "rest", "", "no permission to assign", true},
		{0, "rest", "", "[eth0 eth1] rest", false},
		{1001, "oneway", "", "no permission to assign connections to group oneway of eth0", true}, // incoming packets would be in the group, too
		{0, "oneway", "", "[eth0] oneway", false},
	} {
		clear(m.assigned)
		path, devs, err := a.assign(x.user, local.Request{Assign: x.group, Dev: x.dev}, c)
		got := fmt.Sprint(devs, " ", path)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, x.want) || errors.Is(err, os.ErrPermission) != x.denied || (err != nil) == (len(m.assigned) > 0) {
			t.Errorf("user %d, %s on %q: %s, want %q; assigned: %v", x.user, x.group, x.dev, got, x.want, m.assigned)
		}
	}
}

// A program may not move a connection that another user or the controller assigned.
func TestAssignFromOtherGroups(t *testing.T) {
	a, m := passing(t, passedFiles)
	c := connection(1)
	turned := shaper.Conn{Proto: c.Proto, A: c.B, B: c.A}
	ask := func(user uint32, group, want string) {
		t.Helper()
		before := maps.Clone(m.assigned)
		var err error
		if group == "" {
			_, err = a.unassign(user, "", c)
		} else {
			_, _, err = a.assign(user, local.Request{Assign: group}, c)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !maps.Equal(before, m.assigned)) {
			t.Errorf("user %d to %q: %v, want %q; assigned: %v, before: %v", user, group, err, want, m.assigned, before)
		}
	}
	ask(1001, "", "is not assigned to any group")
	ask(0, "rest", "")
	ask(1001, "both", "in group rest of eth0, and user 1001 has no permission to remove it")
	ask(1001, "", "user 1001 has no permission")
	ask(0, "", "")
	ask(1001, "both", "")
	ask(1001, "shop/web", "")
	if got := m.assigned[fmt.Sprint("eth1 ", c)]; got != "both" {
		t.Errorf("on a device without the new group the connection is in %q", got)
	}
	ask(1001, "", "")
	if len(m.assigned) > 0 {
		t.Errorf("not unassigned: %v", m.assigned)
	}
	a.devices[0].desired.connections = []shaper.Assignment{{Conn: turned, Group: "shop/web"}}
	ask(1001, "both", "the controller assigned connection tcp 10.0.0.1:1 10.0.0.2:443 to group shop/web of eth0")
	ask(0, "both", "the controller assigned connection")
	ask(1001, "", "the controller assigned connection")
	a.devices[0].desired.connections = nil
	m.full = "eth1"
	ask(1001, "both", "table is full") // the assignment on eth0 is undone
}

// A connection that the controller no longer assigns is unassigned, if it still is in the
// controller's group.
func TestControllerUnassigns(t *testing.T) {
	a, m := passing(t, passedFiles)
	eth0 := a.devices[0]
	eth0.desired.connections = []shaper.Assignment{{Conn: connection(1), Group: "both"}, {Conn: connection(2), Group: "both"}, {Conn: connection(3), Group: "both"}}
	if err := a.reconcileConnections(eth0, fakeEngine{m}); err != nil {
		t.Fatal(err)
	}
	eth0.desired.connections = eth0.desired.connections[:0:0]
	if _, _, err := a.assign(1001, local.Request{Assign: "shop/web"}, connection(2)); err != nil {
		t.Fatal(err)
	}
	delete(m.assigned, fmt.Sprint("eth0 ", connection(3))) // its group was removed for a while
	if err := a.reconcileConnections(eth0, fakeEngine{m}); err != nil {
		t.Error(err)
	}
	if want := map[string]string{fmt.Sprint("eth0 ", connection(2)): "shop/web"}; !maps.Equal(m.assigned, want) {
		t.Errorf("assigned: %v, want %v", m.assigned, want)
	}
}

// A connection that cannot be assigned does not prevent the assignment of others, and is logged.
func TestControllerAssignsTheRest(t *testing.T) {
	a, m := passing(t, passedFiles)
	a.Log = slog.New(slog.NewTextHandler(&m.log, nil))
	eth0 := a.devices[0]
	wants := func(groups ...string) {
		eth0.desired.connections = nil
		for i, g := range groups {
			eth0.desired.connections = append(eth0.desired.connections, shaper.Assignment{Conn: connection(i + 1), Group: g})
		}
	}
	is := func(ports ...int) {
		t.Helper()
		want := map[string]string{}
		for _, p := range ports {
			want[fmt.Sprint("eth0 ", connection(p))] = eth0.desired.connections[p-1].Group
		}
		if !maps.Equal(m.assigned, want) || len(eth0.assigned) != len(want) {
			t.Errorf("assigned: %v, want %v; recorded: %v", m.assigned, want, eth0.assigned)
		}
	}
	wants("both", "shop", "shop/web", "web", "none", "both") // shop is a parent group, and web is not a path
	if err := a.reconcileConnections(eth0, fakeEngine{m}); err != nil {
		t.Fatal(err)
	}
	is(1, 3, 6)
	m.wantLog(`connection tcp 10.0.0.1:2 10.0.0.2:443: there is no leaf group \"shop\"`, 1)
	m.refused = connection(4)
	wants("both", "both", "shop/web", "both", "both", "both", "both")
	if err := a.reconcileConnections(eth0, fakeEngine{m}); err != nil {
		t.Fatal(err)
	}
	is(1, 2, 3, 5, 6, 7)
	m.wantLog("connections=1", 1)
	// If no connection can be assigned, place fails for the device.
	m.full = "eth0"
	if err := a.reconcileConnections(eth0, fakeEngine{m}); err == nil {
		t.Error("place succeeded although no connection can be assigned")
	}
}

// The connections of a user whose programs do not unassign them are bounded.
func TestUserConnectionLimit(t *testing.T) {
	a, m := passing(t, passedFiles)
	put := func(user uint32, port int) {
		t.Helper()
		if _, _, err := a.assign(user, local.Request{Assign: "both", Dev: "eth0"}, connection(port)); err != nil {
			t.Fatal(err)
		}
	}
	has := func(port int) bool { return m.assigned[fmt.Sprint("eth0 ", connection(port))] != "" }
	put(0, 9000) // root has no limit
	put(1001, 1)
	put(1001, 2)
	if _, err := a.unassign(1001, "", connection(2)); err != nil {
		t.Fatal(err)
	}
	for port := 3; port < maxConnectionsPerUser+3; port++ {
		put(1001, port)
		put(1001, port) // a repetition has no effect
	}
	if has(1) || !has(3) || len(m.assigned) != maxConnectionsPerUser+1 || len(a.userAssignments[1001]) != maxConnectionsPerUser {
		t.Errorf("%d are assigned, %d counted; first still assigned: %v", len(m.assigned), len(a.userAssignments[1001]), has(1))
	}
	// Connections that others moved since are not unassigned.
	m.assigned[fmt.Sprint("eth0 ", connection(3))] = "rest"
	a.devices[0].desired.connections = []shaper.Assignment{{Conn: connection(4), Group: "both"}}
	put(1001, 5000)
	put(1001, 5001)
	put(1001, 5002)
	if !has(3) || !has(4) || has(5) {
		t.Errorf("still assigned of the oldest three: %v", slices.Collect(maps.Keys(m.assigned)))
	}
}
