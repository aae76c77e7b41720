package lab_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

func between(a, b string) lab.LinkSpec { return lab.LinkSpec{Ends: [2]string{a, b}} }

// The pair topology, with the OpenFlow port numbers:
//
//	h1 ──2 s1 1──1 s2 2── h3
//	h2 ──3
func pair(mode lab.FailMode) *lab.Topology {
	return &lab.Topology{
		Nodes:    []lab.NodeSpec{{Name: "h1"}, {Name: "h2"}, {Name: "h3"}},
		Switches: []lab.SwitchSpec{{Name: "s1", FailMode: mode}, {Name: "s2", FailMode: mode, ID: 0xabc}},
		Links:    []lab.LinkSpec{between("s1", "s2"), between("h1", "s1"), between("h2", "s1"), between("h3", "s2")},
	}
}

func addr(t testing.TB, l *lab.Lab, node string, ipv6 bool) string {
	t.Helper()
	a, err := l.Node(node).Addr(ipv6)
	if err != nil {
		t.Fatal(err)
	}
	return a.String()
}

// pingAll sends an echo request between all nodes, over both IP versions.
func pingAll(t testing.TB, l *lab.Lab, nodes ...string) {
	t.Helper()
	for _, from := range nodes {
		for _, to := range nodes {
			for _, ipv6 := range []bool{false, true} {
				labtest.Run(t, l.Node(from), "ping", "-q", "-c", "1", "-W", "2", addr(t, l, to, ipv6))
			}
		}
	}
}

