package doctor

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fabric/ovsdb"
	"headgate.dev/headgate/fabric/ovsdb/ovsdbtest"
	"headgate.dev/headgate/internal/golden"
)

// Each mistake is a line with its remedy, and a bridge without a controller is none.
func TestFabric(t *testing.T) {
	good := ovsdb.Bridge{Name: "good", DatapathID: 1, DatapathType: "system", FailMode: ovsdb.Secure, NoInBand: true, Managed: true,
		Controllers: []ovsdb.Controller{
			{Target: "ssl:192.0.2.1:6653", Managed: true, Connected: true, Role: "master"}, {Target: "ssl:192.0.2.2:6653", Managed: true, Connected: true, Role: "slave"},
			{Target: "ptcp:6634", Service: true},
		},
		Ports: []ovsdb.Port{{Name: "good", Interfaces: []ovsdb.Interface{{Name: "good", Type: "internal"}}}}}
	bad := ovsdb.Bridge{Name: "bad", DatapathID: 7, DatapathType: "netdev", FailMode: ovsdb.Standalone, STP: true, Managed: true,
		Protocols:   []string{"OpenFlow10", "OpenFlow15"},
		Controllers: []ovsdb.Controller{{Target: "ssl:192.0.2.1:6653", Managed: true, InBand: true, LastError: "Connection refused"}, {Target: "tcp:192.0.2.9:6653", Connected: true}},
		Ports: []ovsdb.Port{
			{Name: "eth1", Interfaces: []ovsdb.Interface{{Name: "eth1", Error: "could not open network device eth1 (No such device)"}}},
			{Name: "eth2", Interfaces: []ovsdb.Interface{{Name: "eth2", AdminState: ovsdb.Down}}},
			{Name: "veth1", Interfaces: []ovsdb.Interface{{Name: "veth1"}}},
		}}
	twin := ovsdb.Bridge{Name: "twin", DatapathID: 7, FailMode: ovsdb.Secure, RSTP: true, NoInBand: true,
		Controllers: []ovsdb.Controller{{Target: "tcp:192.0.2.1:6653", InBand: true, LastError: "No route to host"}}}
	none := ovsdb.Bridge{Name: "none", FailMode: ovsdb.Secure, NoInBand: true, Controllers: []ovsdb.Controller{{Target: "tcp:192.0.2.1:6653"}}}
	plain := ovsdb.Bridge{Name: "plain", STP: true, Controllers: []ovsdb.Controller{{Target: "ptcp:6634", Service: true}}}
	dpdk := good
	dpdk.Name, dpdk.DatapathID, dpdk.DatapathType = "dpdk", 2, "netdev"
	dpdk.Ports = []ovsdb.Port{{Name: "dpdk0", Interfaces: []ovsdb.Interface{{Name: "dpdk0", Type: "dpdk"}}}}
	oneLost := good
	oneLost.Name, oneLost.DatapathID = "lost", 3
	oneLost.Controllers = []ovsdb.Controller{{Target: "ssl:192.0.2.1:6653", Managed: true, Connected: true, Role: "master"}, {Target: "ssl:192.0.2.2:6653", Managed: true}}

	text := ""
	for _, c := range []struct {
		name string
		switches
	}{
		{"all is well", switches{&ovsdb.Snapshot{OVSVersion: "3.1.0", VLANLimit: 2, SSL: ovsdb.SSL{PrivateKey: "k"}, Bridges: []ovsdb.Bridge{dpdk, good, plain}}, true, nil}},
		{"no bridge is a switch", switches{&ovsdb.Snapshot{VLANLimit: 1, Bridges: []ovsdb.Bridge{plain}}, true, nil}},
		{"one controller of two", switches{&ovsdb.Snapshot{OVSVersion: "3.1.0", VLANLimit: 0, SSL: ovsdb.SSL{PrivateKey: "k"}, Bridges: []ovsdb.Bridge{oneLost}}, true, nil}},
		{"nothing is well", switches{&ovsdb.Snapshot{OVSVersion: "2.5.9", VLANLimit: 1, Bridges: []ovsdb.Bridge{bad, none, twin},
			Datapaths: []ovsdb.Datapath{{Type: "netdev", Capabilities: map[string]string{"max_vlan_headers": "2"}}, {Type: "system", Capabilities: map[string]string{"max_vlan_headers": "1"}}},
		}, true, map[string]string{"veth1": "veth0"}}},
		{"ovs-vswitchd is not running", switches{&ovsdb.Snapshot{OVSVersion: "3.1.0", VLANLimit: 2, Bridges: []ovsdb.Bridge{none}}, false, nil}},
	} {
		var b strings.Builder
		report := Report{Checks: c.checks()}
		report.conclude()
		if err := report.Write(&b); err != nil {
			t.Fatal(err)
		}
		text += c.name + ":\n" + b.String() + "\n"
		for _, check := range report.Checks {
			if check.State != OK && check.Remedy == "" || check.Needed {
				t.Errorf("%s: want a remedy, and a check that groups do not need: %+v", c.name, check)
			}
		}
	}
	golden.Compare(t, "testdata/fabric.txt", text)
}

// The doctor reads a real Open vSwitch, and distinguishes the ways in which there is none.
func TestOpenVSwitch(t *testing.T) {
	find := func(address, program string) Check {
		t.Helper()
		checks := fabric(address, program)
		if len(checks) == 0 || checks[0].About != Fabric || checks[0].Name != "Open vSwitch" {
			t.Fatalf("the checks are %+v", checks)
		}
		return checks[0]
	}
	nowhere := "unix:" + filepath.Join(t.TempDir(), "db.sock")
	if c := find(nowhere, "/nowhere"); c.State != OK || c.Found != "not installed" || c.Remedy != "" {
		t.Errorf("without Open vSwitch: %+v", c)
	}
	if c := find(nowhere, "/bin/sh"); c.State != Missing || c.Found != "not running" || c.Remedy == "" {
		t.Errorf("with an Open vSwitch that is not running: %+v", c)
	}
	notADatabase := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notADatabase, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := find("unix:"+notADatabase, "/bin/sh"); c.State == OK {
		t.Errorf("with a file instead of a socket: %+v", c)
	}

	o := ovsdbtest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	session, err := ovsdb.Dial(ctx, o.Address(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	o.Run("ovs-vsctl", "add-br", "br0", "--", "set", "bridge", "br0", "other_config:datapath-id=00000000000000a1", "rstp_enable=true")
	states := func() string {
		text := ""
		for _, c := range fabric(o.Address(), "/nowhere") {
			text += string(c.State) + " " + c.Name + ": " + c.Found + "\n"
		}
		return text
	}
	if got := states(); got != "ok Open vSwitch: \nok controller: none\n" {
		t.Errorf("without a controller the checks are\n%s", got)
	}
	_, applied, err := session.Connect(ctx, ovsdb.ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := session.WaitApplied(ctx, applied.NextCfg); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^ok Open vSwitch: \nok datapath id: 00000000000000a1\nmissing controller: tcp:127\.0\.0\.1:1\nlimited spanning tree: enabled\n$`)
	if got := states(); !want.MatchString(got) {
		t.Errorf("the checks are\n%s", got)
	}
	o.KillVswitchd()
	if got := states(); !strings.Contains(got, "missing ovs-vswitchd: not running\n") {
		t.Errorf("without ovs-vswitchd the checks are\n%s", got)
	}
}
