package doctor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"headgate.dev/headgate/cli"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/doctor"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// programEnv is an environment variable that makes the test binary run as headgate.
const programEnv = "HEADGATE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// host is a namespace to run the program in:
//
//	host ── far
type host struct {
	*testing.T
	node  *lab.Node
	state string
}

func newHost(t *testing.T) host {
	l := labtest.Up(t, &lab.Topology{
		Nodes: []lab.NodeSpec{{Name: "host"}, {Name: "far"}}, Links: []lab.LinkSpec{{Ends: [2]string{"host", "far"}}},
	})
	return host{t, l.Node("host"), t.TempDir()}
}

func (h host) run(args ...string) (code int, stdout string) {
	h.Helper()
	cmd := h.node.Command(h.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), programEnv+"=1", "HEADGATE_STATE="+h.state)
	out, err := cmd.Output()
	return exitCode(h.T, err), string(out)
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Logf("standard error: %s", exit.Stderr)
		return exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return 0
}

func (h host) sh(line string) string {
	h.Helper()
	return labtest.Run(h.T, h.node, "sh", "-ec", line)
}

func (h host) examine(wantCode int, args ...string) doctor.Report {
	h.Helper()
	code, out := h.run(append([]string{"doctor", "-o", "json"}, args...)...)
	if code != wantCode {
		h.Fatalf("headgate doctor %v: exit %d, want %d\n%s", args, code, wantCode, out)
	}
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		h.Fatalf("%v in %s", err, out)
	}
	for _, c := range r.Checks {
		if c.Meaning == "" || c.State == doctor.Missing && c.Remedy == "" || c.State == doctor.Unknown && c.Remedy == "" {
			h.Errorf("check without meaning or remedy: %+v", c)
		}
	}
	return r
}

func (h host) wants(r doctor.Report, about, name string, state doctor.State, found string) {
	h.Helper()
	c, ok := r.Of(about, name)
	if !ok || c.State != state || !strings.Contains(c.Found, found) {
		h.Errorf("check %q of %s: %+v, want %s with %q", name, about, c, state, found)
	}
}

// TestWhereGroupsWork: on this kernel, which supports all that the engines' tests need,
// all needed checks pass.
func TestWhereGroupsWork(t *testing.T) {
	h := newHost(t)
	before := h.traces()
	r := h.examine(0, "far")
	for _, name := range []string{"kernel", "capabilities", "HTB", "bfifo", "TBF", "clsact", "cls_bpf", "IFB", "TUN/TAP", "groups on a device", "collective control (sockops)", "open connections"} {
		h.wants(r, doctor.Machine, name, doctor.OK, "")
	}
	for _, name := range []string{"fq_codel", "netem", "eBPF JIT", "queue measurement (BTF, tp_btf)", "bpf file system", "cgroup v2", "congestion control", "timers"} {
		if c, ok := r.Of(doctor.Machine, name); !ok || c.State == doctor.Missing {
			t.Errorf("check %q: %+v", name, c)
		}
	}
	h.wants(r, "far", "device", doctor.OK, "veth")
	h.wants(r, "far", "speed", doctor.OK, "virtual")
	h.wants(r, "far", "transmit queues", doctor.OK, "1")
	h.wants(r, "far", "offloads", doctor.OK, "TSO GSO on")
	h.wants(r, "far", "MTU", doctor.OK, "1500")
	h.wants(r, "far", `traffic control "out"`, doctor.OK, "")
	h.wants(r, "far", `traffic control "in"`, doctor.OK, "")
	if after := h.traces(); after != before {
		t.Errorf("doctor left objects behind:\nbefore: %s\nafter:  %s", before, after)
	}
}

// traces lists the objects that doctor might leave behind.
func (h host) traces() string {
	runs, _ := filepath.Glob("/run/headgate/*")
	pins, _ := filepath.Glob("/sys/fs/bpf/headgate/collective/doctor-*")
	return h.sh("ip -o link; tc qdisc; tc filter show dev far egress") + strings.Join(append(runs, pins...), " ")
}

