package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// ensure configures a bridge, and checks whether this changed anything.
func ensure(t *testing.T, s *Session, want BridgeConfig, changed bool) Applied {
	t.Helper()
	a, err := s.EnsureBridge(testContext(t), want)
	if err != nil {
		t.Fatal(err)
	}
	if a.Changed != changed {
		t.Errorf("changed: %v, want %v: %+v", a.Changed, changed, want)
	}
	return a
}

// TestEnsureBridge: ovs-vsctl reads what was desired, and a second call writes nothing.
func TestEnsureBridge(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	want := BridgeConfig{
		Name: "br0", DatapathType: "netdev", FailMode: Secure, Protocols: []string{"OpenFlow13", "OpenFlow14"}, DatapathID: 0xff,
		Controllers: []string{"tcp:192.0.2.1:6653", "ssl:[2001:db8::1]:6653"},
		Ports: []PortConfig{
			{Name: "eth1", OFPort: 7}, {Name: "patch0", Type: "patch", Options: map[string]string{"peer": "patch1"}}, {Name: "br0"},
		},
	}
	first := ensure(t, session, want, true)
	rows := s.list("Open_vSwitch")
	second := ensure(t, session, want, false)
	if !reflect.DeepEqual(s.list("Open_vSwitch"), rows) || first.NextCfg != 1 || second.NextCfg != 1 {
		t.Errorf("next_cfg is %d, then %d", first.NextCfg, second.NextCfg)
	}
	for command, want := range map[string]string{
		"list-br":                           "br0",
		"get-fail-mode br0":                 "secure",
		"get-controller br0":                "ssl:[2001:db8::1]:6653\ntcp:192.0.2.1:6653",
		"list-ports br0":                    "eth1\npatch0",
		"get bridge br0 datapath_type":      "netdev",
		"get bridge br0 protocols":          "[OpenFlow13, OpenFlow14]",
		"get bridge br0 other_config":       `{datapath-id="00000000000000ff"}`,
		"get interface eth1 ofport_request": "7",
		"get interface eth1 type":           `""`,
		"get interface br0 type":            "internal",
		"get interface patch0 type options": "patch\n{peer=patch1}",
		"get open_vswitch . next_cfg":       "1",
	} {
		if got := s.vsctl(strings.Fields(command)...); got != want {
			t.Errorf("ovs-vsctl %s prints %q, want %q", command, got, want)
		}
	}
	log, err := exec.Command("ovsdb-tool", "show-log", filepath.Join(s.dir, "conf.db")).CombinedOutput()
	if err != nil || !strings.Contains(string(log), "headgate: configure the bridge br0") {
		t.Errorf("the database's log has no comment: %v\n%s", err, log)
	}
}

