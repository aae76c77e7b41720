package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	vnl "github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// wayCase is foreign packet processing on the path of packets through a shaped device:
//
//	here (dev, divided) ── far
//
// Pings use that path. Each must be processed once by the foreign program, be classified once, be
// queued once, and be answered. Otherwise Headgate must refuse to shape the device, with the reason.
type wayCase struct {
	way
	at string // "in", "guest" or "out"
	// later: it is added when the device is already shaped.
	later bool
}

// way is one kind of packet processing.
type way struct {
	name string
	// put sets it up. The returned function counts how often it processed a packet.
	put func(w *wayRig) (count func() (int, error), err error)
	// says is the text that a refusal must have; "" is no reason to refuse.
	says string
	// ats are the directions in which it is tested.
	ats []string
	// canCome: it may be added later, and does not replace the device's own addresses.
	canCome bool
	// to is the destination of pings, if not the device at the other end: the address of a tunnel.
	to string
	// missing names the test on a kernel that has it, for a kernel that lacks it.
	missing string
}

// wayPings are sent in each case.
const wayPings = 20

// Programs before Headgate's filter in traffic control are at tcx, because Headgate's is the first of
// clsact; programs after it are filters of clsact.

// inward are the directions in which packets are redirected.
var inward = []string{"in", "guest"}

const inVM = "%s tests it in the virtual machine (scripts/test-vm)"

var ways = []way{
	{name: "nft-ingress", put: chain(0, ""), ats: inward, canCome: true},
	{name: "nft-ingress-last", put: chain(2147483646, ""), ats: inward, canCome: true},
	{name: "nft-ingress-drop", put: chain(0, "drop"), ats: inward, canCome: true},
	{name: "nft-egress", put: egressChain, ats: []string{"out"}, canCome: true},
	{name: "flowtable", put: flowtable, says: "nftables flowtable ip fw fast", ats: inward, canCome: true, missing: fmt.Sprintf(inVM, "TestAroundIsRefused/flowtable")},
	{name: "xdp-generic", put: genericXDP, says: "in generic mode", ats: inward, canCome: true},
	{name: "tc-before", put: tcxBefore, ats: []string{"in", "guest", "out"}, canCome: true},
	{name: "tc-after", put: filterAfter(""), says: "ingress filter u32 pref 9", ats: []string{"in", "guest", "out"}, canCome: true},
	{name: "tc-after-with-a-chain", put: filterAfter("chain"), ats: inward},
	{name: "ipsec-tunnel", put: ipsec("tunnel"), to: "10.78.0.1", ats: []string{"in", "guest", "out"}, missing: fmt.Sprintf(inVM, "TestIPsecIsCountedOnce/tunnel")},
	{name: "ipsec-transport", put: ipsec("transport"), ats: []string{"in", "guest", "out"}, missing: fmt.Sprintf(inVM, "TestIPsecIsCountedOnce/transport")},
	{name: "vlan", put: onTop("ip link add top link DEV type vlan id 7", "ip link add top link DEV type vlan id 7"), ats: []string{"in", "guest", "out"}, missing: fmt.Sprintf(inVM, "TestDevicesOnTop/VLAN")},
	{name: "macvlan", put: onTop("ip link add top link DEV type macvlan mode bridge", ""), ats: []string{"in", "guest", "out"}},
	{name: "bridge", put: onTop("ip link add top type bridge && ip link set DEV master top", ""), ats: []string{"in", "guest", "out"}},
	{name: "pppoe", put: nil, ats: []string{"in", "guest", "out"}},
	{name: "wireguard", put: wireguard, to: "10.78.0.1", ats: []string{"in", "guest", "out"}, missing: fmt.Sprintf(inVM, "TestWireGuardIsCountedOnce")},
}

func wayCases() (out []wayCase) {
	for _, w := range ways {
		for _, at := range w.ats {
			out = append(out, wayCase{w, at, false})
			if w.canCome {
				out = append(out, wayCase{w, at, true})
			}
		}
	}
	return out
}

// inSmoke reports whether the case is part of a smoke run.
func (c wayCase) inSmoke() bool { return !c.later && (c.at == "in" || c.name == "nft-egress") }

func (c wayCase) id() string {
	when := "there-before"
	if c.later {
		when = "comes-later"
	}
	return fmt.Sprintf("ways/%s/%s/%s", c.name, c.at, when)
}

