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

	"headgate/api/local"
	"headgate/config"
	"headgate/group"
	"headgate/shaper"
)

// passing is an agent that has put its files in force on a device for each, as far as what
// programs ask of it goes.
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
	a := &Agent{Claim: claim, Engines: map[group.Engine]shaper.Shaper{group.HTB: fakeEngine{m}}, set: set, named: set, devices: map[int]*memory{}, Log: slog.New(slog.DiscardHandler)}
	for n, i := range set.Interfaces {
		a.devices[n] = &memory{name: i.Dev, mine: "x", want: &want{engine: group.HTB, plan: shaper.Plan{Dev: i.Dev, Out: i.OutTree, In: i.InTree}}}
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

// Who may put a connection where.
func TestPassedTo(t *testing.T) {
	a, m := passing(t, passedFiles)
	c := connection(1)
	for _, x := range []struct {
		user      uint32
		group     string
		dev, want string // want begins with the devices, or is in the error
		denied    bool
	}{
		{1001, "both", "", "[eth0 eth1] both", false},
		{1001, "both", "eth1", "[eth1] both", false},
		{1001, "both", "eth2", `divides no device "eth2"`, false},
		{1002, "both", "", "may not put connections in the group both of eth1", true},
		{1001, "shop/web", "", "[eth0] shop/web", false},
		{1002, "shop/web", "", "may not put", true},
		{1002, "shop/backup", "", "[eth0] shop/backup", false},
		{1001, "backup", "", "[eth0] shop/backup", false},
		{1001, "web", "", "[eth0] shop/web", false}, // eth1's is not for this user
		{0, "web", "", `"web" is shop/web on one device, and web on another`, false},
		{1001, "shop", "", `there is no group "shop"`, false},
		{1001, "none", "", `there is no group "none"`, false},
		{1001, "rest", "", "may not put", true},
		{0, "rest", "", "[eth0 eth1] rest", false},
		{1001, "oneway", "", "may not put connections in the group oneway of eth0", true}, // what comes in would go there, too
		{0, "oneway", "", "[eth0] oneway", false},
	} {
		clear(m.assigned)
		path, devs, err := a.assign(x.user, local.Request{Assign: x.group, Dev: x.dev}, c)
		got := fmt.Sprint(devs, " ", path)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, x.want) || errors.Is(err, os.ErrPermission) != x.denied || (err != nil) == (len(m.assigned) > 0) {
			t.Errorf("user %d, %s on %q: %s, want %q; assigned are %v", x.user, x.group, x.dev, got, x.want, m.assigned)
		}
	}
}

// What somebody else has placed is not a program's to move, and least of all the service's.
func TestPassedFromElsewhere(t *testing.T) {
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
			t.Errorf("user %d to %q: %v, want %q; assigned are %v, and were %v", user, group, err, want, m.assigned, before)
		}
	}
	ask(1001, "", "was put in no group")
	ask(0, "rest", "")
	ask(1001, "both", "in the group rest of eth0, which is not the user 1001's to take it out of")
	ask(1001, "", "not the user 1001's")
	ask(0, "", "")
	ask(1001, "both", "")
	ask(1001, "shop/web", "")
	if got := m.assigned[fmt.Sprint("eth1 ", c)]; got != "both" {
		t.Errorf("where it has no new group it is in %q", got)
	}
	ask(1001, "", "")
	if len(m.assigned) > 0 {
		t.Errorf("given back are not %v", m.assigned)
	}
	a.devices[0].want.connections = []shaper.Assignment{{Conn: turned, Group: "shop/web"}}
	ask(1001, "both", "the service has the connection tcp 10.0.0.1:1 10.0.0.2:443 in the group shop/web of eth0")
	ask(0, "both", "the service has the connection")
	ask(1001, "", "the service has the connection")
	a.devices[0].want.connections = nil
	m.full = "eth1"
	ask(1001, "both", "no room") // and eth0 has it back, too
}

