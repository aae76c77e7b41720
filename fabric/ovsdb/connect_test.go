package ovsdb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mustConnect connects bridges and returns the changes as text.
func mustConnect(t *testing.T, s *Session, c ConnectConfig) string {
	t.Helper()
	changes, applied, err := s.Connect(testContext(t), c)
	if err != nil {
		t.Fatal(err)
	}
	if applied.Changed != (len(changes) > 0 && !c.DryRun) {
		t.Errorf("changed: %v, with %d changes", applied.Changed, len(changes))
	}
	return changesText(changes)
}

func changesText(changes []Change) (text string) {
	for _, c := range changes {
		text += strings.TrimSpace(c.Bridge+" "+c.Setting) + fmt.Sprintf(": %v -> %v\n", c.Before, c.After)
	}
	return text
}

// TestConnect: ovs-vsctl reads what a bridge needs, a second call writes nothing, and Disconnect restores the defaults.
func TestConnect(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	s.vsctl("init", "--", "add-br", "br0", "--", "add-br", "br1", "--", "set", "bridge", "br1", "protocols=OpenFlow10", `datapath_id="0000001122334455"`)
	before := configuration(s)
	want := ConnectConfig{Bridges: []string{"br0", "br1"}, Controllers: []string{"ssl:192.0.2.1:6653", "tcp:[2001:db8::1]:6653"},
		SSL: SSL{"/k.pem", "/c.pem", "/ca.pem"}, DryRun: true}
	const changes = `ssl: [] -> [private_key=/k.pem certificate=/c.pem ca_cert=/ca.pem]
other_config:vlan-limit: [] -> [2]
br0 fail_mode: [] -> [secure]
br0 other_config:disable-in-band: [] -> [true]
br0 controller: [] -> [ssl:192.0.2.1:6653 tcp:[2001:db8::1]:6653]
br1 protocols: [OpenFlow10] -> [OpenFlow10 OpenFlow13]
br1 fail_mode: [] -> [secure]
br1 other_config:disable-in-band: [] -> [true]
br1 other_config:datapath-id: [] -> [0000001122334455]
br1 controller: [] -> [ssl:192.0.2.1:6653 tcp:[2001:db8::1]:6653]
`
	if got := mustConnect(t, session, want); got != changes {
		t.Errorf("the changes of a dry run are\n%s, want\n%s", got, changes)
	}
	if now := configuration(s); now != before {
		t.Errorf("a dry run has changed\n%s\nto\n%s", before, now)
	}
	want.DryRun = false
	if got := mustConnect(t, session, want); got != changes {
		t.Errorf("the changes are\n%s, want\n%s", got, changes)
	}
	for command, want := range map[string]string{
		"get-fail-mode br0":                                "secure",
		"get-controller br1":                               "ssl:192.0.2.1:6653\ntcp:[2001:db8::1]:6653",
		"get bridge br0 protocols":                         "[]",
		"get bridge br1 protocols":                         "[OpenFlow10, OpenFlow13]",
		"get bridge br0 other_config":                      `{disable-in-band="true"}`,
		"get open_vswitch . other_config":                  `{vlan-limit="2"}`,
		"get-ssl":                                          "Private key: /k.pem\nCertificate: /c.pem\nCA Certificate: /ca.pem\nBootstrap: false",
		"get open_vswitch . next_cfg":                      "1", // one transaction
		"--columns=max_backoff list controller":            strings.TrimSpace(strings.Repeat("max_backoff         : 1000\n\n", 4)),
		"--bare --columns=connection_mode list controller": strings.TrimSpace(strings.Repeat("out-of-band\n\n", 4)),
	} {
		if got := s.vsctl(strings.Fields(command)...); got != want {
			t.Errorf("ovs-vsctl %s prints %q, want %q", command, got, want)
		}
	}
	if got := mustConnect(t, session, want); got != "" {
		t.Errorf("a second call changes\n%s", got)
	}
	state := s.snapshot()
	if b := state.Bridge("br0"); !b.Managed || !b.Controllers[0].Managed || b.Controllers[0].InBand || state.VLANLimit != 2 || state.SSL != want.SSL {
		t.Errorf("the state is %+v", state)
	}
	disconnect := func(bridges ...string) string {
		t.Helper()
		got, _, err := session.Disconnect(testContext(t), bridges, false)
		if err != nil {
			t.Fatal(err)
		}
		return changesText(got)
	}
	if got := disconnect("br1"); strings.Contains(got, "vlan-limit") || !strings.Contains(got, "br1 protocols: [OpenFlow10 OpenFlow13] -> [OpenFlow10]\n") {
		t.Errorf("the changes of the first bridge are\n%s", got)
	}
	dry, _, err := session.Disconnect(testContext(t), []string{"br0"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := disconnect("br0", "br1"); got != changesText(dry) || !strings.Contains(got, "other_config:vlan-limit: [2] -> []\n") {
		t.Errorf("the changes of the second bridge are\n%s, of the dry run\n%s", got, changesText(dry))
	}
	if now := configuration(s); now != before {
		t.Errorf("the configuration is\n%s, want\n%s", now, before)
	}
	if got := disconnect("br0"); got != "" {
		t.Errorf("a second call changes\n%s", got)
	}
}

func TestConnectRefused(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	tcp := []string{"tcp:192.0.2.1:6653"}
	_, _, err := session.Connect(testContext(t), ConnectConfig{Bridges: []string{"br9"}, Controllers: tcp})
	wantError(t, err, s.address(), `there is no bridge: create one with "ovs-vsctl add-br br9"`)
	s.vsctl("add-br", "br1", "--", "add-br", "br0", "--", "set-controller", "br0", "tcp:192.0.2.9", "ptcp:6634", "--", "set-ssl", "/k", "/c", "/ca")
	before := configuration(s)
	for _, c := range []struct {
		want  ConnectConfig
		parts []string
	}{
		{ConnectConfig{Controllers: tcp}, []string{"name at least one bridge"}},
		{ConnectConfig{Bridges: []string{"br1"}}, []string{"name at least one bridge and one controller"}},
		{ConnectConfig{Bridges: []string{"br1", "br9"}, Controllers: tcp}, []string{"there is no bridge br9: the bridges are br0, br1"}},
		{ConnectConfig{Bridges: []string{"br1", "br0"}, Controllers: tcp}, []string{"the bridge br0 has another controller (tcp:192.0.2.9)", "--replace"}},
		{ConnectConfig{Bridges: []string{"br1"}, Controllers: tcp, SSL: SSL{"/k2", "/c2", "/ca2"}}, []string{"private_key=/k", "--replace"}},
		{ConnectConfig{Bridges: []string{"br1"}, Controllers: tcp, SSL: SSL{PrivateKey: "/k2"}, Replace: true}, []string{"add --ca, --cert and --key"}},
	} {
		_, _, err := session.Connect(testContext(t), c.want)
		wantError(t, err, c.parts...)
	}
	if now := configuration(s); now != before {
		t.Errorf("a refused change has changed\n%s\nto\n%s", before, now)
	}
	s.vsctl("del-ssl", "--", "set", "bridge", "br1", `external_ids:headgate-before="{"`)
	_, _, err = session.Connect(testContext(t), ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"ssl:192.0.2.1:6653"}})
	wantError(t, err, "no certificate is configured in Open vSwitch for ssl:192.0.2.1:6653", `"headgate network certificate"`)
	_, _, err = session.Disconnect(testContext(t), []string{"br1"}, false)
	wantError(t, err, "the key headgate-before in external_ids of the bridge br1 is damaged", "remove the key")
}

