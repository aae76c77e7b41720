package htb

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/unit"
)

// ways is a pair of hosts:
//
//	here (dev, shaped) ── far
type ways struct {
	*testing.T
	here, far *lab.Node
	dev       string // here's
	farDev    string
	engine    *Engine
}

func newWays(t *testing.T) *ways {
	l := labtest.Up(t, &lab.Topology{
		Nodes: []lab.NodeSpec{{Name: "here"}, {Name: "far"}}, Links: []lab.LinkSpec{{Ends: [2]string{"here", "far"}}},
	})
	w := &ways{T: t, here: l.Node("here"), far: l.Node("far"), engine: New()}
	var err error
	if w.dev, err = w.here.Device("far"); err == nil {
		w.farDev, err = w.far.Device("here")
	}
	if err != nil {
		t.Fatal(err)
	}
	// No packets except those of the test, and addresses that can be moved to another device.
	for _, n := range []*lab.Node{w.here, w.far} {
		w.at(n, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 net.ipv4.conf.all.rp_filter=0")
	}
	w.at(w.here, "ip addr flush dev "+w.dev)
	w.at(w.far, "ip addr flush dev "+w.farDev)
	return w
}

func (w *ways) at(n *lab.Node, line string) string {
	w.Helper()
	words := strings.Fields(line)
	return labtest.Run(w, n, words[0], words[1:]...)
}

// may runs a command that this kernel may not support. The emulated kernels support all of
// them, and run the same test (scripts/vm/attachment).
func (w *ways) may(n *lab.Node, line string) bool {
	w.Helper()
	words := strings.Fields(line)
	for i := range words {
		words[i] = strings.Trim(words[i], "\"") // an empty key
	}
	out, err := n.Command(w.Context(), words[0], words[1:]...).CombinedOutput()
	return err == nil || lacking(w, line, string(out))
}

// lacking logs that this kernel does not support something, and fails on emulated kernels.
func lacking(t testing.TB, what, out string) bool {
	t.Helper()
	if os.Getenv("HEADGATE_VM") != "" {
		t.Fatalf("%s: %s", what, out)
	}
	t.Logf("tested only on the emulated kernels: this kernel does not support %q: %s", what, out)
	return false
}

func (w *ways) nft(ruleset string) {
	w.Helper()
	cmd := w.here.Command(w.Context(), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(ruleset)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("nft %s: %v\n%s", ruleset, err, out)
	}
}

// chain adds a chain that counts the far host's pings at the ingress of a device.
func (w *ways) chain(table, dev string, priority int, verdict string) {
	w.Helper()
	w.nft(fmt.Sprintf("table netdev %s {\n chain pre { type filter hook ingress device %s priority %d; policy accept;\n icmp type echo-request counter %s\n }\n}\n", table, dev, priority, verdict))
}

var counted = regexp.MustCompile(`counter packets ([0-9]+)`)

func (w *ways) chainCount(table string) int {
	w.Helper()
	m := counted.FindStringSubmatch(w.at(w.here, "nft list table netdev "+table))
	if m == nil {
		w.Fatalf("table %s has no counter", table)
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// plan shapes packets to here: by "in", or by a guest's "out".
func (w *ways) plan(p group.Perspective) shaper.Plan {
	tree := fourGroups(w.T, 100*unit.Mbit)
	if p == group.Guest {
		return shaper.Plan{Dev: w.dev, Perspective: p, Out: tree}
	}
	return shaper.Plan{Dev: w.dev, Perspective: p, In: tree}
}

func (w *ways) apply(p shaper.Plan) (changes []shaper.Change) {
	w.Helper()
	w.do(func() (err error) { changes, err = w.engine.Apply(p); return err })
	return changes
}

func (w *ways) do(fn func() error) {
	w.Helper()
	if err := w.here.Do(fn); err != nil {
		w.Fatal(err)
	}
}

func (w *ways) observe() (st shaper.State) {
	w.Helper()
	w.do(func() (err error) { st, err = w.engine.Observe(w.dev); return err })
	return st
}

// passed returns the packets counted by the classifier and by the IFB's queues, without control
// traffic.
func (w *ways) passed() (classified, queued uint64) {
	w.Helper()
	w.do(func() error {
		return with(w.dev, func(_ *nl.Conn, k *kernel) error {
			d, err := k.sides[ingress].direction()
			if err != nil {
				return err
			}
			for _, g := range d.Groups {
				queued += g.Packets
			}
			c, err := classifier.ReadCounters(k.sides[ingress].Maps[classifier.Counters])
			for minor, one := range c {
				if minor != controlMinor {
					classified += one.Packets
				}
			}
			return err
		})
	})
	return classified, queued
}

const pings = 5

// ping sends pings from the far host, and returns the number of answers.
func (w *ways) ping(to string, more ...string) int {
	w.Helper()
	args := append([]string{"-q", "-c", strconv.Itoa(pings), "-i", "0.02", "-W", "5"}, more...)
	out, _ := w.far.Command(w.Context(), "ping", append(args, to)...).CombinedOutput()
	m := regexp.MustCompile(`([0-9]+) received`).FindStringSubmatch(string(out))
	if m == nil {
		w.Fatalf("ping: %s", out)
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// once checks that pings from the far host were counted, queued and answered once each.
func (w *ways) once(what, to string, more ...string) {
	w.Helper()
	c0, q0 := w.passed()
	if n := w.ping(to, more...); n != pings {
		w.Errorf("%s: %d of %d pings were answered", what, n, pings)
	}
	if c, q := w.passed(); c-c0 != pings || q-q0 != pings {
		w.Errorf("%s: of %d packets, %d were classified and %d queued", what, pings, c-c0, q-q0)
	}
}

// direct adds addresses to the pair.
func (w *ways) direct() {
	w.Helper()
	w.at(w.here, "ip addr add 10.77.0.1/24 dev "+w.dev)
	w.at(w.far, "ip addr add 10.77.0.2/24 dev "+w.farDev)
	w.ping("10.77.0.1") // resolves the neighbours
}

var perspectives = []group.Perspective{group.Host, group.Guest}

// TestChainsSeeEveryPacketOnce: nftables chains at the ingress hook see every packet once, in
// order, before it is queued, whether they were added before or after the apply. Packets that
// they drop stay dropped.
func TestChainsSeeEveryPacketOnce(t *testing.T) {
	for _, p := range perspectives {
		t.Run(string(p), func(t *testing.T) {
			w := newWays(t)
			w.direct()
			w.apply(w.plan(p))
			w.once("no chain", "10.77.0.1")
			for _, priority := range []int{-300, 0, 2147483646} {
				w.chain("fw"+strconv.Itoa(priority+301), w.dev, priority, "")
				if st := w.observe(); priority == -300 && (len(st.Drift) == 0 || !strings.Contains(fmt.Sprint(st.Foreign), "skip until the next apply")) {
					t.Errorf("for a chain that packets skip, Observe reports drift %v, foreign %q", st.Drift, st.Foreign)
				}
				w.apply(w.plan(p))
				w.once(fmt.Sprint("a chain of priority ", priority), "10.77.0.1")
				if st := w.observe(); len(st.Drift) > 0 || slices.ContainsFunc(st.Foreign, inTheWay) {
					t.Errorf("after the apply: drift %v, foreign %q", st.Drift, st.Foreign)
				}
			}
			for table, want := range map[string]int{"fw1": 3 * pings, "fw301": 2 * pings, "fw2147483947": pings} {
				if n := w.chainCount(table); n != want {
					t.Errorf("the chain of %s has seen %d packets, want %d", table, n, want)
				}
			}
			// After the queue, the packet's priority does not contain the class.
			w.nft("table inet later {\n chain pre { type filter hook prerouting priority 0; policy accept;\n icmp type echo-request meta priority != 0 counter\n }\n}\n")
			w.once("a chain after the queue", "10.77.0.1")
			if m := counted.FindStringSubmatch(w.at(w.here, "nft list table inet later")); m == nil || m[1] != "0" {
				t.Errorf("packets have a priority after the queue: %q", m)
			}
			w.at(w.here, "nft delete table inet later")
			w.chain("drops", w.dev, 5, "drop")
			_, before := w.passed()
			if n := w.ping("10.77.0.1"); n != 0 {
				t.Errorf("%d packets passed a chain that drops them", n)
			}
			if _, after := w.passed(); after != before {
				t.Errorf("%d dropped packets were in the queue", after-before)
			}
			if n := w.chainCount("drops"); n != pings {
				t.Errorf("the dropping chain saw %d packets, want %d", n, pings)
			}

			// Clear leaves the foreign chains unchanged.
			w.do(func() error { return w.engine.Clear(w.dev) })
			if left := w.at(w.here, "nft list ruleset"); strings.Contains(left, "hgi") || strings.Count(left, "table netdev") != 4 {
				t.Errorf("clear left:\n%s", left)
			}
		})
	}
}

func inTheWay(what string) bool { return strings.Contains(what, "conflicts with Headgate") }

// TestForwardIsRepaired: Headgate's chain is added and removed with the foreign chains, and
// Apply repairs changes by other programs.
func TestForwardIsRepaired(t *testing.T) {
	w := newWays(t)
	w.direct()
	p := w.plan(group.Host)
	w.chain("fw", w.dev, 0, "")
	if changes := w.apply(p); !strings.Contains(fmt.Sprint(changes), "in forwarding") {
		t.Errorf("applied: %v", changes)
	}
	if changes := w.apply(p); len(changes) > 0 {
		t.Errorf("applied again: %v", changes)
	}
	var table, ifb string
	w.do(func() error {
		l, err := netlink.LinkByName(w.dev)
		table = ifbName(l.Attrs().Index)
		return err
	})
	ifb = table
	for _, c := range []struct{ name, command, word string }{
		{"the table removed", "nft delete table netdev " + table, "in forwarding"},
		{"the rule removed", "nft flush table netdev " + table, "in forwarding"},
		{"another chain in its place", "nft flush table netdev " + table + " ; delete table netdev " + table + " ; add table netdev " + table +
			" ; add chain netdev " + table + " into-1 { type filter hook ingress device " + w.dev + " priority 0 ; }", "in forwarding"},
		{"the IFB removed", "ip link del " + ifb, "in forwarding"},
		{"the filter removed", "tc qdisc del dev " + w.dev + " clsact", "in rules"},
		{"all of nftables flushed", "nft flush ruleset", "by an nftables chain -> by the classifier"},
	} {
		w.at(w.here, c.command)
		if n := w.ping("10.77.0.1"); n != pings && c.name != "the IFB removed" {
			t.Errorf("%s: %d packets passed", c.name, n)
		}
		if st := w.observeAny(); len(st.Drift) == 0 && c.name != "the filter removed" {
			t.Errorf("%s: Observe reports no drift", c.name)
		}
		if changes := w.apply(p); !strings.Contains(fmt.Sprint(changes), c.word) {
			t.Errorf("%s: %v", c.name, changes)
		}
		w.once(c.name, "10.77.0.1")
	}

	// After a rename, the next apply restores the device's groups.
	w.chain("fw", w.dev, 0, "")
	w.apply(p)
	w.at(w.here, "ip link set "+w.dev+" down")
	w.at(w.here, "ip link set "+w.dev+" name wan0")
	w.at(w.here, "ip link set wan0 up")
	w.dev = "wan0"
	w.chain("fw2", w.dev, 1, "")
	w.apply(w.plan(group.Host))
	w.once("renamed", "10.77.0.1")

	// The table of a removed device is removed with the next change.
	w.at(w.here, "ip link del wan0")
	w.at(w.here, "ip link add other0 type veth peer name other1")
	w.dev = "other0"
	w.apply(w.plan(group.Host))
	if left := w.at(w.here, "nft list ruleset"); strings.Contains(left, table+" ") {
		t.Errorf("the table of a removed device is left:\n%s", left)
	}
}

func (w *ways) observeAny() (st shaper.State) {
	w.Helper()
	_ = w.here.Do(func() (err error) { st, err = w.engine.Observe(w.dev); return err })
	return st
}

// TestFiltersBeforeAndAfter: foreign programs before Headgate's filter (tcx) and filters after
// it see every packet once; filters after it only if Headgate's filter does not redirect.
func TestFiltersBeforeAndAfter(t *testing.T) {
	w := newWays(t)
	w.direct()
	w.chain("fw", w.dev, 0, "")
	w.apply(w.plan(group.Host))
	w.at(w.here, "ip link add copies up type ifb")
	w.at(w.here, "tc filter add dev "+w.dev+" ingress pref 9 protocol ip u32 match ip protocol 1 0xff action mirred egress mirror dev copies")
	if st := w.observe(); slices.ContainsFunc(st.Foreign, inTheWay) || !strings.Contains(fmt.Sprint(st.Foreign), "u32 pref 9") {
		t.Errorf("Observe reports %q", st.Foreign)
	}
	w.once("a later filter", "10.77.0.1")
	if shown := w.at(w.here, "tc -s filter show dev "+w.dev+" ingress"); !strings.Contains(shown, fmt.Sprintf(" %d pkt", pings)) {
		t.Errorf("the later filter did not see %d packets:\n%s", pings, shown)
	}
	if n := w.chainCount("fw"); n != pings {
		t.Errorf("the chain saw %d packets, want %d", n, pings)
	}
	// Without the chain, the classifier would redirect before the later filter.
	w.at(w.here, "nft delete table netdev fw")
	w.do(func() error {
		if _, err := w.engine.Apply(w.plan(group.Host)); err == nil || !strings.Contains(err.Error(), "u32 pref 9") {
			t.Errorf("a redirect before a later filter: %v", err)
		}
		return nil
	})
}

// TestDevicesOnTop: devices on top of the shaped device receive each packet once.
func TestDevicesOnTop(t *testing.T) {
	for _, c := range []struct {
		name      string
		here, far []string
		top       string
	}{
		{"VLAN", []string{"ip link add top link DEV type vlan id 7", "ip link set top up"}, []string{"ip link add top link DEV type vlan id 7", "ip link set top up", "ip addr add 10.77.0.2/24 dev top"}, "top"},
		{"macvlan", []string{"ip link add top link DEV type macvlan mode bridge", "ip link set top up"}, []string{"ip addr add 10.77.0.2/24 dev DEV"}, "top"},
		{"bridge", []string{"ip link add top type bridge", "ip link set DEV master top", "ip link set top up"}, []string{"ip addr add 10.77.0.2/24 dev DEV"}, "top"},
	} {
		for _, forward := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,forward=%v", c.name, forward), func(t *testing.T) {
				w := newWays(t)
				// Otherwise the device below also answers ARP requests for the address of the
				// device on top.
				w.at(w.here, "sysctl -qw net.ipv4.conf.all.arp_ignore=1")
				for _, line := range c.here {
					if !w.may(w.here, strings.ReplaceAll(line, "DEV", w.dev)) {
						return
					}
				}
				for _, line := range c.far {
					if !w.may(w.far, strings.ReplaceAll(line, "DEV", w.farDev)) {
						return
					}
				}
				w.at(w.here, "ip addr add 10.77.0.1/24 dev top")
				w.ping("10.77.0.1")
				w.chain("above", "top", 0, "")
				if forward {
					w.nft("table netdev below {\n chain pre { type filter hook ingress device " + w.dev + " priority 0; policy accept;\n ip protocol icmp counter\n vlan id 7 counter\n }\n}\n")
				}
				w.apply(w.plan(group.Host))
				w.once(c.name, "10.77.0.1")
				if n := w.chainCount("above"); n != pings {
					t.Errorf("%s has seen %d packets, want %d", c.top, n, pings)
				}
			})
		}
	}
}

// TestIPsecIsCountedOnce: packets that IPsec decapsulates were counted before, and are received
// again without being counted again. The test needs a kernel with ESP.
func TestIPsecIsCountedOnce(t *testing.T) {
	for _, mode := range []string{"tunnel", "transport"} {
		for _, forward := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,forward=%v", mode, forward), func(t *testing.T) {
				w := newWays(t)
				w.direct()
				inner := [2]string{"10.77.0.1", "10.77.0.2"}
				if mode == "tunnel" {
					inner = [2]string{"10.78.0.1", "10.78.0.2"}
					w.at(w.here, "ip addr add 10.78.0.1/32 dev lo")
					w.at(w.far, "ip addr add 10.78.0.2/32 dev lo")
					w.at(w.here, "ip route add 10.78.0.2 via 10.77.0.2 src 10.78.0.1")
					w.at(w.far, "ip route add 10.78.0.1 via 10.77.0.1 src 10.78.0.2")
				}
				for _, n := range []*lab.Node{w.here, w.far} {
					for i, ends := range [][2]string{{"10.77.0.1", "10.77.0.2"}, {"10.77.0.2", "10.77.0.1"}} {
						if !w.may(n, fmt.Sprintf("ip xfrm state add src %s dst %s proto esp spi %d reqid 1 mode %s enc ecb(cipher_null) \"\" auth hmac(sha1) 0x0102030405060708090a0b0c0d0e0f1011121314", ends[0], ends[1], 0x1000+i, mode)) {
							return
						}
						dirs := []string{"out"}
						if (n == w.here) == (i == 1) {
							dirs = []string{"in", "fwd"}
						}
						for _, dir := range dirs {
							if !w.may(n, fmt.Sprintf("ip xfrm policy add src %s dst %s dir %s tmpl src %s dst %s proto esp reqid 1 mode %s", inner[i], inner[1-i], dir, ends[0], ends[1], mode)) {
								return
							}
						}
					}
				}
				w.ping(inner[0], "-I", inner[1])
				if forward {
					w.nft("table netdev fw {\n chain pre { type filter hook ingress device " + w.dev + " priority 0; policy accept;\n ip protocol esp counter\n }\n}\n")
				}
				for _, p := range perspectives {
					w.apply(w.plan(p))
					w.once(string(p), inner[0], "-I", inner[1])
				}
				if forward {
					if n := w.chainCount("fw"); n != len(perspectives)*pings {
						t.Errorf("the chain saw %d ESP packets, want %d", n, len(perspectives)*pings)
					}
				}
			})
		}
	}
}
