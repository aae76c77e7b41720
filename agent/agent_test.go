package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
)

// document returns a configuration that gives a device one group and the default group.
func document(dev, limit string, match ...string) string {
	return fmt.Sprintf("kind: Interface\ndev: %q\nout: {limit: %s, groups: [{name: a, guarantee: 10%%, match: [%s]}, {name: rest, default: true}]}\n---\n",
		dev, limit, strings.Join(append(match, "{dport: 80}"), ", "))
}

func eth0(index int) Device { return Device{Index: index, Name: "eth0", MTU: 1500, Up: true} }

// timeline runs story in virtual time with an agent that runs from the start, then stops the agent.
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

func TestStart(t *testing.T) {
	timeline(t, document("eth0", "1Gbit")+document("eth1", "1Gbit"), []Device{eth0(2), {Index: 1, Name: "lo"}}, func(m *machine) {
		m.desired(2, "1Gbit")
		m.desired(1, "")
		m.wantLog("waiting for device", 1)
		if got := m.notified[len(m.notified)-1]; got != "READY=1\nSTATUS=shaping 1 of 1 devices" {
			t.Errorf("messages to the service manager: %q", got)
		}
	})
}

func TestDeviceComesGoesAndReturns(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), nil, func(m *machine) {
		m.after(time.Hour)
		m.add(eth0(2))
		m.after(settleDelay)
		m.desired(2, "1Gbit")
		m.remove(2)
		m.after(settleDelay)
		m.wantLog("device removed", 1)
		if !slices.Equal(m.cleared, []string{"eth0"}) {
			t.Errorf("cleared %v, want eth0: the IFB of a removed device must be removed", m.cleared)
		}
		m.add(eth0(7))
		m.after(settleDelay)
		m.desired(7, "1Gbit")
	})
}

func TestPatternMatchesNewDevices(t *testing.T) {
	timeline(t, document("[hlv]*", "1Gbit")+document("veth1", "2Gbit"), nil, func(m *machine) {
		for i := range 3 {
			m.add(Device{Index: i + 10, Name: fmt.Sprintf("veth%d", i)})
		}
		m.add(Device{Index: 1, Name: "lo"})
		m.add(Device{Index: 20, Name: "hgi10"}) // the IFB of veth0
		m.after(settleDelay)
		m.desired(10, "1Gbit")
		m.desired(11, "2Gbit")
		m.desired(12, "1Gbit")
		m.desired(1, "")
		m.desired(20, "")
	})
}

func TestRename(t *testing.T) {
	timeline(t, document("wan", "1Gbit")+document("eth*", "2Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.desired(2, "2Gbit")
		m.devices[0].Name = "wan"
		m.event(Event{})
		m.after(settleDelay)
		m.desired(2, "1Gbit")
		m.devices[0].Name = "lan"
		m.event(Event{})
		m.after(settleDelay)
		m.desired(2, "") // not configured
	})
}

func TestMTU(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.after(time.Second)
		m.devices[0].MTU = 9000
		m.drift[2] = true // its leaf queues are for an MTU of 1,500 bytes
		m.event(Event{})
		m.after(settleDelay)
		m.desired(2, "1Gbit")
		m.wantLog("another program", 0)
	})
}

func TestCgroup(t *testing.T) {
	files := document("eth0", "1Gbit", "{cgroup: /system.slice/nginx.service}")
	timeline(t, files, []Device{eth0(2)}, func(m *machine) {
		const nginx = "/system.slice/nginx.service"
		rules := func() int { return len(m.force[2].Out.Rules) }
		if rules() != 1 {
			t.Errorf("%d rules before the cgroup exists, want 1", rules())
		}
		m.wantLog("rules are inactive", 1)
		if !slices.Equal(m.watched, []string{nginx}) {
			t.Errorf("watched cgroups: %v", m.watched)
		}
		for _, id := range []uint64{77, 78} { // started, then restarted
			m.ids[nginx] = id
			m.drift[2] = id == 78 // the rule has the old id
			m.event(Event{})
			m.after(settleDelay)
			if rules() != 2 || m.drift[2] {
				t.Errorf("cgroup with id %d: %d rules, out of date %v", id, rules(), m.drift[2])
			}
		}
		m.wantLog("another program", 0)
	})
}

