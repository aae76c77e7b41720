package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate/config"
	"headgate/group"
	"headgate/shaper"
)

// document gives a device one group with that limit.
func document(dev, limit string, match ...string) string {
	return fmt.Sprintf("kind: Interface\ndev: %q\nout: {limit: %s, groups: [{name: a, guarantee: 10%%, match: [%s]}, {name: rest, default: true}]}\n---\n",
		dev, limit, strings.Join(append(match, "{dport: 80}"), ", "))
}

func eth0(index int) Device { return Device{Index: index, Name: "eth0", MTU: 1500, Up: true} }

// timeline runs a story in virtual time with an agent that is there from the
// start, and ends it.
func timeline(t *testing.T, files string, devices []Device, story func(*machine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, files)
		m.devices = devices
		stop := m.run()
		story(m)
		if err := stop(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
}

func TestAtStart(t *testing.T) {
	timeline(t, document("eth0", "1Gbit")+document("eth1", "1Gbit"), []Device{eth0(2), {Index: 1, Name: "lo"}}, func(m *machine) {
		m.want(2, "1Gbit")
		m.want(1, "")
		m.wantLog("waits for a device", 1)
		if got := m.notified[len(m.notified)-1]; got != "READY=1\nSTATUS=groups in force on 1 of 1 devices" {
			t.Errorf("the service manager was told %q", got)
		}
	})
}

func TestDeviceComesGoesAndReturns(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), nil, func(m *machine) {
		m.after(time.Hour)
		m.add(eth0(2))
		m.after(settle)
		m.want(2, "1Gbit")
		m.remove(2)
		m.after(settle)
		m.wantLog("the device is gone", 1)
		if !slices.Equal(m.cleared, []string{"eth0"}) {
			t.Errorf("cleared %v: the IFB of a device that is gone must not stay", m.cleared)
		}
		m.add(eth0(7))
		m.after(settle)
		m.want(7, "1Gbit")
	})
}

func TestPatternTakesInWhatComesLater(t *testing.T) {
	timeline(t, document("[hlv]*", "1Gbit")+document("veth1", "2Gbit"), nil, func(m *machine) {
		for i := range 3 {
			m.add(Device{Index: i + 10, Name: fmt.Sprintf("veth%d", i)})
		}
		m.add(Device{Index: 1, Name: "lo"})
		m.add(Device{Index: 20, Name: "hgi10"}) // made for veth0
		m.after(settle)
		m.want(10, "1Gbit")
		m.want(11, "2Gbit")
		m.want(12, "1Gbit")
		m.want(1, "")
		m.want(20, "")
	})
}

func TestRename(t *testing.T) {
	timeline(t, document("wan", "1Gbit")+document("eth*", "2Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.want(2, "2Gbit")
		m.devices[0].Name = "wan"
		m.event(Event{})
		m.after(settle)
		m.want(2, "1Gbit")
		m.devices[0].Name = "lan"
		m.event(Event{})
		m.after(settle)
		m.want(2, "") // no file names it
	})
}

func TestMTU(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.after(time.Second)
		m.devices[0].MTU = 9000
		m.drift[2] = true // its leaves are for 1,500 bytes
		m.event(Event{})
		m.after(settle)
		m.want(2, "1Gbit")
		m.wantLog("another program", 0)
	})
}

func TestCgroup(t *testing.T) {
	files := document("eth0", "1Gbit", "{cgroup: /system.slice/nginx.service}")
	timeline(t, files, []Device{eth0(2)}, func(m *machine) {
		const nginx = "/system.slice/nginx.service"
		rules := func() int { return len(m.force[2].Out.Rules) }
		if rules() != 1 {
			t.Errorf("%d rules before the cgroup exists, want the other one", rules())
		}
		m.wantLog("rules wait for cgroups", 1)
		if !slices.Equal(m.watched, []string{nginx}) {
			t.Errorf("watches %v", m.watched)
		}
		for _, id := range []uint64{77, 78} { // started, and started again
			m.ids[nginx] = id
			m.drift[2] = id == 78 // the rule has the old id
			m.event(Event{})
			m.after(settle)
			if rules() != 2 || m.drift[2] {
				t.Errorf("cgroup with id %d: %d rules, out of date %v", id, rules(), m.drift[2])
			}
		}
		m.wantLog("another program", 0)
	})
}

// What others remove comes back at once, and ever more slowly if they insist.
func TestDriftIsRepairedButNotFoughtOver(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.after(time.Second)
		m.meddle(2)
		m.after(settle)
		m.want(2, "1Gbit")
		m.wantLog("another program", 1)
		m.applied = nil
		for range 600 { // for ten minutes
			if m.limit(2) != "" {
				m.meddle(2)
			}
			m.after(time.Second)
		}
		if n := len(m.applied); n < 10 || n > 20 {
			t.Errorf("%d repairs in ten minutes: %v", n, m.applied)
		}
		m.after(5 * time.Minute)
		m.want(2, "1Gbit")
		m.applied = nil
		m.meddle(2)
		m.after(settle)
		m.want(2, "1Gbit") // at once again, after it was calm
	})
}