func (c wayCase) claim() bench.Claim {
	return bench.NewClaim(c.id(), fmt.Sprintf("packets of %d that are missed, processed twice, or counted twice, unless the device is refused with the reason", wayPings), waysWrong)
}

// errLacks is the error of a kernel or a machine that lacks something.
var errLacks = errors.New("this machine does not support it")

func (c wayCase) run(ctx context.Context, r *bench.Run) (err error) {
	if !c.inSmoke() && leftOut(r) {
		return nil
	}
	w, err := newWayRig(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	sheet := r.Sheet(bench.Ours)
	wrong, said, err := c.try(w)
	if errors.Is(err, errLacks) {
		sheet.Fail(fmt.Errorf("%w; %s", err, cmp.Or(c.missing, "no test covers it")))
		return nil
	}
	if err != nil {
		return err
	}
	sheet.Set(c.id(), float64(wrong))
	for _, note := range said {
		sheet.Note(c.id(), "%s", note)
	}
	return nil
}

// try runs one case, and returns how many packets were processed wrongly.
func (c wayCase) try(w *wayRig) (wrong int, said []string, err error) {
	if c.name == "pppoe" {
		return c.tryFrames(w)
	}
	if c.later {
		if err := w.apply(); err != nil {
			return 0, nil, err
		}
	}
	count, err := c.put(w)
	if err != nil {
		return 0, nil, err
	}
	if c.later {
		state, err := w.observe()
		if err != nil {
			return 0, nil, err
		}
		// Processing outside of the path of redirected packets needs no message.
		told := len(state.Foreign)+len(state.Drift) > 0
		if !told && c.at != "out" && c.name != "tc-before" {
			return wayPings, []string{"Observe does not report the addition"}, nil
		}
		if told {
			said = append(said, "reported: "+fmt.Sprint(strings.Join(state.Foreign, "; "), state.Drift))
		}
	}
	if err := w.apply(); err != nil {
		if c.says == "" || !errors.Is(err, shaper.ErrForeign) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), w.dev) {
			return wayPings, append(said, "refused without the reason: "+err.Error()), nil
		}
		return 0, append(said, "refused: "+err.Error()), nil
	}
	wrong, counted, err := w.once(count, c.name == "nft-ingress-drop")
	return wrong, append(said, counted), err
}

// wayRig is the pair of hosts.
type wayRig struct {
	ctx         context.Context
	lab         *lab.Lab
	here, far   *lab.Node
	dev, farDev string
	plan        shaper.Plan
	ours        limiter
	at          string
	from        *lab.Node // of the pings
	to, source  string
	undo        []func() error
	answered    int
}

func newWayRig(ctx context.Context, c wayCase) (_ *wayRig, err error) {
	// Addresses apply only to their own device: otherwise the one below a macvlan would answer for it
	// as well.
	quiet := map[string]string{"net.ipv4.conf.all.arp_ignore": "1", "net.ipv4.conf.all.rp_filter": "0"}
	l, err := lab.Up(ctx, &lab.Topology{
		Name: lab.UniqueName("bench"), Nodes: []lab.NodeSpec{{Name: "here", Sysctl: quiet}, {Name: "far", Sysctl: quiet}}, Links: []lab.LinkSpec{{Ends: [2]string{"here", "far"}}},
	})
	if err != nil {
		return nil, err
	}
	w := &wayRig{ctx: ctx, lab: l, here: l.Node("here"), far: l.Node("far"), dev: "far", farDev: "here", at: c.at}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	w.ours, err = newLimiter(bench.Ours)
	if err != nil {
		return nil, err
	}
	// Pings, and their tunnel packets: each is a packet of the group.
	carried, rest := leaf("pings", 50), leaf("rest", 50)
	carried.Match = []group.Selector{
		{Proto: []uint8{group.ICMP}}, {Proto: []uint8{unix.IPPROTO_ESP}}, {Proto: []uint8{group.UDP}, DPort: []group.PortRange{group.SingleRange(wireguardPort)}},
	}
	rest.Default = true
	d := group.Direction{Limit: 100 * unit.Mbit, Groups: []group.Group{carried, rest}}
	if w.plan, err = plan(d, c.at == "in"); err != nil {
		return nil, err
	}
	w.plan.Dev = w.dev
	if c.at == "guest" {
		w.plan.Perspective = group.Guest
	}
	w.from, w.to = w.far, "10.77.0.1"
	if c.at == "out" {
		w.from, w.to = w.here, "10.77.0.2"
	}
	if c.to != "" {
		w.to, w.source = "10.78.0.1", "10.78.0.2"
		if c.at == "out" {
			w.to, w.source = w.source, w.to
		}
	}
	err = errors.Join(
		w.sh(w.here, "ip addr flush dev DEV"), w.sh(w.far, "ip addr flush dev DEV"),
		w.sh(w.here, "ip addr add 10.77.0.1/24 dev DEV"), w.sh(w.far, "ip addr add 10.77.0.2/24 dev DEV"),
	)
	return w, err
}

