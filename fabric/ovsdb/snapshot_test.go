package ovsdb

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/unit"
)

// smallState is a bridge with one port, as a server answers the reading of all tables, in the order of their names.
const smallState = `[
{"rows":[{"_uuid":["uuid","00000000-0000-0000-0000-000000000002"],"name":"br0","datapath_type":"netdev","datapath_id":"00000000000000ff",
 "fail_mode":"secure","protocols":["set",["OpenFlow13"]],"controller":["set",[]],"other_config":["map",[]],
 "external_ids":["map",[]],"stp_enable":false,"rstp_enable":false,
 "ports":["uuid","00000000-0000-0000-0000-000000000003"]}]},
{"rows":[]},
{"rows":[]},
{"rows":[{"_uuid":["uuid","00000000-0000-0000-0000-000000000004"],"name":"br0","type":"internal","ofport":65534,
 "mac_in_use":"02:00:00:00:00:01","link_state":"up","admin_state":"down","link_speed":["set",[]],"mtu":1500,"error":["set",[]]}]},
{"rows":[{"_uuid":["uuid","00000000-0000-0000-0000-000000000001"],"ovs_version":"3.1.0","next_cfg":2,"cur_cfg":1,"ssl":["set",[]],
 "other_config":["map",[]],"external_ids":["map",[]],"bridges":["uuid","00000000-0000-0000-0000-000000000002"],"datapaths":["map",[]]}]},
{"rows":[{"_uuid":["uuid","00000000-0000-0000-0000-000000000003"],"name":"br0","interfaces":["uuid","00000000-0000-0000-0000-000000000004"]}]},
{"rows":[]}]`

// A snapshot has what ovs-vsctl wrote, of every field.
func TestSnapshot(t *testing.T) {
	s := startServer(t)
	if got := s.snapshot(); !reflect.DeepEqual(got, &Snapshot{VLANLimit: 1}) {
		t.Errorf("the snapshot of a new database is %+v", got)
	}
	s.vsctl("add-br", "br1", "--", "add-br", "br0", "--", "set-controller", "br0", "tcp:192.0.2.2:6653", "ssl:192.0.2.1:6653",
		"--", "set-fail-mode", "br0", "secure",
		"--", "set", "bridge", "br0", "protocols=OpenFlow14,OpenFlow13", "datapath_type=netdev", `datapath_id="00000000000000ff"`,
		"--", "add-port", "br0", "eth9", "--", "add-port", "br0", "patch0", "--", "set", "interface", "patch0", "type=patch", "options:peer=x",
		"--", "add-bond", "br0", "bond0", "eth2", "eth1")
	s.vsctl("set", "interface", "eth9", "link_state=up", "admin_state=down", "link_speed=10000000000", "mtu=9000", "ofport=7",
		`mac_in_use="02:00:00:00:00:01"`, "--", "set", "interface", "patch0", "ofport=-1", `error="no device \"x\" é"`)
	target := "ssl:192.0.2.1:6653"
	for _, c := range s.list("Controller") {
		if c["target"] == target {
			s.vsctl("set", "controller", c["_uuid"].([]any)[1].(string), "role=master", "is_connected=true", "connection_mode=out-of-band")
		} else {
			s.vsctl("set", "controller", c["_uuid"].([]any)[1].(string), `status:last_error="Connection refused"`, "status:state=BACKOFF")
		}
	}
	s.vsctl("set", "open_vswitch", ".", "next_cfg=5", "cur_cfg=4", `ovs_version="3.1.0"`,
		"--", "--id=@d", "create", "datapath", `datapath_version="1"`, "capabilities:max_vlan_headers=2", "--", "set", "open_vswitch", ".", "datapaths:netdev=@d",
		"other_config:vlan-limit=2", "--", "set-ssl", "/k.pem", "/c.pem", "/ca.pem",
		"--", "set", "bridge", "br1", "rstp_enable=true", "other_config:disable-in-band=true", "--", "set-controller", "br1", "ptcp:6634")

	one := func(name string) Port { return Port{Name: name, Interfaces: []Interface{{Name: name}}} }
	local := func(name string) Port {
		return Port{Name: name, Interfaces: []Interface{{Name: name, Type: "internal"}}}
	}
	want := &Snapshot{
		OVSVersion: "3.1.0", NextCfg: 5, CurCfg: 4,
		Bridges: []Bridge{
			{
				Name: "br0", DatapathID: 255, DatapathType: "netdev", FailMode: Secure, Protocols: []string{"OpenFlow13", "OpenFlow14"},
				Controllers: []Controller{{Target: target, Connected: true, Role: "master"},
					{Target: "tcp:192.0.2.2:6653", InBand: true, LastError: "Connection refused"}},
				Ports: []Port{
					{Name: "bond0", Interfaces: []Interface{{Name: "eth1"}, {Name: "eth2"}}}, local("br0"),
					{Name: "eth9", Interfaces: []Interface{{Name: "eth9", OFPort: 7, MAC: "02:00:00:00:00:01", LinkState: Up, AdminState: Down,
						LinkSpeed: 10 * unit.Gbit, MTU: 9000}}},
					{Name: "patch0", Interfaces: []Interface{{Name: "patch0", Type: "patch", OFPort: -1, Error: `no device "x" é`}}},
				},
			},
			{Name: "br1", RSTP: true, NoInBand: true, Controllers: []Controller{{Target: "ptcp:6634", Service: true}}, Ports: []Port{local("br1")}},
		},
		VLANLimit: 2, SSL: SSL{"/k.pem", "/c.pem", "/ca.pem"},
		Datapaths: []Datapath{{Type: "netdev", Version: "1", Capabilities: map[string]string{"max_vlan_headers": "2"}}},
	}
	if got := s.snapshot(); !reflect.DeepEqual(got, want) {
		t.Errorf("the snapshot is\n%+v, want\n%+v", got, want)
	}
	if b := want.Bridge("br1"); b != &want.Bridges[1] || want.Bridge("br2") != nil {
		t.Errorf("the bridge br1 is %+v", b)
	}
	s.vsctl("add-port", "br1", "eth5")
	if got := s.snapshot().Bridge("br1").Ports; !reflect.DeepEqual(got, []Port{local("br1"), one("eth5")}) {
		t.Errorf("the ports of br1 are %+v", got)
	}
}