func TestForeignIsTriedAgain(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), nil, func(m *machine) {
		m.foreign[2] = true
		m.add(eth0(2))
		m.after(5 * time.Minute)
		m.wantLog("cannot be put in force", 1)
		if n := len(m.tried); n < 8 || n > 12 {
			t.Errorf("tried %d times in five minutes: %v", n, m.tried)
		}
		m.foreign[2] = false
		m.event(Event{Removed: 2})
		m.after(firstPause)
		m.want(2, "1Gbit")
	})
}

func TestReload(t *testing.T) {
	timeline(t, document("eth0", "1Gbit")+document("eth1", "1Gbit"), []Device{eth0(2), {Index: 3, Name: "eth1"}}, func(m *machine) {
		reload := func(files string) {
			m.files = files
			m.reload <- struct{}{}
			m.after(0)
		}
		reload(document("eth0", "2Gbit"))
		m.want(2, "2Gbit")
		m.want(3, "") // given back
		reload("kind: Interface\ndev: eth0\n")
		m.want(2, "2Gbit")
		m.wantLog("the files have mistakes", 1)
		m.wantLog("neither out nor in is given", 1)
		told := strings.Join(m.notified, " ")
		if strings.Count(told, "RELOADING=1") != 2 || strings.Count(told, "READY=1") != 3 {
			t.Errorf("the service manager was told %q", told)
		}
	})
}

// What headgate apply did by hand stays, and is kept in repair, until the files
// are read again or the device comes anew.
func TestAppliedByHand(t *testing.T) {
	hand, err := config.Parse("hand", []byte(document("eth0", "5Gbit")))
	if err != nil {
		t.Fatal(err)
	}
	byHand := func() *shaper.Plan { return &shaper.Plan{Dev: "eth0", Out: hand.Interfaces[0].OutTree} }
	timeline(t, document("eth0", "1Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.force[2] = byHand()
		m.event(Event{Removed: 2})
		m.after(time.Hour)
		m.want(2, "5Gbit")
		m.wantLog("applied by hand", 1)
		m.wantTold(`applied by hand`)
		m.meddle(2)
		m.after(settle)
		m.want(2, "5Gbit")
		m.wantTold(`"headgate clear --dev eth0") or`)
		m.wantTold(`[eth0]`)
		m.reload <- struct{}{}
		m.after(0)
		m.want(2, "1Gbit")
		m.wantTold("")

		m.force[2] = byHand()
		m.event(Event{Removed: 2})
		m.after(time.Minute)
		m.wantTold(`applied by hand`)
		m.force[2] = nil // cleared
		m.event(Event{Removed: 2})
		m.after(settle)
		m.want(2, "1Gbit")
		m.wantTold("")

		m.force[2] = byHand()
		m.event(Event{Removed: 2})
		m.after(time.Minute)
		m.remove(2)
		m.add(eth0(3))
		m.after(settle)
		m.want(3, "1Gbit")

		m.force[3] = byHand()
		m.files = document("eth1", "1Gbit")
		m.reload <- struct{}{}
		m.after(0)
		m.want(3, "5Gbit") // not the agent's to take away
	})
}

func TestAChangeThatWaitsForConfirmationIsLeftAlone(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), nil, func(m *machine) {
		m.pending = []string{"eth0"}
		m.add(eth0(2))
		m.after(time.Minute)
		m.want(2, "")
		m.wantTold("waits for its confirmation")
		m.wantTold("[eth0]")
		m.pending = nil
		m.after(pendingPause)
		m.want(2, "1Gbit")
		m.wantTold("")
	})
}

func TestClearedByHandComesBack(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.force[2] = nil
		m.event(Event{Removed: 2})
		m.after(settle)
		m.want(2, "1Gbit")
		if pid, source, ok := Owner(m.dir, "eth0"); !ok || pid == 0 || source != "files" {
			t.Errorf("Owner: %d %v %v: clear could not warn of the agent", pid, source, ok)
		}
		if _, _, ok := Owner(m.dir, "eth1"); ok {
			t.Error("eth1 is no agent's, but Owner says so")
		}
	})
}

func TestStoppingAndRestarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, document("eth*", "1Gbit"))
		m.devices = []Device{eth0(2), {Index: 3, Name: "eth1"}}
		stop := m.run()
		if _, err := NewClaim(m.dir, nil); err == nil || !strings.Contains(err.Error(), "an agent runs already") {
			t.Errorf("a second agent: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		m.want(2, "1Gbit")
		if last := m.notified[len(m.notified)-1]; last != "STOPPING=1" {
			t.Errorf("the service manager was told %q last", last)
		}
		if _, _, ok := Owner(m.dir, "eth0"); ok {
			t.Error("eth0 is still somebody's after the agent stopped")
		}
		m.files = document("eth0", "1Gbit")
		stop = m.run()
		m.want(2, "1Gbit")
		m.want(3, "") // the agent before made it, and no file names it now
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestEndsWithoutPermissionOrFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, document("eth0", "1Gbit"))
		m.devices, m.denied = []Device{eth0(2)}, true
		if err := m.run()(); !errors.Is(err, shaper.ErrPermission) {
			t.Errorf("without permission: %v", err)
		}
		m.files = "dev: eth0"
		var mistakes config.Mistakes
		if err := m.run()(); !errors.As(err, &mistakes) {
			t.Errorf("with mistakes in the files: %v", err)
		}
	})
}

func TestWatchdogHearsTheLoop(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), nil, func(m *machine) {
		m.notified = nil
		m.after(time.Minute)
		if n := strings.Count(strings.Join(m.notified, " "), "WATCHDOG=1"); n < 5 {
			t.Errorf("%d heartbeats in a minute, want one in 10 s", n)
		}
	})
}

// What there is, and what is not as it is wanted, is told when it is another, and not because
// something happened.
func TestToldOnADifference(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.event(Event{}) // with it the first round is over
		m.after(settle)
		if len(m.told) != 1 {
			t.Errorf("at first it was told %q", m.told)
		}
		for range 100 {
			m.event(Event{Removed: 2})
			m.event(Event{})
			m.after(time.Minute)
		}
		if len(m.told) != 1 {
			t.Errorf("with nothing new it was told %q", m.told)
		}
		m.add(Device{Index: 3, Name: "eth1"})
		m.after(settle)
		if len(m.told) != 2 {
			t.Errorf("after a device came it was told %q", m.told)
		}
		m.reload <- struct{}{}
		m.after(0)
		if len(m.told) != 3 {
			t.Errorf("after a reload it was told %q", m.told)
		}
	})
}

// An agent that is replaced by one of an earlier version, which does not understand what is wanted,
// leaves its groups to that one until nothing is wanted any more.
func TestWhatIsNotUnderstoodStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, document("eth0", "1Gbit")+document("eth1", "1Gbit"))
		m.devices = []Device{eth0(2), {Index: 3, Name: "eth1"}, {Index: 4, Name: "eth3", AltNames: []string{"enp0s3"}}, {Index: 5, Name: "eth4", AltNames: []string{"wan7"}}}
		m.files += document("eth3", "1Gbit") + document("eth4", "1Gbit")
		if err := m.run()(); err != nil {
			t.Error(err)
		}
		m.files, m.unknown = document("eth2", "1Gbit"), []string{"eth0", "enp0s3", "wan*"}
		stop := m.run()
		m.after(time.Hour)
		for _, index := range []int{2, 4, 5} {
			m.want(index, "1Gbit")
		}
		m.want(3, "")
		m.turn.Add(1)
		m.unknown = nil
		m.after(lookEvery)
		for _, index := range []int{2, 4, 5} {
			m.want(index, "")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Of many devices those that have nothing come first, the newest before the others, and what is told of the IFB of
// one is about no other.
func TestNewestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, document("veth*", "10mbit"))
		for i := range 30 {
			m.devices = append(m.devices, Device{Index: 10 + i, Name: fmt.Sprint("veth", i)})
		}
		stop := m.run()
		if m.applied[0] != "0s veth29" || m.applied[29] != "0s veth0" {
			t.Errorf("thirty devices were divided in the order of %v", m.applied)
		}
		m.applied, m.tried = nil, nil
		m.devices = append(m.devices, Device{Index: 90, Name: group.IFBPrefix + "12"}, Device{Index: 91, Name: "veth99"})
		m.event(Event{Removed: 90}) // before anything is known of it
		m.event(Event{})
		m.after(time.Second)
		if fmt.Sprint(m.applied) != "[1s veth99]" && fmt.Sprint(m.applied) != "[0s veth99]" {
			t.Errorf("then %v were divided", m.applied)
		}
		if len(m.tried) != 2 || !strings.HasSuffix(m.tried[1], " veth2") {
			t.Errorf("%v were looked at, want the new one and then the one whose IFB was touched", m.tried)
		}
		m.tried = nil
		m.event(Event{Removed: 77}) // one that came and went
		m.event(Event{})
		m.after(time.Second)
		if len(m.tried) != 31 {
			t.Errorf("%d devices were looked at, want all", len(m.tried))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