const wireguardPort = 51820

func (w *wayRig) close() error {
	_ = w.here.Do(func() error { return w.ours.Clear(w.dev) })
	var errs []error
	for _, undo := range slices.Backward(w.undo) {
		errs = append(errs, undo())
	}
	return errors.Join(append(errs, w.lab.Close())...)
}

// sh runs a line of shell in a node; DEV is its device.
func (w *wayRig) sh(n *lab.Node, line string) error {
	dev := w.dev
	if n == w.far {
		dev = w.farDev
	}
	out, err := n.Command(w.ctx, "sh", "-c", strings.ReplaceAll(line, "DEV", dev)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, firstLine(out))
	}
	return nil
}

func firstLine(said []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	return line
}

// may is sh for a feature that a kernel may lack.
func (w *wayRig) may(n *lab.Node, line string) error {
	if err := w.sh(n, line); err != nil {
		return fmt.Errorf("%w: %w", errLacks, err)
	}
	return nil
}

func (w *wayRig) nft(ruleset string) error {
	cmd := w.here.Command(w.ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(ruleset, "DEV", w.dev))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: nft: %w: %s", errLacks, err, firstLine(out))
	}
	return nil
}

func (w *wayRig) apply() error { return w.here.Do(func() error { return w.ours.Apply(w.plan) }) }

func (w *wayRig) observe() (state shaper.State, err error) {
	err = w.here.Do(func() error {
		state, err = w.ours.(observer).Observe(w.dev)
		return err
	})
	return state, err
}

// counts returns the numbers of packets that were classified and queued, without control traffic.
func (w *wayRig) counts() (classified, queued int, err error) {
	state, err := w.observe()
	if err != nil {
		return 0, 0, err
	}
	d := countersOf(&state, w.at == "in")
	for _, hits := range d.RuleHits {
		classified += int(hits)
	}
	for _, g := range d.Groups {
		if g.Path == "pings" {
			queued += int(g.Packets)
		}
	}
	return classified, queued, nil
}

var received = regexp.MustCompile(`([0-9]+) received`)

func (w *wayRig) ping(n int) (answered int, err error) {
	args := []string{"-q", "-c", strconv.Itoa(n), "-i", "0.01", "-W", "1"}
	if w.source != "" {
		args = append(args, "-I", w.source)
	}
	out, _ := w.from.Command(w.ctx, "ping", append(args, w.to)...).CombinedOutput()
	m := received.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("ping: %s", out)
	}
	return strconv.Atoi(string(m[1]))
}

// once sends pings, and returns how many were not processed correctly.
func (w *wayRig) once(count func() (int, error), dropped bool) (wrong int, said string, err error) {
	if !dropped {
		if _, err := w.ping(2); err != nil { // neighbours and keys are known from now on
			return 0, "", err
		}
	}
	seen, err := count()
	if err != nil {
		return 0, "", err
	}
	classified, queued, err := w.counts()
	if err != nil {
		return 0, "", err
	}
	answered, err := w.ping(wayPings)
	if err != nil {
		return 0, "", err
	}
	seen2, err := count()
	if err != nil {
		return 0, "", err
	}
	classified2, queued2, err := w.counts()
	if err != nil {
		return 0, "", err
	}
	want := wayPings
	if dropped {
		want = 0
	}
	off := func(got, want int) int { return max(got-want, want-got) }
	wrong = max(off(answered, want), off(seen2-seen, wayPings), off(queued2-queued, want))
	if !dropped { // a packet that was classified and then dropped is correct
		wrong = max(wrong, off(classified2-classified, want))
	}
	return wrong, fmt.Sprintf("of %d: processed %d, classified %d, queued %d, answered %d", wayPings, seen2-seen, classified2-classified, queued2-queued, answered), nil
}