// A change that was computed from an outdated state has no effect, because it would keep the wrong values for Disconnect.
func TestConnectOutdated(t *testing.T) {
	s := startServer(t)
	session, ctx := s.dial(), testContext(t)
	s.vsctl("add-br", "br0")
	want := ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653"}}
	for _, change := range [][]string{{"set-fail-mode", "br0", "standalone"}, {"set", "bridge", "br0", "external_ids:a=b"}, {"set", "open_vswitch", ".", "other_config:vlan-limit=1"}} {
		state, err := session.readTables(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p, err := want.plan(state)
		if err != nil {
			t.Fatal(err)
		}
		s.vsctl(change...)
		before := configuration(s)
		_, err = session.change(ctx, "test", p.operations)
		if errorCode(err) != timedOut || configuration(s) != before {
			t.Errorf("after %v an outdated change returned %v, and the configuration is\n%s", change, err, configuration(s))
		}
	}
	if got := mustConnect(t, session, want); !strings.Contains(got, "br0 fail_mode: [standalone] -> [secure]\n") || !strings.Contains(got, "vlan-limit: [1] -> [2]\n") {
		t.Errorf("the changes are\n%s", got)
	}
}

// What was changed after Connect stays at Disconnect, and what Connect changed does not.
func TestDisconnectLeavesTheRest(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	s.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "external_ids:a=b")
	mustConnect(t, session, ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653"}})
	s.vsctl("set-fail-mode", "br0", "standalone", "--", "set", "bridge", "br0", "other_config:hwaddr=02:00:00:00:00:01", "--",
		"--id=@c", "create", "controller", `target="tcp:192.0.2.7:6653"`, "--", "add", "bridge", "br0", "controller", "@c")
	if _, _, err := session.Disconnect(testContext(t), []string{"br0"}, false); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"get-fail-mode br0":           "standalone",
		"get bridge br0 other_config": `{hwaddr="02:00:00:00:00:01"}`,
		"get bridge br0 external_ids": `{a=b}`,
		"get-controller br0":          "tcp:192.0.2.7:6653",
	} {
		if got := s.vsctl(strings.Fields(command)...); got != want {
			t.Errorf("ovs-vsctl %s prints %q, want %q", command, got, want)
		}
	}
}

