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

	"headgate/cli"
	"headgate/internal/cgroup2"
	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/shaper"
	"headgate/shaper/htb"
)

// programEnv makes the test binary the program itself.
const programEnv = "HEADGATE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// soon is how long a device may be without its groups. It takes a fraction of a second, which tests log; on a machine
// that others use it was once more than one. What no event tells of is found after a minute.
const soon = 5 * time.Second

// host is a namespace with an agent process in it:
//
//	host ── far
//
// Devices of the tests' own are veth pairs inside the host.
type host struct {
	*testing.T
	lab    *lab.Lab
	node   *lab.Node
	far    string // the address of the other end
	dir    string // the agent's files
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
	// Short: a socket's path has at most 107 bytes.
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

// write makes these documents all of the agent's files.
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
	// Not h.Context: killing is a test's business, and Cleanup's.
	h.agent = h.node.Command(context.Background(), os.Args[0], "agent", "-f", h.dir, "--socket", h.socket())
	h.agent.Env = append(os.Environ(), programEnv+"=1", "HEADGATE_STATE="+h.state, "NOTIFY_SOCKET="+filepath.Join(h.state, "n"))
	h.agent.Stdout, h.agent.Stderr = h.log, h.log
	if err := h.agent.Start(); err != nil {
		h.Fatal(err)
	}
	agent := h.agent
	h.Cleanup(func() {
		_ = agent.Process.Kill() // unless the test has
		_ = agent.Wait()
		if h.Failed() {
			h.Logf("the agent's log:\n%s", h.log)
		}
	})
	h.told("READY=1")
}

// socket is where the agent listens to programs.
func (h *host) socket() string { return filepath.Join(h.state, "s") }

// told waits until the service manager is told something.
func (h *host) told(what string) {
	h.Helper()
	text := make([]byte, 4096)
	for {
		if err := h.notify.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			h.Fatal(err)
		}
		n, err := h.notify.Read(text)
		if err != nil {
			h.Fatalf("the agent does not say %s: %v\n%s", what, err, h.log)
		}
		if strings.HasPrefix(string(text[:n]), what) {
			return
		}
	}
}

// logs waits until the log has a text so many times. It comes through a pipe, so that the kernel, and what the
// service manager is told, may be ahead of it.
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

// has waits until the device's state is as it should be.
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
			h.Fatalf("%s is not as it should be after %v (%s): %v, drift %v, rules %v\n%s", dev, soon, what, err, state.Drift, state.Plan.Out, h.log)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (h *host) hasLimit(dev, limit string) shaper.State {
	h.Helper()
	return h.has(dev, "limit "+limit, func(s shaper.State) bool { return s.Plan.Out.Limit.String() == limit })
}

// hasNothing waits until nothing of ours is on the device.
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
			t.Fatalf("the IFB of a device that is gone is still there\n%s", h.log)
		}
	}
}

func TestPatternTakesInNewVeth(t *testing.T) {
	h := newHost(t, document("veth*", "100Mbit"), document("veth2", "200Mbit"))
	h.sh("for i in 0 1 2; do ip link add veth$i type veth peer name peer$i; done")
	h.hasLimit("veth0", "100Mbit")
	h.hasLimit("veth1", "100Mbit")
	h.hasLimit("veth2", "200Mbit")
	h.hasNothing("peer0")
}

// An alternative name counts as soon as the device has it, by name and for patterns, and no longer.
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
	h.logs("a device is named twice", 1)
}

func TestMTUAndNameAreFollowed(t *testing.T) {
	h := newHost(t, document("far", "100Mbit"), document("wan", "50Mbit"))
	h.hasLimit("far", "100Mbit")
	h.sh("ip link set far mtu 9000")
	h.hasLimit("far", "100Mbit") // without drift: the leaves are for 9,000 bytes
	h.sh("ip link set far down; ip link set far name wan; ip link set wan up")
	h.hasLimit("wan", "50Mbit")
	h.sh("ip link set wan down; ip link set wan name other; ip link set other up")
	h.hasNothing("other")
}

func TestCgroupThatIsMadeAgainIsFollowed(t *testing.T) {
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
		// A service's folder, and the first time the slice's too.
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
	h.told("STOPPING=1")
	if err := h.agent.Wait(); err != nil {
		t.Errorf("told to stop, the agent ended with %v", err)
	}
	if log := h.log.String(); strings.Contains(log, "changes=") {
		t.Errorf("the next agent changed what was right:\n%s", log)
	}
	h.hasLimit("far", "100Mbit")
}

func TestWhatOthersRemoveComesBack(t *testing.T) {
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
		h.told("RELOADING=1")
		h.told("READY=1")
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
		t.Errorf("far was not given back:\n%s", again)
	}
}

// buffer is a bytes.Buffer that a process and a test may use at once.
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

// A firewall at the ingress hook comes, and takes all of nftables with it when it
// goes: each time the way in is made as it should be, and what no way is found around
// is told and tears nothing down.
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
	h.sh("nft 'flush ruleset; " + firewall + "'") // as its service does when it is reloaded
	forwards(true)
	h.sh("nft flush ruleset")
	forwards(false)
	// Firewalls are reloaded again and again, and each time at once.
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

// Many devices at once do not wait for each other, and leave nothing when they go at once. It took a second for each
// six of them, and where a new IFB's queue was replaced all were looked at again.
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
	h.Logf("%d devices are divided after %v", many, time.Since(began).Round(time.Millisecond))
	lines.Reset()
	for i := range many {
		fmt.Fprintf(&lines, "link del v%d\n", i)
	}
	h.batch(lines.String())
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		left := strings.TrimSpace(labtest.Run(t, h.node, "ip", "-br", "link", "show", "type", "ifb"))
		if left == "" {
			h.Logf("nothing is left of them after %v", time.Since(began).Round(time.Millisecond))
			break
		}
		if time.Since(began) > soon {
			h.Fatalf("of devices that are gone there are still\n%s", left)
		}
	}
	if strings.Contains(h.log.String(), "level=ERROR") {
		h.Errorf("there were errors")
	}
}

// batch has ip do what the lines say, in one go.
func (h *host) batch(lines string) {
	h.Helper()
	c := h.node.Command(h.Context(), "ip", "-b", "-")
	c.Stdin = strings.NewReader(lines)
	if text, err := c.CombinedOutput(); err != nil {
		h.Fatalf("%v: %s", err, text)
	}
}