// Only the differences are written: foreign columns, keys, rows and bridges stay as they are.
func TestEnsureBridgeLeavesTheRest(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	s.vsctl("add-br", "theirs", "--", "add-port", "theirs", "eth9", "--", "set-fail-mode", "theirs", "secure",
		"--", "add-br", "br0", "--", "set-controller", "br0", "tcp:192.0.2.9:6653", "--", "add-port", "br0", "eth1", "tag=5",
		"--", "set", "bridge", "br0", "external_ids:a=b", "other_config:hwaddr=02:00:00:00:00:01", "other_config:datapath-id=0x1", "stp_enable=true",
		"--", "set", "interface", "eth1", "options:mine=1", "options:peer=old", "external_ids:c=d")
	before := map[string][]map[string]any{}
	for _, table := range []string{"Bridge", "Port", "Interface", "Controller"} {
		before[table] = s.list(table)
	}
	// What the bridge has already, in other words.
	ensure(t, session, BridgeConfig{Name: "br0", DatapathID: 1, Controllers: []string{"tcp:192.0.2.9:6653"},
		Ports: []PortConfig{{Name: "eth1", Options: map[string]string{"peer": "old"}}}, RemovePorts: []string{"none"},
		RemoveControllers: []string{"tcp:192.0.2.8:6653"}}, false)
	ensure(t, session, BridgeConfig{Name: "br0", DatapathID: 2, Controllers: []string{"tcp:192.0.2.1:6653"},
		Ports: []PortConfig{{Name: "eth1", Options: map[string]string{"peer": "new"}}}}, true)
	for table, rows := range before {
		after := map[string]map[string]any{}
		for _, r := range s.list(table) {
			after[fmt.Sprint(r["_uuid"])] = r
		}
		for _, r := range rows {
			now := after[fmt.Sprint(r["_uuid"])]
			switch { // the differences that were desired
			case table == "Bridge" && r["name"] == "br0":
				want := []any{"map", []any{[]any{"datapath-id", "0000000000000002"}, []any{"hwaddr", "02:00:00:00:00:01"}}}
				if !reflect.DeepEqual(now["other_config"], want) {
					t.Errorf("other_config is %v, want %v", now["other_config"], want)
				}
				for _, c := range []string{"other_config", "controller", "_version"} {
					r[c], now[c] = nil, nil
				}
			case table == "Interface" && r["name"] == "eth1":
				want := []any{"map", []any{[]any{"mine", "1"}, []any{"peer", "new"}}}
				if !reflect.DeepEqual(now["options"], want) {
					t.Errorf("options is %v, want %v", now["options"], want)
				}
				r["options"], now["options"] = nil, nil
			}
			if !reflect.DeepEqual(now, r) {
				t.Errorf("a row of the table %s was changed:\n%v\n%v", table, r, now)
			}
		}
	}
	if got, want := s.lines("get-controller", "br0"), []string{"tcp:192.0.2.1:6653", "tcp:192.0.2.9:6653"}; !slices.Equal(got, want) {
		t.Errorf("the controllers are %v, want %v", got, want)
	}
	ensure(t, session, BridgeConfig{Name: "br0", RemoveControllers: []string{"tcp:192.0.2.9:6653"}, RemovePorts: []string{"eth1"}}, true)
	if got := s.lines("get-controller", "br0"); !slices.Equal(got, []string{"tcp:192.0.2.1:6653"}) {
		t.Errorf("after the removal the controllers are %v", got)
	}
	if got := s.lines("list-ports", "br0"); len(got) != 0 {
		t.Errorf("after the removal the ports are %v", got)
	}
	for _, want := range []bool{true, false} {
		a, err := session.DeleteBridge(testContext(t), "br0")
		if err != nil || a.Changed != want {
			t.Errorf("deleted: %+v, %v, want %v", a, err, want)
		}
	}
	if got := s.lines("list-br"); !slices.Equal(got, []string{"theirs"}) {
		t.Errorf("the bridges are %v", got)
	}
	if got := s.lines("list-ports", "theirs"); !slices.Equal(got, []string{"eth9"}) {
		t.Errorf("the ports of the foreign bridge are %v", got)
	}
}

func TestEnsureBridgeRefused(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	s.vsctl("add-br", "theirs", "--", "add-port", "theirs", "eth9", "--", "add-br", "br0", "--", "add-bond", "br0", "bond0", "eth1", "eth2")
	before := s.vsctl("show")
	for _, c := range []struct {
		want  BridgeConfig
		error string
	}{
		{BridgeConfig{}, "a bridge has no name"},
		{BridgeConfig{Name: "br0", Ports: []PortConfig{{}}}, "a port of the bridge br0 has no name"},
		{BridgeConfig{Name: "br0", Ports: []PortConfig{{Name: "a"}, {Name: "a"}}}, "the port a of the bridge br0 is listed twice"},
		{BridgeConfig{Name: "br0", Ports: []PortConfig{{Name: "a"}}, RemovePorts: []string{"a"}}, "the port a of the bridge br0 is both desired and listed for removal"},
		{BridgeConfig{Name: "br0", Controllers: []string{"a"}, RemoveControllers: []string{"a"}}, "the controller a of the bridge br0 is both"},
		{BridgeConfig{Name: "br0", RemovePorts: []string{"br0"}}, "the port br0 is the own port of the bridge"},
		{BridgeConfig{Name: "br0", Ports: []PortConfig{{Name: "eth9"}}}, "the port eth9 belongs to the bridge theirs: remove it there first"},
		{BridgeConfig{Name: "eth9"}, "the port eth9 belongs to the bridge theirs: remove it there first"},
		{BridgeConfig{Name: "br0", Ports: []PortConfig{{Name: "bond0"}}}, "the port bond0 is a bond"},
	} {
		_, err := session.EnsureBridge(testContext(t), c.want)
		wantError(t, err, c.error)
	}
	for _, c := range []struct {
		want                     BridgeConfig
		operation, code, details string
	}{
		{BridgeConfig{Name: "br0", FailMode: "open"}, "update Bridge", ConstraintViolation, "open is not one of the allowed values"},
		{BridgeConfig{Name: "br0", Protocols: []string{"OpenFlow99"}}, "update Bridge", ConstraintViolation, "OpenFlow99"},
		{BridgeConfig{Name: "br0", Ports: []PortConfig{{Name: "x", OFPort: 65300}}}, "insert into Interface", ConstraintViolation, "65300"},
		{BridgeConfig{Name: "br0", Ports: []PortConfig{{Name: "eth1"}}}, "commit", ConstraintViolation, `identical values (eth1)`},
	} {
		_, err := session.EnsureBridge(testContext(t), c.want)
		var e *Error
		if !errors.As(err, &e) || e.Code != c.code || e.Operation != c.operation || !strings.Contains(e.Details, c.details) {
			t.Errorf("%+v: the error is %q, want %+v", c.want, err, c)
		}
		wantError(t, err, "cannot call transact of the OVSDB server "+s.address())
	}
	if now := s.vsctl("show"); now != before {
		t.Errorf("a refused configuration has changed\n%s\nto\n%s", before, now)
	}
}

