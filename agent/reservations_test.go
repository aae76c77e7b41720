package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/agent/reserved"
	"headgate.dev/headgate/api/local"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

const guaranteed = `
kind: Interface
dev: eth0
out: {limit: 100Mbit, groups: [{name: web, guarantee: 60Mbit, match: [{dport: 80}]}, {name: rest, default: true}]}
`

func granted(dev string, rates ...unit.Rate) *reserved.Desired {
	d := &reserved.Desired{Lines: map[string]unit.Rate{}, Received: true}
	for n, rate := range rates {
		d.Reservations = append(d.Reservations, reserved.Reservation{
			Key: fmt.Sprintf("acme/r%d/forward", n), Dev: dev, Rate: rate, Limit: rate, Class: 1,
			Traffic: []group.Selector{{Dst: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", n))}}},
		})
	}
	return d
}

func (m *machine) grant(d *reserved.Desired) {
	*m.granted = *d
	m.refresh <- struct{}{}
	synctest.Wait()
}

func (m *machine) setLimit(n int, limit unit.Rate) {
	list := slices.Clone(m.granted.Reservations)
	list[n].Limit = limit
	m.granted.Reservations = list
	m.newLimits <- struct{}{}
	synctest.Wait()
}

// paths returns the groups of a device's applied plan.
func (m *machine) paths(index int) string {
	var out []string
	if p := m.force[index]; p != nil {
		for _, n := range p.Out.Nodes {
			out = append(out, n.Path)
		}
	}
	return strings.Join(out, " ")
}

func (m *machine) wantPaths(index int, want string) {
	m.Helper()
	if got := m.paths(index); got != want {
		m.Errorf("after %v device %d has the groups %q, want %q\n%s", time.Since(m.start), index, got, want, m.log.String())
	}
}

const r0, r1 = "reservation:acme:r0:forward", "reservation:acme:r1:forward"

func TestReservationsBesideGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, guaranteed)
		m.devices = []Device{{Index: 2, Name: "eth0"}, {Index: 3, Name: "eth1"}}
		m.granted = granted("eth0", 30*unit.Mbit, 11*unit.Mbit)
		stop := m.run()
		defer stop()
		m.wantPaths(2, "web rest "+r0)
		m.wantPaths(3, "")
		if m.limits[r0] != 30*unit.Mbit || !strings.Contains(m.lacking["acme/r1/forward"], "10Mbit of its limit of 100Mbit are free") || len(m.lacking) != 1 {
			t.Errorf("limits %v, refused %v", m.limits, m.lacking)
		}

		// A limit changes without an apply.
		applies, adjusts := len(m.tried), len(m.adjusted)
		m.setLimit(0, 70*unit.Mbit)
		if m.limits[r0] != 70*unit.Mbit || len(m.tried) != applies || len(m.adjusted) != adjusts+1 {
			t.Errorf("limits %v after %d applies and %d adjustments", m.limits, len(m.tried)-applies, len(m.adjusted)-adjusts)
		}
		m.setLimit(0, 70*unit.Mbit)
		if len(m.adjusted) != adjusts+1 {
			t.Error("a limit that is in force is set again")
		}

		// The state file has it within a second, and names the group.
		m.after(limitsInterval)
		if got := readState(t, m).Limits["acme/r0/forward"]; got != 70*unit.Mbit {
			t.Errorf("the state file has the limit %v", got)
		}
		if of := Origins(m.dir, "eth0"); of["out/"+r0] != group.OriginReservation || len(of) != 1 {
			t.Errorf("the origins are %v", of)
		}

		// A limit that another program changed is set again at the next check.
		m.limits[r0] = unit.Mbit
		m.after(resyncInterval + time.Second)
		if m.limits[r0] != 70*unit.Mbit {
			t.Errorf("after the check of drift the limit is %v", m.limits[r0])
		}

		// A reservation ends; its group goes, and the configured ones stay.
		m.grant(granted("eth0"))
		m.wantPaths(2, "web rest")
		if len(m.cleared) > 0 || len(m.lacking) > 0 {
			t.Errorf("cleared %v, refused %v", m.cleared, m.lacking)
		}
	})
}

func TestReservationsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, guaranteed)
		m.devices = []Device{{Index: 3, Name: "eth1"}}
		m.granted = granted("eth1", 30*unit.Mbit)
		stop := m.run()
		defer stop()
		m.wantPaths(3, "")
		if !strings.Contains(m.lacking["acme/r0/forward"], "capacity of the line behind eth1 is not known") {
			t.Errorf("without a capacity refused are %v", m.lacking)
		}
		with := granted("eth1", 30*unit.Mbit)
		with.Lines["eth1"] = unit.Gbit
		m.grant(with)
		m.wantPaths(3, reserved.RestPath+" "+r0)
		m.desired(3, "1Gbit")
		if len(m.lacking) > 0 {
			t.Errorf("refused are %v", m.lacking)
		}
		if pid, source, ok := Owner(m.dir, "eth1"); !ok || pid == 0 || source != reservationSource {
			t.Errorf("the owner is %v, %v", source, ok)
		}
		// Nobody's connection comes into the group of a reservation.
		if _, err := m.force[3].Leaf(r0); err == nil || !strings.Contains(err.Error(), "change the reservation") {
			t.Errorf("the group of a reservation can be assigned to: %v", err)
		}
		if _, _, err := (&Agent{devices: map[int]*deviceState{3: {name: "eth1", appliedHash: "x", desired: &DesiredState{engine: group.HTB, plan: *m.force[3]}}}}).assign(0, local.Request{Assign: r0}, shaper.Conn{}); err == nil {
			t.Error("a connection is assigned to the group of a reservation")
		}

		// The last reservation ends, and with it all of Headgate's traffic control on the device.
		with.Reservations = nil
		m.grant(with)
		if m.force[3] != nil || len(m.cleared) != 1 {
			t.Errorf("after the last reservation the device has %q", m.paths(3))
		}
	})
}