var nftCount = regexp.MustCompile(`counter packets ([0-9]+)`)

// chainCount returns the first counter of a table.
func (w *wayRig) chainCount(table string) func() (int, error) {
	return func() (int, error) {
		out, err := w.here.Command(w.ctx, "nft", "list", "table", "netdev", table).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("nft: %w: %s", err, out)
		}
		m := nftCount.FindSubmatch(out)
		if m == nil {
			return 0, fmt.Errorf("table %s has no counter", table)
		}
		return strconv.Atoi(string(m[1]))
	}
}

func chain(priority int, verdict string) func(w *wayRig) (func() (int, error), error) {
	return func(w *wayRig) (func() (int, error), error) {
		return w.chainCount("fw"), w.nft(fmt.Sprintf("table netdev fw {\n chain pre { type filter hook ingress device DEV priority %d; policy accept;\n icmp type echo-request counter %s\n }\n}\n", priority, verdict))
	}
}

func egressChain(w *wayRig) (func() (int, error), error) {
	return w.chainCount("fw"), w.nft("table netdev fw {\n chain post { type filter hook egress device DEV priority 0; policy accept;\n icmp type echo-request counter\n }\n}\n")
}

func flowtable(w *wayRig) (func() (int, error), error) {
	// Unless it is refused, packets that it forwards are not shaped: no packet is counted correctly.
	return func() (int, error) { return 0, nil }, w.nft("table ip fw {\n flowtable fast { hook ingress priority 0; devices = { DEV }; }\n}\n")
}

// counting creates an eBPF program that counts packets and passes them.
func counting(kind ebpf.ProgramType, passes int32) (*ebpf.Program, *ebpf.Map, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil, nil, err
	}
	// Only IPv4 with protocol ICMP, by the Ethernet header; packets start with one.
	data, end := int16(0), int16(4)
	if kind == ebpf.SchedCLS {
		data, end = 76, 80 // of struct __sk_buff
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "count", Type: kind, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, data, asm.Word), asm.LoadMem(asm.R7, asm.R1, end, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R6), asm.Add.Imm(asm.R2, 34), asm.JGT.Reg(asm.R2, asm.R7, "out"),
		asm.LoadMem(asm.R2, asm.R6, 12, asm.Half), asm.JNE.Imm(asm.R2, unix.ETH_P_IP>>8|unix.ETH_P_IP<<8&0xff00, "out"),
		asm.LoadMem(asm.R2, asm.R6, 23, asm.Byte), asm.JNE.Imm(asm.R2, unix.IPPROTO_ICMP, "out"),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, m.FD()), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4), asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Imm(asm.R1, 1), asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, passes).WithSymbol("out"), asm.Return(),
	}})
	if err != nil {
		m.Close()
	}
	return p, m, err
}

func (w *wayRig) counter(m *ebpf.Map) func() (int, error) {
	w.undo = append(w.undo, m.Close)
	return func() (int, error) {
		var n uint64
		err := m.Lookup(uint32(0), &n)
		return int(n), err
	}
}

func genericXDP(w *wayRig) (func() (int, error), error) {
	p, m, err := counting(ebpf.XDP, 2) // XDP_PASS
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return w.counter(m), w.here.Do(func() error {
		l, err := netlink.LinkByName(w.dev)
		if err != nil {
			return err
		}
		return netlink.LinkSetXdpFdWithFlags(l, p.FD(), vnl.XDP_FLAGS_SKB_MODE)
	})
}

// tcxBefore processes packets before all filters of clsact.
func tcxBefore(w *wayRig) (func() (int, error), error) {
	p, m, err := counting(ebpf.SchedCLS, -1) // TCX_NEXT
	if err != nil {
		return nil, err
	}
	defer p.Close()
	attach := ebpf.AttachTCXIngress
	if w.at == "out" {
		attach = ebpf.AttachTCXEgress
	}
	return w.counter(m), w.here.Do(func() error {
		i, err := net.InterfaceByName(w.dev)
		if err != nil {
			return err
		}
		l, err := link.AttachTCX(link.TCXOptions{Interface: i.Index, Program: p, Attach: attach})
		if err != nil {
			return fmt.Errorf("%w: tcx: %w", errLacks, err)
		}
		w.undo = append(w.undo, l.Close)
		return nil
	})
}

