package htb

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/bpfobj"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/shaper/htb/earlier"
	"headgate.dev/headgate/shaper/shapertest"
	"headgate.dev/headgate/unit"
)

// Map types of package earlier.
type earlierKey struct {
	Family, Proto uint8
	DPort, SPort  [2]byte
	Zone          uint16
	Dst, Src      [16]byte
}

type earlierControl struct{ AssignEpoch, StartedNS uint64 }

// asEarlier calls do as the earlier build.
func asEarlier(do func() error) error { return WithEarlierObject(earlier.Object(), do) }

// upgradeRig is client, router and server; the device "router" of the server is shaped.
type upgradeRig struct {
	*testing.T
	lab    *lab.Lab
	server *lab.Node
	engine *Engine
}

const shaped = "router"

func newUpgradeRig(t *testing.T) *upgradeRig {
	// Otherwise each host repeats its multicast membership reports in the first seconds, which
	// would be counted with the packets of the test.
	quiet := map[string]string{"net.ipv6.conf.default.mldv2_unsolicited_report_interval": "3600000"}
	l := labtest.Rig(t, lab.RigOptions{Sysctl: quiet})
	return &upgradeRig{t, l, l.Node("server"), New()}
}

// do runs fn in the server's namespace, and fails with its error.
func (r *upgradeRig) do(fn func() error) {
	r.Helper()
	if err := r.server.Do(fn); err != nil {
		r.Fatal(err)
	}
}

func (r *upgradeRig) apply(p shaper.Plan) (changes []shaper.Change) {
	r.Helper()
	r.do(func() (err error) { changes, err = r.engine.Apply(p); return err })
	return changes
}

func (r *upgradeRig) applyEarlier(p shaper.Plan) {
	r.Helper()
	r.do(func() error { return asEarlier(func() error { _, err := r.engine.Apply(p); return err }) })
}

func (r *upgradeRig) observe() (st shaper.State) {
	r.Helper()
	r.do(func() (err error) { st, err = r.engine.Observe(shaped); return err })
	return st
}

func (r *upgradeRig) assignments() (n int) {
	r.Helper()
	r.do(func() error {
		list, err := r.engine.Assignments(shaped)
		n = len(list)
		return err
	})
	return n
}

// builds returns the builds of both programs.
func (r *upgradeRig) builds() (out [2]string) {
	r.Helper()
	r.do(func() error {
		return with(shaped, func(_ *nl.Conn, k *kernel) error {
			for i, s := range k.sides {
				if s.Record == nil {
					return fmt.Errorf("side %d has no record", i)
				}
				out[i] = s.Record.Build
			}
			return nil
		})
	})
	return out
}

// assignEarlier assigns connections to a group as the earlier build does.
func (r *upgradeRig) assignEarlier(name string, conns ...shaper.Conn) {
	r.Helper()
	r.do(func() error {
		return with(shaped, func(_ *nl.Conn, k *kernel) error {
			var classes uint32
			for _, s := range k.sides {
				classes |= classifier.AssignedClass(s.Record.Classes[name], s.Record.In)
			}
			var keys []earlierKey
			var values []uint32
			for _, c := range conns {
				for _, k := range classifier.Keys(c) {
					keys = append(keys, earlierKey{Family: k.Family, Proto: k.Proto, DPort: k.DPort, SPort: k.SPort, Dst: k.Dst, Src: k.Src})
					values = append(values, classes)
				}
			}
			maps := k.sides[egress].Maps
			var now earlierControl
			err := errors.Join(classifier.PutAll(maps[classifier.Assigned], keys, values), maps[classifier.ControlMap].Lookup(uint32(0), &now))
			now.AssignEpoch++
			return errors.Join(err, maps[classifier.ControlMap].Put(uint32(0), now))
		})
	})
}

// some returns connections that do not exist.
func some(n int) (conns []shaper.Conn) {
	for i := range n {
		conns = append(conns, shaper.Conn{
			Proto: group.TCP,
			A:     netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), uint16(i>>16+1)),
			B:     netip.MustParseAddrPort("192.0.2.1:443"),
		})
	}
	return conns
}