// ofctl runs ovs-ofctl for a switch.
func ofctl(t testing.TB, l *lab.Lab, name string, args ...string) string {
	t.Helper()
	out, err := l.Switch(name).Command(t.Context(), "ovs-ofctl", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ovs-ofctl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Standalone switches forward between their nodes. Datapath ids and port numbers are as specified, and
// offloads are off.
func TestStandaloneSwitches(t *testing.T) {
	l := labtest.Up(t, pair(lab.Standalone))
	pingAll(t, l, "h1", "h2", "h3")
	for name, want := range map[string][]string{
		"s1": {"dpid:0000000000000001", " 1(s1-s2): ", " 2(s1-h1): ", " 3(s1-h2): "},
		"s2": {"dpid:0000000000000abc", " 1(s2-s1): ", " 2(s2-h3): "},
	} {
		out := ofctl(t, l, name, "show", name)
		for _, part := range want {
			if !strings.Contains(out, part) {
				t.Errorf("%s has no %q:\n%s", name, part, out)
			}
		}
	}
	if p, err := l.Switch("s2").Port("h3"); err != nil || p.Number != 2 || p.Device != "s2-h3" || p.Link != "h3-s2" || len(l.Switch("s2").Ports()) != 2 {
		t.Errorf("port towards h3: %+v, %v", p, err)
	}
	if _, err := l.Switch("s2").Port("h1"); !errors.Is(err, lab.ErrConfig) {
		t.Errorf("port of a link that does not exist: %v", err)
	}
	if out := labtest.Run(t, l.Node("h1"), "ethtool", "-k", "s1"); !strings.Contains(out, "tx-checksumming: off") {
		t.Errorf("offloads of h1:\n%s", out)
	}
	if id := l.Switch("s2").DatapathID(); id != 0xabc {
		t.Errorf("datapath id %x", id)
	}
}

// Secure switches without a controller forward what their flows pass. A kill of ovs-vswitchd ends
// that; after its restart there are ports, and no flows.
func TestSecureSwitches(t *testing.T) {
	l := labtest.Up(t, pair(""))
	reaches := func() bool {
		return l.Node("h1").Command(t.Context(), "ping", "-q", "-c", "1", "-W", "1", addr(t, l, "h3", false)).Run() == nil
	}
	if reaches() {
		t.Error("switches without flows forward")
	}
	forward := func() {
		ofctl(t, l, "s1", "add-flow", "s1", "in_port=1,actions=output:2")
		ofctl(t, l, "s1", "add-flow", "s1", "in_port=2,actions=output:1")
		ofctl(t, l, "s2", "add-flow", "s2", "in_port=1,actions=output:2")
		ofctl(t, l, "s2", "add-flow", "s2", "in_port=2,actions=output:1")
	}
	soon := func() bool { // the first question for a neighbour may have been lost before
		for range 10 {
			if reaches() {
				return true
			}
		}
		return false
	}
	forward()
	if !soon() {
		t.Error("switches with flows do not forward")
	}
	if err := l.KillSwitches(); err != nil {
		t.Fatal(err)
	}
	if reaches() {
		t.Error("killed switches forward")
	}
	if err := l.RestartSwitches(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := ofctl(t, l, "s1", "dump-flows", "s1"); strings.Contains(out, "in_port") {
		t.Errorf("flows after a restart:\n%s", out)
	}
	forward()
	if !soon() {
		t.Error("restarted switches do not forward")
	}
}

// RSTP breaks the loop of three switches: one port of a link between them is not used, and all nodes
// reach each other.
//
//	h1 ── s1 ── s2 ── h2
//	       └ s3 ┘
func TestSwitchesWithRSTP(t *testing.T) {
	ring := func(name string) lab.SwitchSpec {
		return lab.SwitchSpec{Name: name, FailMode: lab.Standalone, RSTP: true}
	}
	l := labtest.Up(t, &lab.Topology{
		Nodes:    []lab.NodeSpec{{Name: "h1"}, {Name: "h2"}},
		Switches: []lab.SwitchSpec{ring("s1"), ring("s2"), ring("s3")},
		Links:    []lab.LinkSpec{between("s1", "s2"), between("s2", "s3"), between("s3", "s1"), between("h1", "s1"), between("h2", "s2")},
	})
	pingAll(t, l, "h1", "h2")
	out, err := l.Switch("s1").Command(t.Context(), "ovs-vsctl", "--columns=rstp_status", "list", "port").CombinedOutput()
	if err != nil || strings.Count(string(out), "rstp_port_state=Discarding") != 1 {
		t.Errorf("%v, want one port that discards:\n%s", err, out)
	}
}

// Nodes at switches reach others through routers, and over an emulated link between switches.
//
//	h1 ── s1 ──1 ms── s2 ── r ── s3 ── h2
//	                        └── h3
func TestSwitchesBehindRouter(t *testing.T) {
	open := func(name string) lab.SwitchSpec { return lab.SwitchSpec{Name: name, FailMode: lab.Standalone} }
	wan := between("s1", "s2")
	wan.Forward.Delay, wan.Back.Delay = time.Millisecond, time.Millisecond
	l := labtest.Up(t, &lab.Topology{
		Nodes:    []lab.NodeSpec{{Name: "h1"}, {Name: "h2"}, {Name: "h3"}, {Name: "r", Router: true}},
		Switches: []lab.SwitchSpec{open("s1"), open("s2"), open("s3")},
		Links:    []lab.LinkSpec{between("h1", "s1"), wan, between("s2", "r"), between("r", "s3"), between("h2", "s3"), between("r", "h3")},
	})
	pingAll(t, l, "h1", "h2", "h3", "r")
}

// A full queue of a slow link stops no other port. All ports send by one socket.
//
//	h1 ── s1 ──1 Mbit/s── h2
//	      └── s2 ── h3
func TestSwitchQueuesAreSeparate(t *testing.T) {
	topology := pair(lab.Standalone)
	slow := lab.Limited(unit.Mbit)
	slow.Queue = link.Amount{Bytes: 1 << 20}
	topology.Links[2].Back = slow // from s1 to h2
	l := labtest.Up(t, topology)
	h1, h2, h3 := l.Node("h1"), addr(t, l, "h2", false), addr(t, l, "h3", false)
	for _, to := range []string{h2, h3} { // the switches learn the nodes' places
		labtest.Run(t, h1, "ping", "-q", "-c", "1", "-W", "2", to)
	}
	var conn net.Conn
	err := h1.Do(func() (err error) { conn, err = net.Dial("udp", net.JoinHostPort(h2, "9")); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 400 { // 4.6 s of the slow link
		if _, err := conn.Write(make([]byte, 1400)); err != nil {
			break // the first datagrams have arrived, and are refused
		}
		time.Sleep(100 * time.Microsecond)
	}
	out, err := l.Switch("s1").Command(t.Context(), "tc", "-s", "qdisc", "show", "dev", "s1-h2").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "htb") {
		t.Fatalf("the slow link has no queue: %v\n%s", err, out)
	}
	labtest.Run(t, h1, "ping", "-q", "-c", "1", "-W", "2", h3)
}

// Flows, programs and the timeline of a run work with switches.
func TestRunWithSwitches(t *testing.T) {
	topology := pair(lab.Standalone)
	topology.Name = lab.UniqueName("run")
	was, becomes := lab.Limited(10*unit.Mbit), lab.Limited(5*unit.Mbit)
	topology.Links[0].Forward, topology.Links[0].Back = was, was
	topology.Flows = []traffic.Flow{{Name: "f", From: "h1", To: "h3", Protocol: traffic.UDP, Schedule: traffic.Constant(200 * unit.Kbit)}}
	topology.Programs = []lab.Program{{Name: "show", Node: "s1", Command: []string{"ovs-ofctl", "show", "s1"}}}
	topology.Timeline = []lab.Event{{At: 500 * time.Millisecond, Link: "s1-s2", Forward: &becomes}}
	topology.Duration = time.Second
	r := run(t, topology, lab.RunOptions{})
	if r.Failure() != nil || len(r.Events) != 1 || r.Flow("f").Total.DeliveredBytes == 0 || r.Links[0].Forward.Total.Bytes == 0 {
		t.Errorf("failure %v, events %+v, flow %+v, link %+v", r.Failure(), r.Events, r.Flow("f").Total, r.Links[0].Forward.Total)
	}
	if out, err := os.ReadFile(r.Programs[0].Output); err != nil || !strings.Contains(string(out), "dpid:0000000000000001") {
		t.Errorf("the program at s1: %v\n%s", err, out)
	}
}

// Every switch connects to its controllers: a program in a node, and a socket that is set later.
func TestSwitchControllers(t *testing.T) {
	topology := pair("")
	topology.Nodes = append(topology.Nodes, lab.NodeSpec{Name: "c1"})
	for i := range topology.Switches {
		s := &topology.Switches[i]
		s.Protocols, s.Controllers = []string{"OpenFlow13"}, []string{"c1:6653"}
	}
	l := labtest.Up(t, topology)
	var tcp net.Listener
	err := l.Node("c1").Do(func() (err error) { tcp, err = net.Listen("tcp4", ":6653"); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	hello(t, tcp, 2)
	// The kernel of the switches' namespace does not answer ARP for its management address on their ports.
	labtest.Run(t, l.Node("h1"), "ip", "addr", "add", "169.254.1.99/24", "dev", "s1")
	l.Node("h1").Command(t.Context(), "ping", "-q", "-c", "1", "-W", "1", "169.254.1.1").Run()
	if out := labtest.Run(t, l.Node("h1"), "ip", "neigh", "show", "169.254.1.1"); out == "" || strings.Contains(out, "lladdr") {
		t.Errorf("the management address as h1 knows it: %q, want no hardware address", out)
	}
	socket, err := net.Listen("unix", filepath.Join(l.SwitchesDir(), "mine"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := l.Switch("s2").SetControllers(t.Context(), "unix:mine"); err != nil {
		t.Fatal(err)
	}
	hello(t, socket, 1)
	for _, bad := range []string{"h1:6653", "nobody:6653", "unix:/tmp/x"} {
		if err := l.Switch("s2").SetControllers(t.Context(), bad); !errors.Is(err, lab.ErrConfig) {
			t.Errorf("controller %s: %v", bad, err)
		}
	}
	if c, err := net.Dial("unix", strings.TrimPrefix(l.SwitchesDatabase(), "unix:")); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
}

// hello accepts connections of n switches, of which each begins with OFPT_HELLO of version 1.3.
func hello(t *testing.T, from net.Listener, n int) {
	t.Helper()
	for range n {
		c, err := from.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		header := make([]byte, 8)
		if _, err := io.ReadFull(c, header); err != nil || header[0] != 4 || header[1] != 0 || binary.BigEndian.Uint16(header[2:]) < 8 {
			t.Errorf("a switch begins with % x, %v", header, err)
		}
	}
}

// Two labs have their own switches. A lab whose owner was killed is removed with its switches, also if
// its state file is lost, and the other lab's switches still forward.
func TestSwitchesOfKilledLab(t *testing.T) {
	other := labtest.Up(t, pair(lab.Standalone))
	for _, lost := range []bool{false, true} {
		name := fmt.Sprintf("%s-%t", lab.UniqueName("killed"), lost)
		victim, out := startSwitches(t, name)
		fmt.Fscanln(out, new(int)) // it is up
		victim.Process.Kill()
		victim.Wait()
		if lost {
			if err := os.Remove("/run/headgate/lab/" + name + ".json"); err != nil {
				t.Fatal(err)
			}
		}
		if got := ovsPrograms(name); len(got) != 2 {
			t.Errorf("programs of Open vSwitch that survived their parent: %q, want two", got)
		}
		if l := leftover(t, name); l == nil || l.InUse || l.Kept {
			t.Errorf("after the kill: %+v", l)
		}
		if err := lab.Down(name); err != nil {
			t.Fatal(err)
		}
		noSwitchesLeft(t, name)
	}
	pingAll(t, other, "h1", "h3")
}

// Down removes a lab with switches whenever its owner is killed. Up takes about 0.2 s.
func TestKillWhileSwitchesStart(t *testing.T) {
	labtest.NeedRoot(t)
	found := 0
	for i := range 6 {
		name := fmt.Sprintf("%s-%d", lab.UniqueName("early"), i)
		victim, _ := startSwitches(t, name)
		time.Sleep(time.Duration(40+40*i) * time.Millisecond)
		victim.Process.Kill()
		victim.Wait()
		if leftover(t, name) != nil {
			found++
			if err := lab.Down(name); err != nil {
				t.Fatal(err)
			}
		}
		noSwitchesLeft(t, name)
	}
	if found == 0 {
		t.Error("no kill came while the lab existed: adjust the times")
	}
}

// startSwitches starts a program that has the pair (see TestMain).
func startSwitches(t *testing.T, name string) (*exec.Cmd, io.Reader) {
	t.Helper()
	t.Setenv("LAB_TO_KILL_HAS", "switches")
	return startVictim(t, name)
}

// ovsPrograms lists the running programs that have the directory of a lab's switches in their command.
func ovsPrograms(name string) (out []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if command, err := os.ReadFile(f); err == nil && strings.Contains(string(command), "/run/headgate/lab/"+name+".ovs/") {
			out = append(out, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return out
}

func noSwitchesLeft(t *testing.T, name string) {
	t.Helper()
	nothingLeft(t, name)
	if left := ovsPrograms(name); len(left) > 0 {
		t.Errorf("running: %q", left)
	}
}