// A controller that another program configures again meanwhile is there once, before Disconnect and after it, also under its name
// without the port.
func TestControllerConfiguredAgain(t *testing.T) {
	for _, again := range []string{"tcp:192.0.2.9:6653", "tcp:192.0.2.9"} {
		s := startServer(t)
		session := s.dial()
		add := func(target string) {
			s.vsctl("--id=@c", "create", "controller", fmt.Sprintf("target=%q", target), "--", "add", "bridge", "br0", "controller", "@c")
		}
		s.vsctl("add-br", "br0", "--", "set-controller", "br0", "tcp:192.0.2.9:6653")
		ours := ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653"}, Replace: true}
		mustConnect(t, session, ours)
		add(again)
		if _, _, err := session.Disconnect(testContext(t), []string{"br0"}, false); err != nil {
			t.Fatal(err)
		}
		if got := s.vsctl("get-controller", "br0"); got != again {
			t.Errorf("after Disconnect the controllers are %q, want %q", got, again)
		}
		ours.Replace = false
		ours.Controllers = []string{"tcp:192.0.2.9:6653"} // it is adopted
		mustConnect(t, session, ours)
		add("tcp:192.0.2.9:6653")
		mustConnect(t, session, ours)
		if got := s.vsctl("get-controller", "br0"); strings.Contains(got, "\n") || !strings.HasPrefix(got, "tcp:192.0.2.9") {
			t.Errorf("after Connect the controllers are %q, want one", got)
		}
		if again := mustConnect(t, session, ours); again != "" {
			t.Errorf("a second call changes\n%s", again)
		}
	}
}

