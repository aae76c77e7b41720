package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/hostsurvey"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// machineInLab is a host with devices of many kinds, behind a link of 50 Mbit/s.
//
//	client ==50 Mbit/s== router ── server
const machineInLab = `
ip route add default via 10.0.1.1 dev router
ip link add br0 type bridge
ip link add port0 type veth peer name port1; ip link set port0 master br0
ip link add mac0 link router type macvlan; ip addr add 192.0.2.1/24 dev mac0
ip link add other type veth peer name other1; ip addr add 198.51.100.1/24 dev other; ip addr add 2001:db8::1/64 dev other nodad
ip link add taken type veth peer name taken1; ip addr add 203.0.113.1/24 dev taken
tc qdisc add dev taken root tbf rate 1mbit burst 5000 limit 5000
ip link add half type veth peer name half1; ip addr add 203.0.114.1/24 dev half
tc qdisc add dev half clsact
tc filter add dev half ingress pref 9 protocol ip u32 match u32 0 0 flowid 1:1
ip link add ifb7 type ifb
ip tuntap add dev pulled mode tap
ip link add vx0 type vxlan id 7 dstport 4789 dev router; ip addr add 192.0.3.1/24 dev vx0
for dev in br0 port0 port1 mac0 other other1 taken taken1 half half1 ifb7 pulled vx0; do ip link set $dev up; done
ip link add down0 type veth peer name down1
`

// TestInitDevices checks init's decisions on real devices, and that the written configuration
// can be applied without a loss of throughput.
func TestInitDevices(t *testing.T) {
	l := labtest.Up(t, &lab.Topology{
		Nodes: []lab.NodeSpec{{Name: "client"}, {Name: "router", Router: true}, {Name: "server"}},
		Links: []lab.LinkSpec{
			{Ends: [2]string{"client", "router"}, Forward: lab.Limited(50 * unit.Mbit), Back: lab.Limited(50 * unit.Mbit)},
			{Ends: [2]string{"router", "server"}},
		},
	})
	server := nodeProgram{t, l.Node("server")}
	labtest.Run(t, server.node, "sh", "-ec", machineInLab)
	report := func(args ...string) (r hostsurvey.Report) {
		t.Helper()
		if err := json.Unmarshal([]byte(server.must(append([]string{"init", "-o", "json"}, args...)...).out), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := report()
	if len(r.Interfaces) == 0 || r.Interfaces[0].Dev != "router" {
		t.Errorf("the device of the default route is not first: %+v", r.Interfaces)
	}
	want := map[string]struct {
		decision hostsurvey.Decision
		why      string
	}{
		"router": {hostsurvey.Commented, ""}, "other": {hostsurvey.Commented, ""}, "half": {hostsurvey.Commented, ""},
		"taken": {hostsurvey.LeftOut, "root qdisc tbf"}, "br0": {hostsurvey.LeftOut, "ports (port0)"}, "port0": {hostsurvey.LeftOut, "perspective: guest"},
		"mac0": {hostsurvey.LeftOut, "leaves through router"}, "ifb7": {hostsurvey.LeftOut, "IFB"}, "pulled": {hostsurvey.LeftOut, "no carrier"}, "down0": {hostsurvey.LeftOut, "ip link set down0 up"},
		"vx0": {hostsurvey.LeftOut, "a vxlan"}, "lo": {hostsurvey.LeftOut, "loopback"}, "other1": {hostsurvey.LeftOut, "perspective: guest"},
	}
	for _, c := range r.Interfaces {
		w, ok := want[c.Dev]
		if ok && (c.Decision != w.decision || !strings.Contains(c.Why, w.why)) {
			t.Errorf("%s is %s (%s), want %s (%s)", c.Dev, c.Decision, c.Why, w.decision, w.why)
		}
		delete(want, c.Dev)
		if c.Dev == "half" && !strings.Contains(c.NoIn, "u32") {
			t.Errorf("no_in is %q, want the foreign filter", c.NoIn)
		}
	}
	for dev := range want {
		t.Errorf("%s is not in the report", dev)
	}
	if again := report(); again.Configuration != r.Configuration {
		t.Errorf("the second configuration is\n%s\nthe first was\n%s", again.Configuration, r.Configuration)
	}
	file := filepath.Join(t.TempDir(), "init.yaml")
	if said := server.must("init", "-f", file).err; !strings.Contains(said, "commented: router, half, other") {
		t.Errorf("init prints %s", said)
	}
	if r := server.run("check", "-f", file); r.code != exitUsage || !strings.Contains(r.err, "every line is a comment") {
		t.Errorf("check of the file: exit %d: %s", r.code, r.err)
	}
	if r := server.run("init", "--speed", "router=50Mbit", "-f", file); r.code != exitFailed || !strings.Contains(r.err, "choose another name, or remove the file first") {
		t.Errorf("a file that exists: exit %d: %s", r.code, r.err)
	}
	ready := filepath.Join(t.TempDir(), "ready.yaml")
	server.must("init", "--speed", "router=50Mbit", "-f", ready)
	server.must("check", "-f", ready)
	if plan := server.must("plan", "-f", ready).out; !strings.Contains(plan, "49.5Mbit") || !strings.Contains(plan, "47.5Mbit") {
		t.Errorf("plan of the file:\n%s", plan)
	}
	t.Cleanup(func() { server.must("clear", "--dev", "router") })
	labtest.Try(t, func(t *labtest.Check) {
		server.must("clear", "--dev", "router")
		before := bothWays(t, l)
		server.must("apply", "-f", ready)
		after := bothWays(t, l)
		t.Logf("out and in %.1f Mbit/s without the configuration, %.1f with it", before, after)
		// The limits are 99 and 95 % of the link; the short measurement needs 3 % of tolerance.
		if after[0] < 0.96*before[0] || after[1] < 0.92*before[1] {
			t.Errorf("out and in %.1f Mbit/s without the configuration, %.1f with it", before, after)
		}
	})
	if r := report(); r.Interfaces[0].Decision != hostsurvey.LeftOut || !strings.Contains(r.Interfaces[0].Why, "headgate show --dev router") {
		t.Errorf("a device that has groups is %+v", r.Interfaces[0])
	}
	// The client has only its link and loopback.
	client := nodeProgram{t, l.Node("client")}
	labtest.Run(t, client.node, "ip", "link", "set", "router", "down")
	if r := client.run("init"); r.code != exitFailed || !strings.Contains(r.err, "\"ip link set router up\"") || !strings.Contains(r.err, "lo: loopback") {
		t.Errorf("without a device to shape: exit %d: %s", r.code, r.err)
	}
}

// bothWays measures TCP from server to client and back at the same time, in Mbit/s of layer 2.
func bothWays(t *labtest.Check, l *lab.Lab) (rates [2]float64) {
	t.Helper()
	session, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{
		{Name: "out", From: "server", To: "client", Protocol: traffic.TCP, Schedule: traffic.Constant(traffic.Unlimited)},
		{Name: "in", From: "client", To: "server", Protocol: traffic.TCP, Schedule: traffic.Constant(traffic.Unlimited)},
	}, traffic.Options{Duration: 2500 * time.Millisecond, Interval: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r := session.Wait()
	for i, name := range []string{"out", "in"} {
		rates[i] = r.Flow(name).Between(time.Second, 2500*time.Millisecond).DeliveredL2Bits / 1.5e6
	}
	return rates
}