// After a kill the agent has the limits of the state file until a controller sends others, and a device that is created again
// gets them too.
func TestReservationsAfterKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, guaranteed)
		m.devices = []Device{{Index: 2, Name: "eth0"}}
		m.granted = granted("eth0", 30*unit.Mbit)
		stop := m.run()
		m.setLimit(0, 70*unit.Mbit)
		m.after(limitsInterval)
		stop()

		stored := granted("eth0", 30*unit.Mbit) // the list on disk has the limit of when it came
		stored.Received = false
		m.granted, m.limits = stored, map[string]unit.Rate{}
		stop = m.run()
		if m.limits[r0] != 70*unit.Mbit {
			t.Errorf("after a kill the limit is %v", m.limits[r0])
		}
		m.remove(2)
		m.after(time.Second)
		m.limits = map[string]unit.Rate{}
		m.add(Device{Index: 9, Name: "eth0"})
		m.after(time.Second)
		if m.limits[r0] != 70*unit.Mbit {
			t.Errorf("on a new device the limit is %v", m.limits[r0])
		}
		m.grant(granted("eth0", 20*unit.Mbit))
		if m.limits[r0] != 20*unit.Mbit {
			t.Errorf("after a new list the limit is %v", m.limits[r0])
		}
		stop()
	})
}

func TestReservationsThatCannotBeEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, guaranteed+"---\n"+strings.NewReplacer("eth0", "tap0\nperspective: guest").Replace(guaranteed)+"---\n"+strings.NewReplacer("eth0", "eth3\nengine: quantum").Replace(guaranteed))
		m.devices = []Device{{Index: 2, Name: "eth0"}, {Index: 3, Name: "tap0"}, {Index: 4, Name: "eth3"}, {Index: 5, Name: "eth5"}}
		m.unknown = []string{"eth5"}
		m.granted = granted("none", unit.Mbit, unit.Mbit, unit.Mbit, unit.Mbit)
		for n, dev := range []string{"tap0", "eth3", "eth5"} {
			m.granted.Reservations[n].Dev, m.granted.Lines[dev] = dev, unit.Gbit
		}
		stop := m.run()
		defer stop()
		for n, want := range []string{"perspective: guest", "engine quantum", "cannot parse", "no interface none"} {
			if got := m.lacking[fmt.Sprintf("acme/r%d/forward", n)]; !strings.Contains(got, want) {
				t.Errorf("reservation %d: %q, want %q", n, got, want)
			}
		}
		m.wantPaths(5, "")

		// Foreign traffic control: the reason is that of the device.
		m.foreign[2] = true
		m.grant(granted("eth0", unit.Mbit))
		if got := m.lacking["acme/r0/forward"]; !strings.Contains(got, "foreign traffic control") {
			t.Errorf("with foreign traffic control: %q", got)
		}
		delete(m.foreign, 2)
		m.after(maxBackoff)
		if len(m.lacking) > 0 {
			t.Errorf("without foreign traffic control refused are %v", m.lacking)
		}

		// A limit that cannot be set is reported, and tried again.
		m.adjustErr = errors.New("no memory")
		m.setLimit(0, 2*unit.Mbit)
		m.after(time.Second)
		if got := m.lacking["acme/r0/forward"]; got != "no memory" {
			t.Errorf("with a limit that is not in force: %q", got)
		}
		m.adjustErr = nil
		m.after(maxBackoff)
		if len(m.lacking) > 0 || m.limits[r0] != 2*unit.Mbit {
			t.Errorf("limits %v, refused %v", m.limits, m.lacking)
		}
	})
}

// readState reads the state file.
func readState(t *testing.T, m *machine) stateFileContent {
	t.Helper()
	name, err := claimPath(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return readClaim(f)
}

// The hash of a plan is that of versions without reservations, and depends on which groups are adjustable.
func TestPlanHash(t *testing.T) {
	p := shaper.Plan{Dev: "eth0", Out: &group.Tree{Limit: unit.Mbit, Spare: group.Equal, Nodes: []group.Node{{Path: "a", Parent: -1, Depth: 1, Leaf: true, Guarantee: 8, Ceiling: 9}}}}
	const former = "e4386f2a67ab3400"
	if got := planHash(p); got != former {
		t.Errorf("the hash is %s, before it was %s", got, former)
	}
	p.Out.Nodes[0].Adjustable = true
	if planHash(p) == former {
		t.Error("an adjustable group does not change the hash")
	}
}