// Whatever bridges had, they have what Connect describes, and Disconnect restores all of it.
func TestConnectProperty(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	targets := names(3, "tcp:192.0.2.%d:6653")
	pick := func(t *rapid.T, what string, from []string, least int) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), least, len(from), rapid.ID).Draw(t, what)
	}
	rapid.Check(t, func(rt *rapid.T) {
		s.vsctl("emer-reset", "--", "clear", "open_vswitch", ".", "other_config", "external_ids", "bridges")
		setup := []string{"set", "open_vswitch", ".", "external_ids:a=b"}
		if limit := rapid.SampledFrom([]string{"", "0", "1", "2", "x"}).Draw(rt, "vlan-limit"); limit != "" {
			setup = append(setup, "other_config:vlan-limit="+limit)
		}
		if rapid.Bool().Draw(rt, "ssl") {
			setup = append(setup, "--", "set-ssl", "/k", "/c", "/ca", "--", "set", "ssl", ".", "bootstrap_ca_cert=true", "external_ids:x=y")
		}
		bridges := []string{"br0", "br1"}
		for n, b := range bridges {
			setup = append(setup, "--", "add-br", b, "--", "set", "bridge", b, `external_ids:c="d \" {"`)
			if p := pick(rt, "protocols", []string{"OpenFlow10", "OpenFlow13", "OpenFlow15"}, 0); len(p) > 0 {
				setup = append(setup, "protocols="+strings.Join(p, ","))
			}
			setup = append(setup, rapid.SampledFrom([][]string{nil, {"fail_mode=secure"}, {"fail_mode=standalone"}}).Draw(rt, "fail mode")...)
			setup = append(setup, rapid.SampledFrom([][]string{nil, {"other_config:disable-in-band=true"}, {"other_config:disable-in-band=false"}}).Draw(rt, "in-band")...)
			setup = append(setup, rapid.SampledFrom([][]string{nil, {`datapath_id="0000001122334455"`}, {`datapath_id="0000000000000005"`, `other_config:datapath-id="0000000000000005"`}}).Draw(rt, "datapath id")...)
			for i, c := range pick(rt, "controllers", append([]string{"ptcp:6634"}, targets...), 0) {
				id := fmt.Sprintf("@c%d%d", n, i)
				setup = append(setup, "--", "--id="+id, "create", "controller", fmt.Sprintf("target=%q", c))
				setup = append(setup, rapid.SampledFrom([][]string{nil, {"connection_mode=in-band", "max_backoff=2000", "local_ip=192.0.2.77"},
					{"connection_mode=out-of-band", "inactivity_probe=7000", "other_config:dscp=3", "external_ids:e=f", "enable_async_messages=false"}}).Draw(rt, "columns")...)
				setup = append(setup, "--", "add", "bridge", b, "controller", id)
			}
		}
		s.vsctl(setup...)
		before := configuration(s)
		for range rapid.IntRange(1, 2).Draw(rt, "calls") {
			c := ConnectConfig{Bridges: pick(rt, "bridges", bridges, 1), Controllers: pick(rt, "new controllers", targets, 1), Replace: true}
			if rapid.Bool().Draw(rt, "new ssl") {
				c.SSL = SSL{"/k2", "/c2", "/ca2"}
			}
			if _, _, err := session.Connect(testContext(t), c); err != nil {
				rt.Fatal(err)
			}
			if again, _, err := session.Connect(testContext(t), c); err != nil || len(again) > 0 {
				rt.Errorf("a second call returned %+v, %v", again, err)
			}
			state := s.snapshot()
			if state.VLANLimit == 1 || c.SSL != (SSL{}) && state.SSL != c.SSL {
				rt.Errorf("the state is %+v", state)
			}
			slices.Sort(c.Controllers)
			for _, name := range c.Bridges {
				b := state.Bridge(name)
				var got []string
				for _, k := range b.Controllers {
					if !k.Service {
						got = append(got, k.Target)
					}
					if k.InBand || k.Managed == k.Service {
						rt.Errorf("%s has the controller %+v", name, k)
					}
				}
				if fixed := s.vsctl("--if-exists", "get", "bridge", name, "other_config:datapath-id"); b.DatapathID != 0 && fixed != fmt.Sprintf("%q", fmt.Sprintf("%016x", b.DatapathID)) {
					rt.Errorf("the bridge has the id %016x, and keeps %s", b.DatapathID, fixed)
				}
				if !slices.Equal(got, c.Controllers) || b.FailMode != Secure || !b.NoInBand || len(b.Protocols) > 0 && !slices.Contains(b.Protocols, "OpenFlow13") {
					rt.Errorf("the bridge is %+v, want %+v", b, c)
				}
			}
		}
		if _, _, err := session.Disconnect(testContext(t), bridges, false); err != nil {
			rt.Fatal(err)
		}
		if now := configuration(s); now != before {
			rt.Errorf("after Disconnect the configuration is\n%s, want\n%s", now, before)
		}
	})
}