var filterCount = regexp.MustCompile(`Sent [0-9]+ bytes ([0-9]+) pkt`)

// filterAfter is a filter of clsact after Headgate's, which mirrors packets; with an nftables chain
// packets are not redirected before it.
func filterAfter(with string) func(w *wayRig) (func() (int, error), error) {
	return func(w *wayRig) (func() (int, error), error) {
		hook := "ingress"
		if w.at == "out" {
			hook = "egress"
		}
		if with == "chain" {
			if err := w.nft("table netdev fw {\n chain pre { type filter hook ingress device DEV priority 0; policy accept; }\n}\n"); err != nil {
				return nil, err
			}
			if err := w.apply(); err != nil {
				return nil, err
			}
		}
		err := w.sh(w.here, "ip link add copies up type ifb && (tc qdisc show dev DEV | grep -q clsact || tc qdisc add dev DEV clsact) && tc filter add dev DEV "+hook+
			" pref 9 protocol ip u32 match ip protocol 1 0xff action mirred egress mirror dev copies")
		return func() (int, error) {
			out, err := w.here.Command(w.ctx, "tc", "-s", "filter", "show", "dev", w.dev, hook).CombinedOutput()
			if err != nil {
				return 0, fmt.Errorf("tc: %w: %s", err, out)
			}
			n := 0
			for _, m := range filterCount.FindAllSubmatch(out, -1) {
				one, _ := strconv.Atoi(string(m[1]))
				n += one
			}
			return n, nil
		}, err
	}
}

// onTop adds a device on top of here's, and of the far one if required; the addresses move to it.
func onTop(here, far string) func(w *wayRig) (func() (int, error), error) {
	return func(w *wayRig) (func() (int, error), error) {
		move := func(n *lab.Node, line, address string) error {
			if line == "" {
				return nil
			}
			if err := w.may(n, line+" && ip link set top up"); err != nil {
				return err
			}
			return w.sh(n, "ip addr flush dev DEV && ip addr add "+address+" dev top")
		}
		if err := move(w.here, here, "10.77.0.1/24"); err != nil {
			return nil, err
		}
		if err := move(w.far, far, "10.77.0.2/24"); err != nil {
			return nil, err
		}
		hook := "ingress"
		if w.at == "out" {
			hook = "egress"
		}
		return w.chainCount("above"), w.nft("table netdev above {\n chain on { type filter hook " + hook + " device top priority 0; policy accept;\n icmp type echo-request counter\n }\n}\n")
	}
}

// ipsec protects pings between the two hosts with ESP with null encryption.
func ipsec(mode string) func(w *wayRig) (func() (int, error), error) {
	return func(w *wayRig) (func() (int, error), error) {
		inner := [2]string{"10.77.0.1", "10.77.0.2"}
		if mode == "tunnel" {
			inner = [2]string{"10.78.0.1", "10.78.0.2"}
		}
		for i, n := range []*lab.Node{w.here, w.far} {
			for k, ends := range [][2]string{{"10.77.0.1", "10.77.0.2"}, {"10.77.0.2", "10.77.0.1"}} {
				err := w.may(n, fmt.Sprintf("ip xfrm state add src %s dst %s proto esp spi %d reqid 1 mode %s enc 'ecb(cipher_null)' '' auth 'hmac(sha1)' 0x0102030405060708090a0b0c0d0e0f1011121314", ends[0], ends[1], 0x1000+k, mode))
				if err != nil {
					return nil, err
				}
				dirs := []string{"out"}
				if i != k {
					dirs = []string{"in", "fwd"}
				}
				for _, dir := range dirs {
					if err := w.may(n, fmt.Sprintf("ip xfrm policy add src %s dst %s dir %s tmpl src %s dst %s proto esp reqid 1 mode %s", inner[k], inner[1-k], dir, ends[0], ends[1], mode)); err != nil {
						return nil, err
					}
				}
			}
			if mode == "tunnel" {
				if err := w.sh(n, fmt.Sprintf("ip addr add %s/32 dev lo && ip route add %s via 10.77.0.%d src %[1]s", inner[i], inner[1-i], 2-i)); err != nil {
					return nil, err
				}
			}
		}
		return w.answeredAll, nil
	}
}

