package quantum

import (
	"encoding/binary"
	flags "flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"pgregory.net/rapid"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// needRoot skips the test without root.
func needRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("requires root to load eBPF programs")
	}
}

// policer is the eBPF program in virtual time, without a device: packets are synthesized and
// run through the program one by one (BPF_PROG_TEST_RUN).
type policer struct {
	t interface {
		Fatalf(string, ...any)
		Helper()
	}
	side attach.Side
	p    *classifier.Program
}

// load replaces the program, as an Apply does.
func (k *policer) load(tree group.Tree, s settings) {
	k.t.Helper()
	m := &transition{dev: &attach.Device{Link: &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{EncapType: "ether"}}}, settings: s, virtualTime: true}
	m.dev.Sides[attach.Ingress] = k.side
	m.sides[attach.Ingress].Direction = attach.Direction{Tree: &tree, In: true}
	err := m.sides[attach.Ingress].setDesired(m.dev, &k.side, shaper.Plan{In: &tree}, s)
	if err != nil {
		k.t.Fatalf("%v", err)
	}
	p, err := m.load(attach.Ingress, m.dev.Shared())
	if err != nil {
		k.t.Fatalf("%v", err)
	}
	k.close()
	k.p, k.side = p, attach.Side{Program: 1, Maps: p.Maps, Record: &p.Record}
}

func (k *policer) close() {
	if k.p != nil {
		k.p.Close()
	}
}

func (k *policer) state() (s kernelState) {
	if err := k.p.Maps[quantumMap].Lookup(uint32(0), &s); err != nil {
		k.t.Fatalf("%v", err)
	}
	return s
}

// skb is struct __sk_buff (uapi/linux/bpf.h).
type skb struct {
	_        [8]uint32
	Priority uint32
	_        [3]uint32
	CB       [5]uint32
	_        [19]uint32
	FlowKeys uint64
	Tstamp   uint64
	WireLen  uint32
	GSOSegs  uint32
	SK       uint64
	GSOSize  uint32
	_        uint32
	HWTstamp uint64
}

const (
	actUnspec = -1
	actShot   = 2
)

// packet runs the program for one packet.
func (k *policer) packet(frame []byte, now uint64, gsoSegs uint32) share.Verdict {
	k.t.Helper()
	o := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: skb{Tstamp: now, GSOSegs: gsoSegs}}
	ret, err := k.p.Run(&o)
	if err != nil {
		k.t.Fatalf("run the policer: %v", err)
	}
	switch int32(ret) {
	case actShot:
		return share.Verdict{Drop: true}
	case actUnspec:
		return share.Verdict{CE: o.DataOut[15]&3 == 3}
	}
	k.t.Fatalf("the policer returns %d", int32(ret))
	return share.Verdict{}
}

// udp returns an ECN-capable frame to a port with a payload.
func udp(port uint16, payload int) []byte {
	b := make([]byte, 14+20+8+payload)
	b[12], b[13] = 0x08, 0x00
	ip := b[14:]
	ip[0], ip[1], ip[8], ip[9] = 0x45, 2, 64, 17
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	binary.BigEndian.PutUint16(ip[22:], port)
	binary.BigEndian.PutUint16(ip[24:], uint16(8+payload))
	return b
}

const firstPort = 5001

// ports returns a tree of groups, each with one destination port.
func ports(limit unit.Rate, guarantees []unit.Rate) group.Tree {
	t := group.Tree{Limit: limit, Spare: group.Proportional}
	for i, g := range guarantees {
		t.Nodes = append(t.Nodes, group.Node{Path: fmt.Sprintf("g%d", i), Parent: -1, Depth: 1, Leaf: true, Guarantee: g, Ceiling: limit})
		port := uint16(firstPort + i)
		t.Rules = append(t.Rules, group.Rule{Selector: group.Selector{DPort: []group.PortRange{{First: port, Last: port}}}, Node: i})
	}
	return t
}

