package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/cli"
	"headgate.dev/headgate/internal/cgroup2"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
)

// programEnv makes the test binary run as the program.
const programEnv = "HEADGATE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// soon is how long a device may be without its groups. Shaping a new device takes a fraction of a
// second, which the tests log; on a busy machine it took more than one second once. A change
// without an event would be found only after a minute.
const soon = 5 * time.Second

// host is a network namespace with an agent process:
//
//	host ── far
//
// Tests add veth pairs inside the host.
type host struct {
	*testing.T
	lab    *lab.Lab
	node   *lab.Node
	far    string // the address of the node far
	dir    string // the agent's configuration directory
	state  string
	agent  *lab.Cmd
	log    *buffer
	notify *net.UnixConn
}

func newHost(t *testing.T, documents ...string) *host {
	l := labtest.Up(t, &lab.Topology{
		Nodes: []lab.NodeSpec{{Name: "host"}, {Name: "far"}}, Links: []lab.LinkSpec{{Ends: [2]string{"host", "far"}}},
	})
	h := &host{T: t, lab: l, node: l.Node("host"), dir: t.TempDir(), state: t.TempDir()}
	far, err := l.Node("far").Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	h.far = far.String()
	// The name is short because the path of a socket has at most 107 bytes.
	socket := filepath.Join(h.state, "n")
	h.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.notify.Close() })
	h.write(documents...)
	h.start()
	return h
}

// write replaces the agent's configuration files by these documents.
func (h *host) write(documents ...string) {
	h.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, "all.yaml"), []byte(strings.Join(documents, "\n---\n")), 0o644); err != nil {
		h.Fatal(err)
	}
}

// start starts an agent and waits until it is ready.
func (h *host) start() {
	h.Helper()
	h.log = &buffer{}
	// Not h.Context: the test or Cleanup kills the agent.
	h.agent = h.node.Command(context.Background(), os.Args[0], "agent", "-f", h.dir, "--socket", h.socket())
	h.agent.Env = append(os.Environ(), programEnv+"=1", "HEADGATE_STATE="+h.state, "NOTIFY_SOCKET="+filepath.Join(h.state, "n"))
	h.agent.Stdout, h.agent.Stderr = h.log, h.log
	if err := h.agent.Start(); err != nil {
		h.Fatal(err)
	}
	agent := h.agent
	h.Cleanup(func() {
		_ = agent.Process.Kill() // the test may have killed it already
		_ = agent.Wait()
		if h.Failed() {
			h.Logf("the agent's log:\n%s", h.log)
		}
	})
	h.lastReport("READY=1")
}

// socket is the path of the agent's socket for programs.
func (h *host) socket() string { return filepath.Join(h.state, "s") }

// lastReport waits for a message to the service manager.
func (h *host) lastReport(what string) {
	h.Helper()
	text := make([]byte, 4096)
	for {
		if err := h.notify.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			h.Fatal(err)
		}
		n, err := h.notify.Read(text)
		if err != nil {
			h.Fatalf("no message %s from the agent: %v\n%s", what, err, h.log)
		}
		if strings.HasPrefix(string(text[:n]), what) {
			return
		}
	}
}

// logs waits until the log contains text the given number of times. The log arrives through a pipe,
// possibly later than the change in the kernel or the message to the service manager.
func (h *host) logs(text string, times int) {
	h.Helper()
	for began := time.Now(); strings.Count(h.log.String(), text) != times; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			h.Fatalf("the log has %q %d times, want %d:\n%s", text, strings.Count(h.log.String(), text), times, h.log)
		}
	}
}

func (h *host) sh(line string) {
	h.Helper()
	labtest.Run(h.T, h.node, "sh", "-ec", line)
}