// Clients that configure the same bridge at once make it once.
func TestEnsureBridgeConcurrently(t *testing.T) {
	s := startServer(t)
	var all sync.WaitGroup
	for range 4 {
		session := s.dial()
		all.Go(func() {
			want := BridgeConfig{Name: "br0", Controllers: []string{"tcp:192.0.2.1:6653", "tcp:192.0.2.2:6653"}, Ports: []PortConfig{{Name: "eth1"}}}
			if _, err := session.EnsureBridge(testContext(t), want); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := s.vsctl("list-br", "--", "list-ports", "br0", "--", "get-controller", "br0"); got != "br0\neth1\ntcp:192.0.2.1:6653\ntcp:192.0.2.2:6653" {
		t.Errorf("ovs-vsctl prints %q", got)
	}
}

// A change that was computed from an outdated list of controllers has no effect, because it could add one twice.
func TestEnsureBridgeOutdated(t *testing.T) {
	s := startServer(t)
	session, ctx := s.dial(), testContext(t)
	s.vsctl("add-br", "br0")
	want := BridgeConfig{Name: "br0", FailMode: Secure, Controllers: []string{"tcp:192.0.2.1:6653"}}
	state, err := session.readTables(ctx)
	if err != nil {
		t.Fatal(err)
	}
	operations, err := want.operations(state)
	if err != nil {
		t.Fatal(err)
	}
	s.vsctl("set-controller", "br0", "tcp:192.0.2.1:6653")
	_, err = session.change(ctx, "test", operations)
	if wantError(t, err, "wait Bridge: timed out"); errorCode(err) != TimedOut {
		t.Errorf("the code of %v is %q", err, errorCode(err))
	}
	if got := s.vsctl("get-controller", "br0", "--", "get-fail-mode", "br0"); got != "tcp:192.0.2.1:6653" {
		t.Errorf("an outdated change was applied: %s", got)
	}
	ensure(t, session, want, true)
	if got := s.vsctl("get-controller", "br0", "--", "get-fail-mode", "br0"); got != "tcp:192.0.2.1:6653\nsecure" {
		t.Errorf("ovs-vsctl prints %q", got)
	}
}

// WaitApplied ends when cur_cfg, which ovs-vswitchd would write, reaches next_cfg, and no sooner.
func TestWaitApplied(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	a := ensure(t, session, BridgeConfig{Name: "br0"}, true)
	short, cancel := context.WithTimeout(testContext(t), 200*time.Millisecond)
	defer cancel()
	err := session.WaitApplied(short, a.NextCfg)
	wantError(t, err, "ovs-vswitchd has not applied configuration 1 of the OVSDB server "+s.address(), "check that it is running")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	applied := make(chan error, 1)
	go func() { applied <- session.WaitApplied(testContext(t), a.NextCfg+1) }()
	s.vsctl("set", "open_vswitch", ".", fmt.Sprintf("cur_cfg=%d", a.NextCfg))
	if err := session.WaitApplied(testContext(t), a.NextCfg); err != nil { // the session is not blocked
		t.Error(err)
	}
	select {
	case err := <-applied:
		t.Errorf("it did not wait for the next configuration: %v", err)
	default:
	}
	s.vsctl("set", "open_vswitch", ".", fmt.Sprintf("cur_cfg=%d", a.NextCfg+5))
	if err := <-applied; err != nil {
		t.Error(err)
	}
	go func() { applied <- session.WaitApplied(testContext(t), a.NextCfg+100) }()
	s.kill()
	wantError(t, <-applied, s.address())
}

// Whatever a bridge had, it has what is desired afterwards, lacks what was to be removed, and keeps the rest.
func TestEnsureBridgeProperty(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	some := func(t *rapid.T, what string, names []string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID).Draw(t, what)
	}
	ports, controllers := names(4, "eth%d"), names(4, "tcp:192.0.2.%d:6653")
	without := func(list, removed []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(removed, s) })
	}
	union := func(a, b, removed []string) []string {
		return slices.Compact(slices.Sorted(slices.Values(without(append(slices.Clone(a), b...), removed))))
	}
	read := func(column string) string { return s.vsctl("get", "bridge", "br0", column) }
	rapid.Check(t, func(rt *rapid.T) {
		s.vsctl("--if-exists", "del-br", "br0")
		var oldPorts, oldControllers []string
		oldMode, exists := "", rapid.Bool().Draw(rt, "exists")
		if exists {
			oldPorts, oldControllers = some(rt, "old ports", ports), some(rt, "old controllers", controllers)
			args := append([]string{"add-br", "br0", "--", "set-controller", "br0"}, oldControllers...)
			if len(oldControllers) == 0 {
				args = args[:2]
			}
			for _, p := range oldPorts {
				args = append(args, "--", "add-port", "br0", p)
			}
			if oldMode = rapid.SampledFrom([]string{"", "secure", "standalone"}).Draw(rt, "old mode"); oldMode != "" {
				args = append(args, "--", "set-fail-mode", "br0", oldMode)
			}
			s.vsctl(args...)
		}
		want := BridgeConfig{Name: "br0", FailMode: rapid.SampledFrom([]FailMode{"", Secure, Standalone}).Draw(rt, "mode"),
			Controllers: some(rt, "controllers", controllers), DatapathID: rapid.Uint64().Draw(rt, "datapath id")}
		wantPorts := some(rt, "ports", ports)
		for _, p := range wantPorts {
			want.Ports = append(want.Ports, PortConfig{Name: p})
		}
		want.RemovePorts = without(some(rt, "removed ports", ports), wantPorts)
		want.RemoveControllers = without(some(rt, "removed controllers", controllers), want.Controllers)

		if _, err := session.EnsureBridge(testContext(t), want); err != nil {
			rt.Fatal(err)
		}
		if got, want := s.lines("list-ports", "br0"), union(oldPorts, wantPorts, want.RemovePorts); !slices.Equal(got, want) {
			rt.Errorf("the ports are %v, want %v", got, want)
		}
		if got, want := s.lines("get-controller", "br0"), union(oldControllers, want.Controllers, want.RemoveControllers); !slices.Equal(got, want) {
			rt.Errorf("the controllers are %v, want %v", got, want)
		}
		mode := oldMode
		if want.FailMode != "" {
			mode = string(want.FailMode)
		}
		if got := strings.Trim(read("fail_mode"), "[]"); got != mode {
			rt.Errorf("the fail mode is %q, want %q", got, mode)
		}
		if got := read("other_config"); want.DatapathID != 0 && got != fmt.Sprintf(`{datapath-id="%016x"}`, want.DatapathID) &&
			got != fmt.Sprintf(`{datapath-id=%016x}`, want.DatapathID) { // ovs-vsctl quotes what could be a number
			rt.Errorf("other_config is %s, want the datapath id %016x", got, want.DatapathID)
		}
		if a, err := session.EnsureBridge(testContext(t), want); err != nil || a.Changed {
			rt.Errorf("a second call returned %+v, %v", a, err)
		}
	})
	if left := map[string]int{"Bridge": len(s.list("Bridge")), "Open_vSwitch": len(s.list("Open_vSwitch"))}; left["Bridge"] != 1 || left["Open_vSwitch"] != 1 {
		t.Errorf("there are %v rows", left)
	}
}