// The next doctor removes what a killed one had attached.
func TestAfterAKilledDoctor(t *testing.T) {
	h := newHost(t)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	before := h.traces()
	table, err := sockops.Open(fmt.Sprintf("doctor-%d", dead.Process.Pid), 2)
	if err == nil {
		err = table.Attach(sockops.Set{Number: 1})
		table.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if h.traces() == before {
		t.Error("the killed doctor left nothing: the test has no effect")
	}
	h.examine(0, "far")
	if after := h.traces(); after != before {
		t.Errorf("left behind:\nbefore: %s\nafter:  %s", before, after)
	}
}

func TestForeignConflicts(t *testing.T) {
	h := newHost(t)
	h.sh("tc qdisc add dev far root tbf rate 1mbit burst 5000 limit 5000")
	r := h.examine(1, "far")
	h.wants(r, "far", `traffic control "out"`, doctor.Missing, "tbf")
	h.wants(r, "far", `traffic control "in"`, doctor.OK, "")
	h.sh("tc qdisc del dev far root; tc qdisc add dev far clsact")
	h.sh("tc filter add dev far ingress pref 9 protocol ip u32 match u32 0 0 flowid 1:1; tc filter add dev far egress pref 9 protocol ip u32 match u32 0 0 flowid 1:1")
	r = h.examine(1, "far")
	h.wants(r, "far", `traffic control "out"`, doctor.OK, "")
	h.wants(r, "far", `traffic control "in"`, doctor.Missing, "u32")
	h.wants(r, "far", "foreign", doctor.OK, "u32")
	h.sh("ethtool -K far tso off; ip link set far down; ip link set lo down")
	r = h.examine(1, "far")
	h.wants(r, doctor.Machine, "collective control (sockops)", doctor.OK, "")
	h.wants(r, doctor.Machine, "open connections", doctor.Unknown, "cannot open a connection")
	h.wants(r, "far", "offloads", doctor.Limited, "TSO GRO off")
	h.wants(r, "far", "device", doctor.Limited, "down")
}

func TestDevicesInEveryState(t *testing.T) {
	h := newHost(t)
	r := h.examine(1, "nosuch", "a-name-that-no-device-can-have")
	h.wants(r, "nosuch", "device", doctor.Missing, "")
	file := filepath.Join(h.state, "far.yaml")
	if err := os.WriteFile(file, []byte("kind: Interface\ndev: far\nout: {limit: 1Gbit, groups: [{name: rest, default: true}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := h.run("apply", "-f", file); code != 0 {
		t.Fatal(out)
	}
	h.wants(h.examine(0, "far"), "far", "groups", doctor.OK, "in force, by htb")
	h.sh("tc qdisc del dev far root")
	h.wants(h.examine(0, "far"), "far", "groups", doctor.Limited, "in force")
	h.sh("ip link add many numtxqueues 4 numrxqueues 4 type veth peer name y numtxqueues 4 numrxqueues 4; ethtool -L many tx 4")
	h.wants(h.examine(0, "many"), "many", "transmit queues", doctor.Limited, "4")
}

// A tcx program runs before any filter, and tc does not list it.
func TestProgramsThatComeEarlier(t *testing.T) {
	h := newHost(t)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	err = h.node.Do(func() error {
		dev, err := net.InterfaceByName("far")
		if err != nil {
			return err
		}
		l, err := link.AttachTCX(link.TCXOptions{Interface: dev.Index, Program: p, Attach: ebpf.AttachTCXIngress})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r := h.examine(0, "far")
	h.wants(r, "far", "tcx ingress", doctor.Limited, "program ")
	if c, ok := r.Of("far", "tcx egress"); ok {
		t.Errorf("check for tcx egress without a program there: %+v", c)
	}
}

func TestMeasure(t *testing.T) {
	h := newHost(t)
	r := h.examine(0, "--measure")
	c := r.Throughput
	if c == nil {
		t.Fatal("no measurement in the report")
	}
	t.Logf("%+v", *c)
	if c.PacketsPerSecond < 1e4 || c.WithoutPPS < 1e4 || c.Bandwidth < 1e9 || c.BandwidthWithout < 1e9 {
		t.Errorf("measured %+v, implausibly low for any machine", *c)
	}
	if c.MeasuredInSeconds > 4 { // 2 on an idle machine
		t.Errorf("the measurement took %v s, want at most 4", c.MeasuredInSeconds)
	}
}

func TestNotPermitted(t *testing.T) {
	labtest.NeedRoot(t)
	// setpriv removes all capabilities from a process that stays root.
	cmd := exec.CommandContext(t.Context(), "setpriv", "--bounding-set=-all", os.Args[0], "doctor", "-o", "json")
	cmd.Env = append(os.Environ(), programEnv+"=1")
	out, err := cmd.Output()
	if code := exitCode(t, err); code != 3 {
		t.Errorf("exit %d, want 3\n%s", code, out)
	}
	var r doctor.Report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if c, ok := r.Of(doctor.Machine, "capabilities"); !ok || c.State != doctor.Unknown || !strings.Contains(c.Found, "without CAP_NET_ADMIN") {
		t.Errorf("capabilities: %+v", c)
	}
	if left, _ := filepath.Glob("/sys/fs/bpf/headgate/collective/doctor-*"); len(left) > 0 {
		t.Errorf("doctor left objects behind: %v", left)
	}
}

func TestInitForThisMachine(t *testing.T) {
	h := newHost(t)
	h.sh("ip route add default dev far; ping -q -c 1 10.0.0.2 || true")
	file := filepath.Join(h.state, "init.yaml")
	if code, _ := h.run("init", "-f", file, "--speed", "far=1Gbit"); code != 0 {
		t.Fatalf("init: exit %d", code)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "dev: far") || !strings.Contains(string(text), "default route") {
		t.Errorf("%v in:\n%s", err, text)
	}
	if code, _ := h.run("check", "-f", file); code != 0 {
		t.Errorf("check of init's file: exit %d", code)
	}
	if code, out := h.run("plan", "-f", file); code != 0 || !strings.Contains(out, "add    in limit") {
		t.Errorf("plan of init's file: exit %d\n%s", code, out)
	}
	if code, _ := h.run("init", "-f", file); code != 1 {
		t.Errorf("init over a file that exists: exit %d, want 1", code)
	}
	if code, _ := h.run("init", "--dev", "nosuch"); code != 1 {
		t.Errorf("init of a device that does not exist: exit %d, want 1", code)
	}
}