// What the service gives back goes to the rules, if it is where the service has put it.
func TestServiceGivesBack(t *testing.T) {
	a, m := passing(t, passedFiles)
	eth0 := a.devices[0]
	eth0.want.connections = []shaper.Assignment{{Conn: connection(1), Group: "both"}, {Conn: connection(2), Group: "both"}, {Conn: connection(3), Group: "both"}}
	if err := a.place(eth0, fakeEngine{m}); err != nil {
		t.Fatal(err)
	}
	eth0.want.connections = eth0.want.connections[:0:0]
	if _, _, err := a.assign(1001, local.Request{Assign: "shop/web"}, connection(2)); err != nil {
		t.Fatal(err)
	}
	delete(m.assigned, fmt.Sprint("eth0 ", connection(3))) // its group was removed for a while
	if err := a.place(eth0, fakeEngine{m}); err != nil {
		t.Error(err)
	}
	if want := map[string]string{fmt.Sprint("eth0 ", connection(2)): "shop/web"}; !maps.Equal(m.assigned, want) {
		t.Errorf("assigned are %v, want %v", m.assigned, want)
	}
}

// A connection that cannot be where the service wants it keeps no other from its place, and is told
// of.
func TestServicePlacesTheRest(t *testing.T) {
	a, m := passing(t, passedFiles)
	a.Log = slog.New(slog.NewTextHandler(&m.log, nil))
	eth0 := a.devices[0]
	wants := func(groups ...string) {
		eth0.want.connections = nil
		for i, g := range groups {
			eth0.want.connections = append(eth0.want.connections, shaper.Assignment{Conn: connection(i + 1), Group: g})
		}
	}
	is := func(ports ...int) {
		t.Helper()
		want := map[string]string{}
		for _, p := range ports {
			want[fmt.Sprint("eth0 ", connection(p))] = eth0.want.connections[p-1].Group
		}
		if !maps.Equal(m.assigned, want) || len(eth0.assigned) != len(want) {
			t.Errorf("assigned are %v, want %v; remembered are %v", m.assigned, want, eth0.assigned)
		}
	}
	wants("both", "shop", "shop/web", "web", "none", "both") // shop is divided, and web is no path
	if err := a.place(eth0, fakeEngine{m}); err != nil {
		t.Fatal(err)
	}
	is(1, 3, 6)
	m.wantLog(`the connection tcp 10.0.0.1:2 10.0.0.2:443: there is no group \"shop\" that connections may be in`, 1)
	m.refused = connection(4)
	wants("both", "both", "shop/web", "both", "both", "both", "both")
	if err := a.place(eth0, fakeEngine{m}); err != nil {
		t.Fatal(err)
	}
	is(1, 2, 3, 5, 6, 7)
	m.wantLog("connections=1", 1)
	// If none can be it is the device that is in trouble.
	m.full = "eth0"
	if err := a.place(eth0, fakeEngine{m}); err == nil {
		t.Error("what cannot be at all is none")
	}
}

// A program that gives nothing back takes no more than so many places.
func TestPassedTooMany(t *testing.T) {
	a, m := passing(t, passedFiles)
	put := func(user uint32, port int) {
		t.Helper()
		if _, _, err := a.assign(user, local.Request{Assign: "both", Dev: "eth0"}, connection(port)); err != nil {
			t.Fatal(err)
		}
	}
	has := func(port int) bool { return m.assigned[fmt.Sprint("eth0 ", connection(port))] != "" }
	put(0, 9000) // root's do not count
	put(1001, 1)
	put(1001, 2)
	if _, err := a.unassign(1001, "", connection(2)); err != nil {
		t.Fatal(err)
	}
	for port := 3; port < mostOfUser+3; port++ {
		put(1001, port)
		put(1001, port) // once more is the same
	}
	if has(1) || !has(3) || len(m.assigned) != mostOfUser+1 || len(a.passed[1001]) != mostOfUser {
		t.Errorf("%d are assigned, %d counted; the first still: %v", len(m.assigned), len(a.passed[1001]), has(1))
	}
	// What others have done about it since is left alone.
	m.assigned[fmt.Sprint("eth0 ", connection(3))] = "rest"
	a.devices[0].want.connections = []shaper.Assignment{{Conn: connection(4), Group: "both"}}
	put(1001, 5000)
	put(1001, 5001)
	put(1001, 5002)
	if !has(3) || !has(4) || has(5) {
		t.Errorf("of the oldest three are assigned still: %v", slices.Collect(maps.Keys(m.assigned)))
	}
}