// longRuns configures rapid for a few long runs, because loading the program of each run takes
// the kernel 0.2 s.
func longRuns(t *testing.T) {
	const checks = "rapid.checks"
	was := flags.Lookup(checks)
	if was.Value.String() != was.DefValue {
		return // set by the user
	}
	if err := flags.Set(checks, "16"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flags.Set(checks, was.DefValue) })
}

// TestLockStep feeds the eBPF program and share.Quantum with the same packets in the same
// virtual time, and compares them after each: verdict, CE, every group's counters, pool, total
// and resets. The run includes idle quanta, assignments and changes of the limit.
func TestLockStep(t *testing.T) {
	needRoot(t)
	longRuns(t)
	rapid.Check(t, func(t *rapid.T) {
		k := &policer{t: t}
		defer func() { k.close() }()
		var q *share.Quantum
		var cfg share.QuantumConfig
		var s settings
		configure := func() {
			s = settings{group.QuantumOptions{
				Quantum: time.Duration(rapid.SampledFrom([]int{1000, 250, 60}).Draw(t, "ms")) * time.Millisecond, Overdraft: rapid.Bool().Draw(t, "overdraft"),
			}, 1500}
			least := 8*3001*uint64(time.Second)/uint64(s.Quantum) + 8
			limit := unit.Rate(rapid.Uint64Range(least, 20*least).Draw(t, "limit"))
			n := rapid.SampledFrom([]int{1, 2, 4, maxGroups}).Draw(t, "groups")
			var guarantees []unit.Rate
			for range n {
				// Up to twice the fair share, because the source does not check the sum.
				guarantees = append(guarantees, unit.Rate(rapid.Uint64Range(0, min(uint64(limit), 2*uint64(limit)/uint64(n))).Draw(t, "guarantee")))
			}
			// The scaled step, the paper's step, or any step that some group can lend.
			switch most := uint64(slices.Max(guarantees)) * uint64(s.Quantum) / uint64(8*time.Second); {
			case rapid.Bool().Draw(t, "scaled") || most == 0:
			case most >= 1500 && rapid.Bool().Draw(t, "paper"):
				s.Step.Bytes = 1500
			default:
				s.Step.Bytes = unit.Bytes(rapid.Uint64Range(1, most).Draw(t, "step"))
			}
			tree := ports(limit, guarantees)
			var err error
			if cfg, err = s.config(tree); err != nil {
				t.Fatal(err)
			}
			k.load(tree, s)
		}
		configure()
		q = share.NewQuantum(cfg)
		now := uint64(1_000_000_000)
		var ends uint64 // 0 before the first packet
		fresh := true
		var asked uint32
		var reset, reconfigured bool
		for range rapid.IntRange(1, 1200).Draw(t, "steps") {
			switch rapid.IntRange(0, 450).Draw(t, "what") {
			case 0: // quanta pass
				now += uint64(s.Quantum) * rapid.Uint64Range(0, 100).Draw(t, "idle")
				continue
			case 1: // a connection is assigned
				if fresh {
					continue
				}
				asked++
				if err := k.p.Maps[resetsMap].Put(uint32(0), asked); err != nil {
					t.Fatal(err)
				}
				reset = true
				continue
			case 2:
				// Of two configurations without a packet in between, the model sees only the
				// second, and would keep a group that the first removed.
				if fresh || reconfigured {
					continue
				}
				configure()
				reconfigured = true
			}
			now += rapid.Uint64Range(0, uint64(s.Quantum)/20).Draw(t, "gap")
			g := rapid.IntRange(0, len(cfg.Configured)-1).Draw(t, "group")
			payload := rapid.OneOf(rapid.IntRange(0, 1472), rapid.Just(1472)).Draw(t, "payload")
			if payload > 0 {
				if end := now + uint64(s.Quantum); fresh || ends > end {
					ends, fresh = end, false
				}
				for ; now >= ends; ends += uint64(s.Quantum) {
					q.Tick()
				}
				switch {
				case reconfigured:
					q.Reconfigure(cfg)
				case reset:
					q.Reset()
				}
				reset, reconfigured = false, false
			}
			want := q.Packet(g, uint64(payload))
			before := k.marks(g)
			got := k.packet(udp(firstPort+uint16(g), payload), now, 0)
			if marks := k.marks(g) - before; marks > 0 != want.CE || marks > 1 {
				t.Fatalf("group %d, %d bytes: the kernel counts %d marks, the model returns %+v", g, payload, marks, want)
			}
			if got.CE = got.CE || want.CE && want.Drop; got != want { // the mark of a dropped packet is invisible
				t.Fatalf("group %d, %d bytes: the kernel returns %+v, the model %+v", g, payload, got, want)
			}
			if !fresh && !reset && !reconfigured { // requested changes take effect at the next counted packet
				k.equals(q, ends)
				if rapid.IntRange(0, 9).Draw(t, "look") == 0 {
					k.shows(q, cfg, s, now)
				}
			}
		}
	})
}