// What other programs remove is restored at once, and with increasing delays if they remove it
// again and again.
func TestDriftIsRepairedWithBackoff(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.after(time.Second)
		m.meddle(2)
		m.after(settleDelay)
		m.desired(2, "1Gbit")
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
		m.desired(2, "1Gbit")
		m.applied = nil
		m.meddle(2)
		m.after(settleDelay)
		m.desired(2, "1Gbit") // at once again, because the backoff was reset
	})
}

func TestForeignIsRetried(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), nil, func(m *machine) {
		m.foreign[2] = true
		m.add(eth0(2))
		m.after(5 * time.Minute)
		m.wantLog("cannot apply configuration", 1)
		if n := len(m.tried); n < 8 || n > 12 {
			t.Errorf("tried %d times in five minutes: %v", n, m.tried)
		}
		m.foreign[2] = false
		m.event(Event{Removed: 2})
		m.after(minBackoff)
		m.desired(2, "1Gbit")
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
		m.desired(2, "2Gbit")
		m.desired(3, "") // cleared
		reload("kind: Interface\ndev: eth0\n")
		m.desired(2, "2Gbit")
		m.wantLog("cannot load configuration files", 1)
		m.wantLog("neither out nor in is given", 1)
		told := strings.Join(m.notified, " ")
		if strings.Count(told, "RELOADING=1") != 2 || strings.Count(told, "READY=1") != 3 {
			t.Errorf("messages to the service manager: %q", told)
		}
	})
}

// A plan that "headgate apply" applied by hand stays, and is kept in repair, until the files are
// reloaded or the device is recreated.
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
		m.desired(2, "5Gbit")
		m.wantLog("applied by hand", 1)
		m.wantTold(`applied by hand`)
		m.meddle(2)
		m.after(settleDelay)
		m.desired(2, "5Gbit")
		m.wantTold(`"headgate clear --dev eth0") or`)
		m.wantTold(`[eth0]`)
		m.reload <- struct{}{}
		m.after(0)
		m.desired(2, "1Gbit")
		m.wantTold("")

		m.force[2] = byHand()
		m.event(Event{Removed: 2})
		m.after(time.Minute)
		m.wantTold(`applied by hand`)
		m.force[2] = nil // cleared
		m.event(Event{Removed: 2})
		m.after(settleDelay)
		m.desired(2, "1Gbit")
		m.wantTold("")

		m.force[2] = byHand()
		m.event(Event{Removed: 2})
		m.after(time.Minute)
		m.remove(2)
		m.add(eth0(3))
		m.after(settleDelay)
		m.desired(3, "1Gbit")

		m.force[3] = byHand()
		m.files = document("eth1", "1Gbit")
		m.reload <- struct{}{}
		m.after(0)
		m.desired(3, "5Gbit") // not owned by the agent
	})
}

func TestUnconfirmedChangeIsKept(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), nil, func(m *machine) {
		m.pending = []string{"eth0"}
		m.add(eth0(2))
		m.after(time.Minute)
		m.desired(2, "")
		m.wantTold("awaits confirmation")
		m.wantTold("[eth0]")
		m.pending = nil
		m.after(pendingInterval)
		m.desired(2, "1Gbit")
		m.wantTold("")
	})
}

func TestManualClearIsRestored(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.force[2] = nil
		m.event(Event{Removed: 2})
		m.after(settleDelay)
		m.desired(2, "1Gbit")
		if pid, source, ok := Owner(m.dir, "eth0"); !ok || pid == 0 || source != "files" {
			t.Errorf("Owner: %d %v %v, want the agent and its file", pid, source, ok)
		}
		if _, _, ok := Owner(m.dir, "eth1"); ok {
			t.Error("Owner reports an agent for eth1, which is not configured")
		}
	})
}

func TestStoppingAndRestarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, document("eth*", "1Gbit"))
		m.devices = []Device{eth0(2), {Index: 3, Name: "eth1"}}
		stop := m.run()
		if _, err := NewClaim(m.dir, nil); err == nil || !strings.Contains(err.Error(), "another agent is running") {
			t.Errorf("a second agent: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		m.desired(2, "1Gbit")
		if last := m.notified[len(m.notified)-1]; last != "STOPPING=1" {
			t.Errorf("last message to the service manager: %q", last)
		}
		if _, _, ok := Owner(m.dir, "eth0"); ok {
			t.Error("Owner reports an agent for eth0 after the agent stopped")
		}
		m.files = document("eth0", "1Gbit")
		stop = m.run()
		m.desired(2, "1Gbit")
		m.desired(3, "") // shaped by the previous agent, and no longer configured
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestFailsWithoutPermissionOrFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, document("eth0", "1Gbit"))
		m.devices, m.denied = []Device{eth0(2)}, true
		if err := m.run()(); !errors.Is(err, shaper.ErrPermission) {
			t.Errorf("without permission: %v", err)
		}
		m.files = "dev: eth0"
		var mistakes config.Errors
		if err := m.run()(); !errors.As(err, &mistakes) {
			t.Errorf("with errors in the files: %v", err)
		}
	})
}

func TestWatchdogMessages(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), nil, func(m *machine) {
		m.notified = nil
		m.after(time.Minute)
		if n := strings.Count(strings.Join(m.notified, " "), "WATCHDOG=1"); n < 5 {
			t.Errorf("%d watchdog messages in a minute, want one per 10 s", n)
		}
	})
}

// The agent sends a report when its content changed, and not after every event.
func TestReportOnChange(t *testing.T) {
	timeline(t, document("eth0", "1Gbit"), []Device{eth0(2)}, func(m *machine) {
		m.event(Event{}) // ends the first round
		m.after(settleDelay)
		if len(m.lastReport) != 1 {
			t.Errorf("first reports: %q", m.lastReport)
		}
		for range 100 {
			m.event(Event{Removed: 2})
			m.event(Event{})
			m.after(time.Minute)
		}
		if len(m.lastReport) != 1 {
			t.Errorf("reports without a change: %q", m.lastReport)
		}
		m.add(Device{Index: 3, Name: "eth1"})
		m.after(settleDelay)
		if len(m.lastReport) != 2 {
			t.Errorf("reports after a device was added: %q", m.lastReport)
		}
		m.reload <- struct{}{}
		m.after(0)
		if len(m.lastReport) != 3 {
			t.Errorf("reports after a reload: %q", m.lastReport)
		}
	})
}

// An agent that is replaced by one of an earlier version, which cannot parse the documents of a
// device, keeps the device's groups until there are no such documents any more.
func TestUnknownDocumentsKeepGroups(t *testing.T) {
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
			m.desired(index, "1Gbit")
		}
		m.desired(3, "")
		m.turn.Add(1)
		m.unknown = nil
		m.after(resyncInterval)
		for _, index := range []int{2, 4, 5} {
			m.desired(index, "")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Of many devices those without groups are shaped first, the newest before the others. An event
// about the IFB of one device causes a check of no other device.
func TestNewestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, document("veth*", "10mbit"))
		for i := range 30 {
			m.devices = append(m.devices, Device{Index: 10 + i, Name: fmt.Sprint("veth", i)})
		}
		stop := m.run()
		if m.applied[0] != "0s veth29" || m.applied[29] != "0s veth0" {
			t.Errorf("thirty devices were shaped in the order %v", m.applied)
		}
		m.applied, m.tried = nil, nil
		m.devices = append(m.devices, Device{Index: 90, Name: group.IFBPrefix + "12"}, Device{Index: 91, Name: "veth99"})
		m.event(Event{Removed: 90}) // before the device listing that finds the IFB
		m.event(Event{})
		m.after(time.Second)
		if fmt.Sprint(m.applied) != "[1s veth99]" && fmt.Sprint(m.applied) != "[0s veth99]" {
			t.Errorf("then %v were shaped", m.applied)
		}
		if len(m.tried) != 2 || !strings.HasSuffix(m.tried[1], " veth2") {
			t.Errorf("%v were checked, want the new device and then the one whose IFB changed", m.tried)
		}
		m.tried = nil
		m.event(Event{Removed: 77}) // a device that was created and removed
		m.event(Event{})
		m.after(time.Second)
		if len(m.tried) != 31 {
			t.Errorf("%d devices were checked, want all", len(m.tried))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