// answeredAll replaces a counter where only the pings' answers are known.
func (w *wayRig) answeredAll() (int, error) {
	defer func() { w.answered += wayPings }()
	return w.answered, nil
}

// wireguard carries pings in a tunnel.
func wireguard(w *wayRig) (func() (int, error), error) {
	keys := [2]string{}
	for i, n := range []*lab.Node{w.here, w.far} {
		if err := w.may(n, "ip link add wg0 type wireguard && wg --version >/dev/null"); err != nil {
			return nil, err
		}
		out, err := n.Command(w.ctx, "sh", "-c", "umask 077; d=$(mktemp -d) && wg genkey >$d/k && wg set wg0 private-key $d/k listen-port 51820 && wg show wg0 public-key; rm -r $d").Output()
		if err != nil {
			return nil, fmt.Errorf("%w: wg: %w", errLacks, err)
		}
		keys[i] = strings.TrimSpace(string(out))
	}
	for i, n := range []*lab.Node{w.here, w.far} {
		if err := w.sh(n, fmt.Sprintf("wg set wg0 peer '%s' allowed-ips 10.78.0.0/24 endpoint 10.77.0.%d:51820 && ip addr add 10.78.0.%d/24 dev wg0 && ip link set wg0 up", keys[1-i], 2-i, 1+i)); err != nil {
			return nil, err
		}
	}
	return w.answeredAll, nil
}

// tryFrames sends frames of a PPPoE session through the device, which a line below carries unchanged,
// and counts those that arrive on the other side.
func (c wayCase) tryFrames(w *wayRig) (wrong int, said []string, err error) {
	if err := w.apply(); err != nil {
		return 0, nil, err
	}
	from, fromDev, to, toDev := w.far, w.farDev, w.here, w.dev
	if c.at == "out" {
		from, fromDev, to, toDev = to, toDev, from, fromDev
	}
	seen, err := newTap(to, toDev)
	if err != nil {
		return 0, nil, err
	}
	defer seen.close()
	fd, at, err := packetSocket(from, fromDev, 0)
	if err != nil {
		return 0, nil, err
	}
	defer unix.Close(fd)
	all := func() (packets int, err error) {
		state, err := w.observe()
		if err != nil {
			return 0, err
		}
		for _, g := range countersOf(&state, c.at == "in").Groups {
			packets += int(g.Packets)
		}
		return packets, nil
	}
	before, err := all()
	if err != nil {
		return 0, nil, err
	}
	ping := ipv4(unix.IPPROTO_ICMP, 64, []byte{10, 77, 0, 2}, []byte{10, 77, 0, 1}, make([]byte, 64))
	frame := ethernet(station, unix.ETH_P_PPP_SES, append([]byte{0x11, 0, 0, 1, 0, byte(len(ping) + 2), 0, 0x21}, ping...))
	for range wayPings {
		if err := unix.Sendto(fd, frame, 0, at); err != nil {
			return 0, nil, fmt.Errorf("cannot send a frame: %w", err)
		}
		if err := bench.Sleep(w.ctx, 5*time.Millisecond); err != nil {
			return 0, nil, err
		}
	}
	if err := bench.Sleep(w.ctx, 100*time.Millisecond); err != nil {
		return 0, nil, err
	}
	after, err := all()
	if err != nil {
		return 0, nil, err
	}
	queued, came := after-before, int(seen.bytes.Load())/len(frame)
	off := func(got int) int { return max(got-wayPings, wayPings-got) }
	return max(off(queued), off(came)), []string{fmt.Sprintf("frames of a session, from a packet socket: of %d %d queued and %d on the other side; PPPoE's own device is tested in the virtual machine (TestPPPoEIsCountedOnce)", wayPings, queued, came)}, nil
}

func wayBenches() (out []bench.Case) {
	for _, c := range wayCases() {
		out = append(out, bench.Case{
			Name: c.id(), Claims: []bench.Claim{c.claim()}, Run: c.run,
			Alongside: func(quick bool) string {
				if quick && c.inSmoke() {
					return slow
				}
				return "ways/" + c.name
			},
			Takes: func(quick bool) time.Duration {
				if quick && !c.inSmoke() {
					return 0
				}
				return 3 * time.Second
			},
		})
	}
	return out
}