// fourGroups returns groups of 10, 20, 30 and 40 %, on ports 5001 to 5004; the first is the
// default group.
func fourGroups(t *testing.T, limit unit.Rate) *group.Tree {
	var groups []group.Group
	for i := range 4 {
		p := uint16(5001 + i)
		groups = append(groups, group.Group{
			Name: fmt.Sprintf("g%d", i+1), Default: i == 0,
			Guarantee: group.Amount{Share: unit.Share(10*(i+1)) * unit.Whole / 100},
			Match:     []group.Selector{{DPort: []group.PortRange{{First: p, Last: p}}}},
		})
	}
	tree, problems := group.Direction{Limit: limit, Groups: groups}.Resolve("out", true)
	for _, p := range problems {
		t.Fatal(p)
	}
	return &tree
}

// TestUpgradeToOtherLayouts: a device is taken over from a build with other map layouts, and
// given back to it, while traffic runs. Connections stay in their assigned groups, and no
// counter decreases.
//
//	client ── router ── server, which sends
func TestUpgradeToOtherLayouts(t *testing.T) {
	r := newUpgradeRig(t)
	tree := fourGroups(t, 100*unit.Mbit)
	plan := shaper.Plan{Dev: shaped, Perspective: group.Host, Out: tree, In: tree}
	labtest.Run(t, r.server, "tc", "qdisc", "add", "dev", shaped, "clsact")
	labtest.Run(t, r.server, "tc", strings.Fields("filter add dev "+shaped+" egress pref 100 protocol all u32 match u32 0 0 classid 7:7")...)
	foreign := func() string {
		return labtest.Run(t, r.server, "tc", "-d", "filter", "show", "dev", shaped, "egress", "pref", "100")
	}
	before := foreign()
	r.applyEarlier(plan)
	earlier := r.builds()

	session, err := traffic.Start(t.Context(), r.lab.Host, []traffic.Flow{
		{Name: "tcp", From: "server", To: "client", Protocol: traffic.TCP, Schedule: traffic.Constant(8 * unit.Mbit)},
		{Name: "udp", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 5002, Schedule: traffic.Constant(8 * unit.Mbit)},
	}, traffic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, b, err := session.Conn("tcp")
	if err != nil {
		t.Fatal(err)
	}
	tcp := shaper.Conn{Proto: group.TCP, A: a, B: b}

	// The present build does not write to maps of another build.
	err = r.server.Do(func() error { return r.engine.Assign(shaped, []shaper.Assignment{{Conn: tcp, Group: "g4"}}) })
	if err == nil || !strings.Contains(err.Error(), "apply its configuration first") {
		t.Errorf("assign with the maps of another build: %v", err)
	}
	const others = 100_000
	r.assignEarlier("g3", some(others)...)
	r.assignEarlier("g4", tcp)

	staysInG4 := func(when string) {
		t.Helper()
		time.Sleep(20 * time.Millisecond) // packets in the queue of the old group
		was := r.observe()
		time.Sleep(200 * time.Millisecond)
		now := r.observe()
		for i, g := range now.Out.Groups {
			// 8 Mbit/s in 200 ms are 200 KB, for the connection and for the datagrams; the
			// default group also has announcements of the hosts.
			sent := g.Bytes - was.Out.Groups[i].Bytes
			if idle := i == 0 || i == 2; idle && sent > 1000 || !idle && sent < 100_000 {
				t.Errorf("%s: in 200 ms %d bytes went through %s", when, sent, g.Path)
			}
		}
		if now.Out.Assigned != others+1 || now.In.Assigned != others+1 || r.assignments() != others+1 {
			t.Errorf("%s: %d connections in out, %d in in and %d in total are assigned, want %d", when, now.Out.Assigned, now.In.Assigned, r.assignments(), others+1)
		}
	}
	notBack := func(when string, was, now shaper.State) {
		t.Helper()
		for i, g := range now.Out.Groups {
			if w := was.Out.Groups[i]; g.Marks < w.Marks || g.Bytes < w.Bytes || g.Packets < w.Packets {
				t.Errorf("%s: the counters of %s were %+v and are %+v", when, g.Path, w, g)
			}
		}
		for i, hits := range now.Out.RuleHits {
			if hits < was.Out.RuleHits[i] {
				t.Errorf("%s: the hits of rule %d were %d and are %d", when, i, was.Out.RuleHits[i], hits)
			}
		}
	}
	staysInG4("before")
	was := r.observe()
	if was.Out.Groups[3].Marks == 0 || was.Out.RuleHits[1] == 0 {
		t.Fatalf("the earlier build counts nothing: the test is not valid: %+v", was.Out)
	}

	begun := time.Now()
	r.apply(plan)
	t.Logf("applied with %d assigned connections in %v", others+1, time.Since(begun))
	now := r.observe()
	notBack("upgraded", was, now)
	if after := r.builds(); after[0] == earlier[0] || after[1] == earlier[1] || len(now.Drift) > 0 {
		t.Errorf("builds were %v and are %v, drift %v", earlier, after, now.Drift)
	}
	staysInG4("upgraded")
	// A second apply changes nothing.
	was = r.observe()
	programs := r.programs()
	if changes := r.apply(plan); len(changes) > 0 || r.programs() != programs {
		t.Errorf("the second Apply changes %v", changes)
	}
	// The present build can write now.
	r.do(func() error { return r.engine.Unassign(shaped, some(1)) })
	r.do(func() error { return r.engine.Assign(shaped, []shaper.Assignment{{Conn: some(1)[0], Group: "g3"}}) })

	// A downgrade works in the same way.
	r.applyEarlier(plan)
	notBack("downgraded", was, r.observe())
	if after := r.builds(); after != earlier {
		t.Errorf("builds are %v", after)
	}
	staysInG4("downgraded")
	r.apply(plan)
	staysInG4("upgraded again")

	session.Stop()
	result := session.Wait()
	time.Sleep(50 * time.Millisecond)
	udp, hits, packets := result.Flow("udp").Total, r.observe().Out.RuleHits[1], r.packets("g2")
	// Each of the three migrations may miss one packet.
	if sent := uint64(udp.Datagrams); hits != sent || packets > sent || packets+3 < sent {
		t.Errorf("of %d datagrams, %d were counted by their rule and %d by their group", sent, hits, packets)
	}
	if udp.LostDatagrams > 0 {
		t.Errorf("%d datagrams of %d were lost", udp.LostDatagrams, udp.Datagrams)
	}
	if f := result.Flow("tcp"); f.Error != "" || f.Total.Retransmits > 5 {
		t.Errorf("%d retransmissions, error %q", f.Total.Retransmits, f.Error)
	}
	if after := foreign(); after != before {
		t.Errorf("the foreign filter was\n%s\nand is\n%s", before, after)
	}
}

// packets returns the number of packets that the classifier has counted for a group in out.
func (r *upgradeRig) packets(name string) (n uint64) {
	r.Helper()
	r.do(func() error {
		return with(shaped, func(_ *nl.Conn, k *kernel) error {
			all, err := classifier.ReadCounters(k.sides[egress].Maps[classifier.Counters])
			if err == nil {
				n = all[k.sides[egress].Record.Classes[name]].Packets
			}
			return err
		})
	})
	return n
}

// programs returns the IDs of the attached programs.
func (r *upgradeRig) programs() (ids [2]ebpf.ProgramID) {
	r.Helper()
	r.do(func() error {
		return with(shaped, func(_ *nl.Conn, k *kernel) error {
			for i, s := range k.sides {
				ids[i] = s.Program
			}
			return nil
		})
	})
	return ids
}

// TestUpgradeKilled: a process that is killed during an upgrade leaves the complete old state
// or the complete new state, with every assigned connection.
func TestUpgradeKilled(t *testing.T) {
	r := newUpgradeRig(t)
	tree := fourGroups(t, 100*unit.Mbit)
	plan := shaper.Plan{Dev: shaped, Perspective: group.Host, Out: tree, In: tree}
	const conns = 20_000
	r.applyEarlier(plan)
	earlier := r.builds()
	r.assignEarlier("g3", some(conns)...)
	run := func(within time.Duration) (took time.Duration) {
		c := shapertest.Apply(t, plan)
		r.do(c.Start)
		begun := time.Now()
		if within > 0 {
			time.Sleep(within)
			_ = c.Process.Kill()
		}
		var exit *exec.ExitError
		if err := c.Wait(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() < 0) {
			t.Fatalf("apply: %v: %v", err, c.Stderr)
		}
		return time.Since(begun)
	}
	longest := run(0)
	today := r.builds()
	var old, fresh int
	for range 20 {
		r.applyEarlier(plan)
		within := time.Duration(rand.Int64N(int64(longest))) + time.Millisecond
		run(within)
		switch b := r.builds(); b {
		case earlier:
			old++
		case today:
			fresh++
		default:
			t.Fatalf("killed after %v: builds are %v", within, b)
		}
		if n := r.assignments(); n != conns {
			t.Fatalf("killed after %v: %d of %d connections are assigned", within, n, conns)
		}
		r.apply(plan)
		if n := r.assignments(); n != conns || r.builds() != today || len(r.observe().Drift) > 0 {
			t.Fatalf("killed after %v, then applied: %d of %d connections are assigned", within, n, conns)
		}
	}
	t.Logf("an upgrade takes %v; after kills, %d states were old and %d new", longest, old, fresh)
	if old == 0 {
		t.Error("no process was killed in time: the test is not valid")
	}
}

// TestTwoBuildsOfTheHook: two builds of the departure hook coexist while each has a device, and
// the older one is removed with its last device.
func TestTwoBuildsOfTheHook(t *testing.T) {
	r := newUpgradeRig(t)
	tree := fourGroups(t, 100*unit.Mbit)
	labtest.Run(t, r.server, "ip", "link", "add", "second", "type", "ifb")
	labtest.Run(t, r.server, "ip", "link", "set", "second", "up")
	plan := func(dev string) shaper.Plan {
		return shaper.Plan{Dev: dev, Perspective: group.Host, Out: tree, In: tree}
	}
	// The same code in a file with another hash is another build.
	older := append(bytes.Clone(_DeparturesBytes), 0)
	oldClassifier := append(bytes.Clone(_ClassifierBytes), 0)
	dir := func(object []byte) string {
		root, err := bpfobj.PinDir("headgate")
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(root, "departures-"+classifier.Build(object))
	}
	hooks := func(wantOld, wantNew bool) {
		t.Helper()
		for object, want := range map[*[]byte]bool{&older: wantOld, &_DeparturesBytes: wantNew} {
			_, err := os.Stat(filepath.Join(dir(*object), pinHook))
			if (err == nil) != want {
				t.Errorf("the hook %s: %v, want it to exist: %v", dir(*object), err, want)
			}
		}
	}
	measured := func(dev string) (n uint64) {
		r.do(func() error {
			return with(dev, func(_ *nl.Conn, k *kernel) error {
				all, err := readQueues(k.sides[egress].Maps[queues])
				for _, q := range all {
					n += q.Departures
				}
				return err
			})
		})
		return n
	}
	measures := func(when string) {
		t.Helper()
		was := measured(shaped)
		labtest.Try(t, func(c *labtest.Check) {
			result, err := traffic.Run(c.Context(), r.lab.Host, []traffic.Flow{
				{Name: "udp", From: "server", To: "client", Protocol: traffic.UDP, DstPort: 5002, Schedule: traffic.Constant(8 * unit.Mbit)},
			}, traffic.Options{Duration: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if f := result.Flow("udp"); f.Error != "" || f.Total.LostDatagrams > 0 {
				c.Errorf("%s: of %d datagrams %d were lost: %s", when, f.Total.Datagrams, f.Total.LostDatagrams, f.Error)
			}
		})
		if measured(shaped) == was {
			t.Errorf("%s: no departure is measured", when)
		}
	}
	asOlder := func(do func() error) { r.do(func() error { return WithObjects(oldClassifier, older, do) }) }
	// Devices of earlier tests are removed with their namespaces, asynchronously. Until then
	// the newer build's hook exists for them.
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if err := attach.Locked(func() error { sweepTokens(); return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir(_DeparturesBytes)); errors.Is(err, os.ErrNotExist) {
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("%s exists before this test has changed anything: does another program shape a device on this machine?", dir(_DeparturesBytes))
		}
	}
	asOlder(func() error {
		_, err := r.engine.Apply(plan(shaped))
		_, err2 := r.engine.Apply(plan("second"))
		return errors.Join(err, err2)
	})
	hooks(true, false)
	measures("only the older build")
	r.apply(plan("second"))
	hooks(true, true)
	measures("the older build beside the newer")
	r.apply(plan(shaped))
	hooks(false, true)
	measures("only the newer build")
	if _, err := os.Stat(dir(older)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the older build's directory: %v", err)
	}
}

// TestPinnedMapOfOtherType: an object that is pinned at the hook's path is checked before it is
// used.
func TestPinnedMapOfOtherType(t *testing.T) {
	r := newUpgradeRig(t)
	tree := fourGroups(t, 100*unit.Mbit)
	object := append(bytes.Clone(_DeparturesBytes), 1)
	dir, err := bpfobj.PinDir(filepath.Join("headgate", "departures-"+classifier.Build(object)))
	if err != nil {
		t.Fatal(err)
	}
	alien, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: 4, MaxEntries: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer alien.Close()
	if err := alien.Pin(filepath.Join(dir, pinDevices)); err != nil {
		t.Fatal(err)
	}
	as := func(do func() error) { r.do(func() error { return WithObjects(_ClassifierBytes, object, do) }) }
	as(func() error {
		if m, err := loadDevices(dir); err == nil {
			m.Close()
			t.Error("a map of another type is accepted as the hook's")
		}
		if _, err := r.engine.Apply(shaper.Plan{Dev: shaped, Perspective: group.Host, Out: tree}); err != nil {
			return err
		}
		m, err := loadDevices(dir)
		if err != nil {
			return err
		}
		m.Close()
		st, err := r.engine.Observe(shaped)
		if len(st.Drift) > 0 {
			t.Errorf("drift: %v", st.Drift)
		}
		return errors.Join(err, r.engine.Clear(shaped))
	})
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the hook: %v", err)
	}
}

// TestUpgradeFromUnreadableRecord: a program without a record is replaced without migration,
// because the class IDs in its maps cannot be mapped to groups.
func TestUpgradeFromUnreadableRecord(t *testing.T) {
	r := newUpgradeRig(t)
	tree := fourGroups(t, 100*unit.Mbit)
	plan := shaper.Plan{Dev: shaped, Perspective: group.Host, Out: tree, In: tree}
	r.apply(plan)
	r.do(func() error { return r.engine.Assign(shaped, []shaper.Assignment{{Conn: some(1)[0], Group: "g3"}}) })
	r.do(func() error {
		return with(shaped, func(_ *nl.Conn, k *kernel) error {
			for _, s := range k.sides {
				record := s.Maps["headgate_record"]
				if err := record.Put(uint32(0), make([]byte, record.ValueSize())); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err := r.server.Do(func() error { _, err := r.engine.Observe(shaped); return err }); !errors.Is(err, shaper.ErrNotShaped) {
		t.Errorf("observed without a record: %v", err)
	}
	if changes := r.apply(plan); len(changes) == 0 {
		t.Error("a program without a record is not replaced")
	}
	if n := r.assignments(); n != 0 || len(r.observe().Drift) > 0 {
		t.Errorf("%d connections are assigned, drift %v", n, r.observe().Drift)
	}
	r.do(func() error { return r.engine.Clear(shaped) })
}