// Columns that an older database lacks are left out, and a database that is another one is refused.
func TestOlderSchema(t *testing.T) {
	change := func(old, now string) string {
		text, err := os.ReadFile(vswitchSchema)
		if err != nil {
			t.Skip(err)
		}
		if !strings.Contains(string(text), old) {
			t.Fatalf("the schema has no %s", old)
		}
		path := filepath.Join(t.TempDir(), "schema")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, now)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	older := startServerOf(t, change(`"link_speed"`, `"link_speed_of_another_name"`))
	older.vsctl("add-br", "br0")
	mustConnect(t, older.dial(), ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653"}})
	if got := older.snapshot().Bridge("br0"); got == nil || got.Ports[0].Interfaces[0].LinkSpeed != 0 {
		t.Errorf("the bridge is %+v", got)
	}
	other := startServerOf(t, change(`"Controller"`, `"Supervisor"`))
	_, err := other.dial().Snapshot(testContext(t))
	wantError(t, err, other.address(), "has no table Controller")
	another := startServerOf(t, change(`"name": "Open_vSwitch"`, `"name": "Closed_vSwitch"`))
	_, err = another.dial().Snapshot(testContext(t))
	wantError(t, err, "get_schema", "unknown database")
}

// A row that refers to a missing one, and a malformed datapath id, are errors that name them.
func TestSnapshotErrors(t *testing.T) {
	for _, c := range []struct{ old, now, want string }{
		{`"_uuid":["uuid","00000000-0000-0000-0000-000000000004"]`, `"_uuid":["uuid","00000000-0000-0000-0000-000000000005"]`,
			"the port br0 refers to the row 00000000-0000-0000-0000-000000000004 of the table Interface, which the server did not send"},
		{`"_uuid":["uuid","00000000-0000-0000-0000-000000000003"]`, `"_uuid":["uuid","00000000-0000-0000-0000-000000000005"]`, "the bridge br0 refers to"},
		{`"_uuid":["uuid","00000000-0000-0000-0000-000000000002"]`, `"_uuid":["uuid","00000000-0000-0000-0000-000000000005"]`, "the table Open_vSwitch refers to"},
		{`"_uuid":["uuid","00000000-0000-0000-0000-000000000002"],`, ``, "the column _uuid of the table Bridge"},
		{`"_uuid":["uuid","00000000-0000-0000-0000-000000000002"]`, `"_uuid":["uuid","2"]`, "the column _uuid of the table Bridge"},
		{`"00000000000000ff"`, `"br0"`, `the datapath_id "br0" of the bridge br0`},
		{`"netdev"`, `["set",[]]`, "the column datapath_type of the table Bridge, row 00000000-0000-0000-0000-000000000002"},
		{`{"rows":[]}]`, `{"rows":[]},{"rows":[]}]`, "8 results for 7 operations"},
		{`"mtu":1500,`, ``, "the column mtu of the table Interface"},
		{`1500`, `"1500"`, "the column mtu of the table Interface"},
	} {
		text := strings.Replace(smallState, c.old, c.now, 1)
		if text == smallState {
			t.Fatalf("the state has no %s", c.old)
		}
		_, err := snapshotOf(text)
		wantError(t, err, c.want)
	}
	s, err := snapshotOf(smallState)
	if err != nil || len(s.Bridges) != 1 || s.Bridges[0].DatapathID != 255 || s.Bridges[0].Ports[0].Interfaces[0].OFPort != 65534 {
		t.Errorf("the snapshot is %+v, %v", s, err)
	}
}

// A link speed that is no rate is unknown.
func TestLinkSpeed(t *testing.T) {
	for bps, want := range map[string]unit.Rate{"25000000000": 25 * unit.Gbit, "0": 0, "-1": 0, "10000000000000": unit.MaxRate, "10000000000001": 0,
		"9223372036854775807": 0} {
		s, err := snapshotOf(strings.Replace(smallState, `"link_speed":["set",[]]`, `"link_speed":`+bps, 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Bridges[0].Ports[0].Interfaces[0].LinkSpeed; got != want {
			t.Errorf("a link_speed of %s is %v, want %v", bps, got, want)
		}
	}
}

// allColumns requests everything, as from a server of the present schema.
func allColumns() schema {
	requested := schema{}
	for table, empty := range newRow {
		for _, c := range empty().columns() {
			requested[table] = append(requested[table], c.name)
		}
	}
	return requested
}

// tablesOf decodes the answer of a server to the reading of all tables.
func tablesOf(text []byte) (tables, error) {
	var replies []json.RawMessage
	if err := json.Unmarshal(text, &replies); err != nil {
		return nil, err
	}
	requested := allColumns()
	results, err := decodeResults(requested.selects(), replies)
	if err != nil {
		return nil, err
	}
	return requested.decode(results)
}

func snapshotOf(text string) (*Snapshot, error) {
	t, err := tablesOf([]byte(text))
	if err != nil {
		return nil, err
	}
	return t.snapshot()
}

// The columns exist in the schema of Open vSwitch: a misspelt one would be left out as if the server were older.
func TestColumnsExist(t *testing.T) {
	text, err := os.ReadFile(vswitchSchema)
	if err != nil {
		t.Skip(err)
	}
	var has struct {
		Tables map[string]struct{ Columns map[string]any }
	}
	if err := json.Unmarshal(text, &has); err != nil {
		t.Fatal(err)
	}
	for table, columns := range allColumns() {
		for _, c := range columns {
			if _, ok := has.Tables[table].Columns[c]; !ok {
				t.Errorf("the table %s has no column %s", table, c)
			}
		}
	}
}

// manyPorts is a bridge with n ports, as smallState.
func manyPorts(n int) []byte {
	id := func(kind, i int) uuid { return uuid(fmt.Sprintf("%08x-0000-0000-0000-%012x", kind, i)) }
	rows := map[string][]map[string]any{}
	var ports setOf[uuid]
	for i := range n {
		name := fmt.Sprintf("eth%d", i)
		ports = append(ports, id(3, i))
		rows["Port"] = append(rows["Port"], map[string]any{"_uuid": id(3, i), "name": name, "interfaces": id(4, i)})
		rows["Interface"] = append(rows["Interface"], map[string]any{"_uuid": id(4, i), "name": name, "type": "", "ofport": i + 1,
			"mac_in_use": "02:00:00:00:00:01", "link_state": "up", "admin_state": "up", "link_speed": 10_000_000_000, "mtu": 1500, "error": setOf[string]{}})
	}
	rows["Bridge"] = []map[string]any{{"_uuid": id(2, 0), "name": "br0", "datapath_type": "netdev", "datapath_id": "00000000000000ff",
		"fail_mode": "secure", "protocols": setOf[string]{}, "controller": setOf[uuid]{}, "other_config": mapOf[string]{}, "external_ids": mapOf[string]{},
		"stp_enable": false, "rstp_enable": false, "ports": ports}}
	rows[database] = []map[string]any{{"_uuid": id(1, 0), "ovs_version": "3.1.0", "next_cfg": 1, "cur_cfg": 1, "ssl": setOf[uuid]{},
		"other_config": mapOf[string]{}, "external_ids": mapOf[string]{}, "bridges": id(2, 0), "datapaths": mapOf[uuid]{}}}
	var results []map[string]any
	for _, table := range slices.Sorted(maps.Keys(newRow)) {
		results = append(results, map[string]any{"rows": append([]map[string]any{}, rows[table]...)})
	}
	text, err := json.Marshal(results)
	if err != nil {
		panic(err)
	}
	return text
}

// BenchmarkSnapshot decodes the state of a bridge with 1,000 ports.
func BenchmarkSnapshot(b *testing.B) {
	text := manyPorts(1000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := snapshotOf(string(text))
		if err != nil || len(s.Bridges[0].Ports) != 1000 {
			b.Fatal(err)
		}
	}
}

// The ports of a bridge with 1,000 of them are those that ovs-vsctl lists.
func TestSnapshotManyPorts(t *testing.T) {
	s := startServer(t)
	args := []string{"add-br", "br0"}
	for _, name := range names(1000, "eth%d") {
		args = append(args, "--", "add-port", "br0", name)
	}
	s.vsctl(args...)
	var got []string
	for _, p := range s.snapshot().Bridge("br0").Ports {
		if p.Name != "br0" { // ovs-vsctl does not list the bridge's own
			got = append(got, p.Name)
		}
	}
	want := s.lines("list-ports", "br0")
	slices.Sort(want)
	if len(want) != 1000 || !slices.Equal(got, want) {
		t.Errorf("the snapshot has %d ports, ovs-vsctl lists %d", len(got), len(want))
	}
}