// marks returns the number of marks counted for a group.
func (k *policer) marks(g int) (sum uint64) {
	k.t.Helper()
	var cpus []classifier.Counter
	if err := k.p.Maps[classifier.Counters].Lookup(uint32(k.p.Record.Classes[fmt.Sprintf("g%d", g)]), &cpus); err != nil {
		k.t.Fatalf("%v", err)
	}
	for _, c := range cpus {
		sum += c.Marks
	}
	return sum
}

// shows compares the state that Observe would report after some time without packets, and after
// a pending reset, with the model.
func (k *policer) shows(q *share.Quantum, cfg share.QuantumConfig, set settings, now uint64) {
	k.t.Helper()
	number := func(i int) int { return int(k.p.Record.Classes[fmt.Sprintf("g%d", i)]) - firstMinor }
	for _, quanta := range []uint64{0, 1, 3} {
		for _, reset := range []bool{false, true} {
			model, s := q.Clone(), k.state()
			later := now + quanta*uint64(set.Quantum)
			for end := s.EndsNS; later >= end; end += uint64(set.Quantum) {
				model.Tick()
			}
			if reset {
				model.Reset()
			}
			if s.advance(later, uint64(set.Quantum), cfg, number, reset); s.Pool != model.Pool() || s.Used != model.Used() || s.Resets != model.Resets() {
				k.t.Fatalf("after %d quanta, reset %v: pool, used, resets: reported %d %d %d, model %d %d %d", quanta, reset, s.Pool, s.Used, s.Resets, model.Pool(), model.Used(), model.Resets())
			}
			for i, g := range model.Groups() {
				if got := s.Groups[number(i)]; got.Actual != g.Actual {
					k.t.Fatalf("after %d quanta, reset %v: group %d: reported %d, model %d", quanta, reset, i, got.Actual, g.Actual)
				}
			}
		}
	}
}

// equals compares the kernel's state with the model's.
func (k *policer) equals(q *share.Quantum, ends uint64) {
	k.t.Helper()
	s := k.state()
	if s.Used != q.Used() || s.Pool != q.Pool() || s.Resets != q.Resets() || s.EndsNS != ends {
		k.t.Fatalf("used, pool, resets, end: kernel %d %d %d %d, model %d %d %d %d",
			s.Used, s.Pool, s.Resets, s.EndsNS, q.Used(), q.Pool(), q.Resets(), ends)
	}
	for i, g := range q.Groups() {
		id := k.p.Record.Classes[fmt.Sprintf("g%d", i)] - firstMinor
		if got := s.Groups[id]; got.Actual != g.Actual || got.Passed != g.Bytes || got.Dropped != g.Dropped {
			k.t.Fatalf("group %d: kernel %+v, model %+v", i, got, g)
		}
	}
}