// has waits until a device has the expected state.
func (h *host) has(dev, what string, ok func(shaper.State) bool) shaper.State {
	h.Helper()
	began := time.Now()
	for {
		var state shaper.State
		err := h.node.Do(func() (err error) { state, err = htb.New().Observe(dev); return err })
		if err == nil && len(state.Drift) == 0 && ok(state) {
			h.Logf("%s: %s after %v", dev, what, time.Since(began).Round(time.Millisecond))
			return state
		}
		if time.Since(began) > soon {
			h.Fatalf("%s does not have the expected state after %v (%s): %v, drift %v, rules %v\n%s", dev, soon, what, err, state.Drift, state.Plan.Out, h.log)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (h *host) hasLimit(dev, limit string) shaper.State {
	h.Helper()
	return h.has(dev, "limit "+limit, func(s shaper.State) bool { return s.Plan.Out.Limit.String() == limit })
}

// hasNothing waits until a device has no groups.
func (h *host) hasNothing(dev string) {
	h.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err := h.node.Do(func() error { _, err := htb.New().Observe(dev); return err })
		if errors.Is(err, shaper.ErrNotShaped) {
			return
		}
		if time.Since(began) > soon {
			h.Fatalf("%s still has groups: %v\n%s", dev, err, h.log)
		}
	}
}

func document(dev, limit string) string {
	return fmt.Sprintf("kind: Interface\ndev: %q\nout: {limit: %s, groups: [{name: rest, default: true}]}\nin: {limit: %s, groups: [{name: rest, default: true}]}", dev, limit, limit)
}

func TestDeviceReturns(t *testing.T) {
	h := newHost(t, document("veth0", "100Mbit"))
	for range 3 {
		h.sh("ip link add veth0 type veth peer name peer0")
		h.hasLimit("veth0", "100Mbit")
		h.sh("ip link del veth0")
	}
	for began := time.Now(); strings.Contains(labtest.Run(t, h.node, "ip", "link"), "hgi"); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > soon {
			t.Fatalf("the IFB of a removed device still exists\n%s", h.log)
		}
	}
}

func TestPatternMatchesNewVeth(t *testing.T) {
	h := newHost(t, document("veth*", "100Mbit"), document("veth2", "200Mbit"))
	h.sh("for i in 0 1 2; do ip link add veth$i type veth peer name peer$i; done")
	h.hasLimit("veth0", "100Mbit")
	h.hasLimit("veth1", "100Mbit")
	h.hasLimit("veth2", "200Mbit")
	h.hasNothing("peer0")
}

// The configuration applies to a device by an alternative name, or a pattern that matches one, from
// the moment that the device gets the name until it loses the name.
func TestAlternativeNamesAreFollowed(t *testing.T) {
	h := newHost(t, document("uplink-with-a-long-name", "50Mbit"), document("slot*", "20Mbit"))
	h.sh("ip link property add dev far altname uplink-with-a-long-name")
	h.hasLimit("far", "50Mbit")
	h.sh("ip link add veth0 type veth peer name peer0; ip link property add dev veth0 altname slot0")
	h.hasLimit("veth0", "20Mbit")
	h.hasNothing("peer0")
	h.sh("ip link property del dev far altname uplink-with-a-long-name")
	h.hasNothing("far")
	h.sh("ip link property add dev far altname uplink-with-a-long-name; ip link property add dev far altname second")
	h.write(document("second", "40Mbit"), document("far", "30Mbit"))
	if err := h.agent.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	h.hasLimit("far", "30Mbit")
	h.logs("device is configured twice", 1)
}

func TestMTUAndNameAreFollowed(t *testing.T) {
	h := newHost(t, document("far", "100Mbit"), document("wan", "50Mbit"))
	h.hasLimit("far", "100Mbit")
	h.sh("ip link set far mtu 9000")
	h.hasLimit("far", "100Mbit") // without drift: the leaf queues are for an MTU of 9,000 bytes
	h.sh("ip link set far down; ip link set far name wan; ip link set wan up")
	h.hasLimit("wan", "50Mbit")
	h.sh("ip link set wan down; ip link set wan name other; ip link set other up")
	h.hasNothing("other")
}

func TestRecreatedCgroupIsFollowed(t *testing.T) {
	root, err := cgroup2.Mount()
	if err != nil {
		t.Fatal(err)
	}
	slice := fmt.Sprintf("/headgate-test-%d", os.Getpid())
	service := slice + "/web.service"
	t.Cleanup(func() {
		_ = os.Remove(root + service)
		_ = os.Remove(root + slice)
	})
	h := newHost(t, fmt.Sprintf("kind: Interface\ndev: far\nout: {limit: 100Mbit, groups: [{name: web, match: [{cgroup: %s}]}, {name: rest, default: true}]}", service))
	h.has("far", "no rule", func(s shaper.State) bool { return len(s.Plan.Out.Rules) == 0 })
	for i := range 3 {
		// The service's directory, and in the first round also the slice's.
		if err := errors.Join(os.MkdirAll(root+service, 0o755)); err != nil {
			t.Fatal(err)
		}
		before := h.has("far", "a rule", func(s shaper.State) bool { return len(s.Plan.Out.Rules) == 1 })
		h.sh(fmt.Sprintf("echo $$ >%s/cgroup.procs; exec ping -q -c 3 -i 0.01 %s", root+service, h.far))
		after := h.has("far", "a rule", func(s shaper.State) bool { return len(s.Plan.Out.Rules) == 1 })
		if got := after.Out.Groups[0].Packets - before.Out.Groups[0].Packets; got != 3 {
			t.Errorf("start %d of the service: %d of its 3 packets are in its group", i+1, got)
		}
		if err := os.Remove(root + service); err != nil {
			t.Fatal(err)
		}
		h.has("far", "no rule", func(s shaper.State) bool { return len(s.Plan.Out.Rules) == 0 })
	}
}

func TestKilledAgentLeavesEnforcement(t *testing.T) {
	h := newHost(t, document("far", "100Mbit"))
	before := h.hasLimit("far", "100Mbit")
	if err := h.agent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = h.agent.Wait()
	h.sh("ping -q -c 3 -i 0.01 " + h.far)
	after := h.hasLimit("far", "100Mbit")
	if got := after.Out.Groups[0].Packets - before.Out.Groups[0].Packets; got < 3 {
		t.Errorf("%d packets were counted after the agent was killed, want at least 3", got)
	}
	h.start()
	if err := h.agent.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.lastReport("STOPPING=1")
	if err := h.agent.Wait(); err != nil {
		t.Errorf("after SIGTERM the agent exited with %v", err)
	}
	if log := h.log.String(); strings.Contains(log, "changes=") {
		t.Errorf("the next agent changed the correct state:\n%s", log)
	}
	h.hasLimit("far", "100Mbit")
}

func TestForeignRemovalIsRepaired(t *testing.T) {
	h := newHost(t, document("far", "100Mbit"))
	for _, remove := range []string{"tc qdisc del dev far root", "sleep 1; tc qdisc del dev far clsact", "sleep 2; tc qdisc del dev hgi* root"} {
		h.hasLimit("far", "100Mbit")
		h.sh(strings.ReplaceAll(remove, "hgi*", "$(ip -o link | grep -o 'hgi[0-9]*' | head -1)"))
		h.hasLimit("far", "100Mbit")
	}
	h.logs("another program", 3)
}

func TestReloadOfFiles(t *testing.T) {
	h := newHost(t, document("far", "100Mbit"))
	reload := func() {
		t.Helper()
		if err := h.agent.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		h.lastReport("RELOADING=1")
		h.lastReport("READY=1")
	}
	h.write(document("far", "200Mbit"))
	reload()
	h.hasLimit("far", "200Mbit")
	h.write("kind: Interface\ndev: far\nout: {limit: 100}")
	reload()
	h.hasLimit("far", "200Mbit")
	h.logs("all.yaml:3: out.limit", 1)
	h.write(document("wan", "100Mbit"))
	reload()
	h.hasNothing("far")
	if again := labtest.Run(t, h.node, "tc", "qdisc", "show", "dev", "far"); strings.Contains(again, "clsact") || strings.Contains(again, "htb") {
		t.Errorf("far was not cleared:\n%s", again)
	}
}

// buffer is a bytes.Buffer for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A firewall adds a chain at the ingress hook, and flushes the whole ruleset when it stops. The
// agent adapts the ingress path each time. A chain that the agent cannot work around is logged and
// removes no shaping.
func TestChainsComeAndGo(t *testing.T) {
	h := newHost(t, document("veth0", "100Mbit"))
	h.sh("ip link add veth0 type veth peer name peer0; ip link set veth0 up; ip link set peer0 up")
	h.hasLimit("veth0", "100Mbit")
	forwards := func(want bool) {
		t.Helper()
		h.has("veth0", fmt.Sprintf("forwarded: %v", want), func(shaper.State) bool {
			return strings.Contains(labtest.Run(t, h.node, "nft", "list", "ruleset"), "fwd to") == want
		})
	}
	const firewall = "add table netdev fw; add chain netdev fw pre { type filter hook ingress device veth0 priority 0; }"
	h.sh("nft '" + firewall + "'")
	forwards(true)
	h.sh("nft 'flush ruleset; " + firewall + "'") // as the firewall's service does on reload
	forwards(true)
	h.sh("nft flush ruleset")
	forwards(false)
	// A firewall may be reloaded repeatedly; each change is followed at once.
	h.sh("nft '" + firewall + "'")
	forwards(true)
	h.sh("nft flush ruleset")
	forwards(false)

	h.sh("nft 'add table netdev last; add chain netdev last every { type filter hook ingress device veth0 priority 2147483647; }'")
	h.logs("nftables ingress chain netdev last every priority 2147483647", 1)
	h.hasLimit("veth0", "100Mbit")
	h.sh("nft delete table netdev last")
	h.hasLimit("veth0", "100Mbit")
}

// Many devices that appear at once do not wait for each other, and nothing remains when they are
// removed at once. An earlier version took one second for six devices, and checked all devices
// again whenever the qdisc of a new IFB was replaced.
func TestManyAtOnce(t *testing.T) {
	const many = 30
	h := newHost(t, document("v*", "20mbit"))
	var lines strings.Builder
	for i := range many {
		fmt.Fprintf(&lines, "link add v%d type veth peer name c%d\nlink set v%d up\n", i, i, i)
	}
	h.batch(lines.String())
	began := time.Now()
	for i := range many {
		h.hasLimit(fmt.Sprint("v", i), "20Mbit")
	}
	h.Logf("%d devices are shaped after %v", many, time.Since(began).Round(time.Millisecond))
	lines.Reset()
	for i := range many {
		fmt.Fprintf(&lines, "link del v%d\n", i)
	}
	h.batch(lines.String())
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		left := strings.TrimSpace(labtest.Run(t, h.node, "ip", "-br", "link", "show", "type", "ifb"))
		if left == "" {
			h.Logf("all IFBs are removed after %v", time.Since(began).Round(time.Millisecond))
			break
		}
		if time.Since(began) > soon {
			h.Fatalf("IFBs of removed devices remain:\n%s", left)
		}
	}
	if strings.Contains(h.log.String(), "level=ERROR") {
		h.Errorf("the log has errors")
	}
}

// batch runs the lines with ip -batch.
func (h *host) batch(lines string) {
	h.Helper()
	c := h.node.Command(h.Context(), "ip", "-b", "-")
	c.Stdin = strings.NewReader(lines)
	if text, err := c.CombinedOutput(); err != nil {
		h.Fatalf("%v: %s", err, text)
	}
}