// A datapath id that was changed after Connect stays.
func TestDisconnectKeepsDatapathID(t *testing.T) {
	s := startServer(t)
	session := s.dial()
	s.vsctl("init", "--", "add-br", "br0", "--", "set", "bridge", "br0", `datapath_id="0000001122334455"`)
	mustConnect(t, session, ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653"}})
	s.vsctl("set", "bridge", "br0", `other_config:datapath-id="0000000000000007"`, `datapath_id="0000000000000007"`)
	if _, _, err := session.Disconnect(testContext(t), []string{"br0"}, false); err != nil {
		t.Fatal(err)
	}
	if got := s.vsctl("get", "bridge", "br0", "other_config"); got != `{datapath-id="0000000000000007"}` {
		t.Errorf("the bridge has %s", got)
	}
}

// configuration is what the tables have that Connect may change, without the UUIDs of rows.
func configuration(s *server) string {
	s.t.Helper()
	rows := map[string]any{}
	for _, table := range []string{"Controller", "SSL", "Bridge", "Open_vSwitch"} { // a row refers to those before
		var text []string
		for _, r := range s.list(table) {
			id := fmt.Sprint(r["_uuid"])
			line := ""
			for _, c := range slices.Sorted(maps.Keys(r)) {
				value := r[c]
				if list, ok := value.([]any); ok && list[0] == "uuid" {
					value = rows[fmt.Sprint(list)]
				} else if ok && list[0] == "set" {
					var elements []string
					for _, e := range list[1].([]any) {
						if row, refers := rows[fmt.Sprint(e)]; refers {
							e = row
						}
						elements = append(elements, fmt.Sprint(e))
					}
					value = slices.Sorted(slices.Values(elements))
				}
				if !slices.Contains([]string{"_uuid", "_version", "next_cfg", "cur_cfg", "ports"}, c) && fmt.Sprint(value) != "[]" {
					line += fmt.Sprintf("%s=%v ", c, value)
				}
			}
			rows[id] = line
			text = append(text, line)
		}
		slices.Sort(text)
		if table == "Open_vSwitch" {
			return strings.Join(text, "\n")
		}
	}
	return ""
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"ssl:192.0.2.1": "ssl:192.0.2.1:6653", "tcp:192.0.2.1:7000": "tcp:192.0.2.1:7000", "ssl:[2001:db8::1]": "ssl:[2001:db8::1]:6653",
		"ssl:c1.example.org:6653": "ssl:c1.example.org:6653",
	} {
		if got, err := ParseTarget(text); got != want || err != nil {
			t.Errorf("%s is %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"192.0.2.1:6653": "write ssl:ADDRESS:PORT", "ptcp:6653": "write ssl:ADDRESS:PORT", "": "write ssl:ADDRESS:PORT", "unix:/x": "write ssl",
		"ssl:2001:db8::1": "write ssl:[2001:db8::1]:6653", "ssl:192.0.2.1:0": "TCP port", "ssl:192.0.2.1:x": "TCP port", "ssl:192.0.2.1:70000": "TCP port",
		"ssl::6653": "no address", "ssl:0.0.0.0": "no address", "tcp:": "no address", "tcp:a b": "no address",
	} {
		_, err := ParseTarget(text)
		wantError(t, err, want)
	}
}
