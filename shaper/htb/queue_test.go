package htb_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/unit"
)

// onePercent returns a group of 1 % and a group with the rest.
func onePercent(t testing.TB, limit unit.Rate) *group.Tree {
	tree, problems := group.Direction{Limit: limit, Groups: []group.Group{
		{Name: "little", Guarantee: group.Amount{Share: unit.Whole / 100}, Match: []group.Selector{{DPort: []group.PortRange{{First: 5001, Last: 5001}}}}},
		{Name: "rest", Guarantee: group.Amount{Share: unit.Whole * 90 / 100}, Default: true},
	}}.Resolve("out", true)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &tree
}

// TestBurstInASmallGroup: the time limit of a queue applies at the group's present rate, not at
// its guarantee. On an idle link, a group of 1 % has no drops in bursts that the link carries
// in 10 ms.
//
//	server == router == client
func TestBurstInASmallGroup(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	server, e := l.Node("server"), htb.New()
	client, err := l.Node("client").Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Do(func() error {
		if _, err := e.Apply(shaper.Plan{Dev: "router", Out: onePercent(t, 100*unit.Mbit)}); err != nil {
			return err
		}
		c, err := net.ListenUDP("udp", nil) // not connected, so that a missing receiver does not matter
		if err != nil {
			return err
		}
		defer c.Close()
		for n := range 6 {
			burst := 80
			if n == 0 {
				burst = 1 // resolves the neighbour
			}
			for range burst {
				if _, err := c.WriteToUDPAddrPort(make([]byte, 1400), netip.AddrPortFrom(client, 5001)); err != nil {
					return err
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		st, err := e.Observe("router")
		if err == nil && (st.Out.Groups[0].Drops > 0 || st.Out.Groups[0].Packets < 1+5*80) {
			t.Errorf("of 401 packets, %d were sent and %d dropped", st.Out.Groups[0].Packets, st.Out.Groups[0].Drops)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestWaitAtTheGuarantee: if other groups limit a group to its guarantee, its queue does not
// hold packets for seconds: 320 KiB at 2 Mbit/s would be 1.3 s.
func TestWaitAtTheGuarantee(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{RTT: time.Millisecond})
		server, e := l.Node("server"), htb.New()
		if err := server.Do(func() error {
			_, err := e.Apply(shaper.Plan{Dev: "router", In: onePercent(t, 200*unit.Mbit)})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		flow := func(name string, p traffic.Protocol, port uint16, r unit.Rate) traffic.Flow {
			f := traffic.Flow{Name: name, From: "client", To: "server", Protocol: p, DstPort: port, Schedule: traffic.Constant(r)}
			if p == traffic.TCP {
				f.Congestion = "cubic"
			}
			return f
		}
		worst, ticks := time.Duration(0), 0
		_, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{
			flow("little", traffic.TCP, 5001, traffic.Unlimited), flow("rest", traffic.UDP, 5002, 240*unit.Mbit),
		}, traffic.Options{Duration: 10 * time.Second, Interval: 200 * time.Millisecond, OnInterval: func([]traffic.FlowInterval) {
			if ticks++; ticks < 25 { // the first window fills the queue, and is retransmitted
				return
			}
			_ = server.Do(func() error {
				st, err := e.Observe("router")
				if err == nil {
					worst = max(worst, st.In.Groups[0].QueueDelay)
				}
				return err
			})
		}})
		if err != nil {
			t.Fatal(err)
		}
		if worst == 0 || worst > 300*time.Millisecond {
			t.Errorf("the queue delay reached %v", worst)
		}
	})
}

// TestDownloadOnAThinUplink: a download of 100 Mbit/s is not limited by its acknowledgements on
// an uplink of 5 Mbit/s. They take 2.2 Mbit/s with one per two segments of 1,500 bytes.
//
//	server (router: out 5, in 100 Mbit/s) == router == client
func TestDownloadOnAThinUplink(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{})
		server := l.Node("server")
		for _, end := range [][2]string{{"server", "router"}, {"router", "server"}, {"router", "client"}, {"client", "router"}} {
			labtest.Run(t, l.Node(end[0]), "ethtool", "-K", end[1], "tso", "off", "gso", "off", "gro", "off")
		}
		one := func(limit unit.Rate) *group.Tree {
			tree, problems := group.Direction{Limit: limit, Groups: []group.Group{{Name: "all", Default: true}}}.Resolve("out", true)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			return &tree
		}
		if err := server.Do(func() error {
			_, err := htb.New().Apply(shaper.Plan{Dev: "router", Out: one(5 * unit.Mbit), In: one(100 * unit.Mbit)})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		result, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{
			{Name: "download", From: "client", To: "server", Protocol: traffic.TCP, Congestion: "cubic", Schedule: traffic.Constant(traffic.Unlimited)},
		}, traffic.Options{Duration: 4 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Flow("download").Between(time.Second, 4*time.Second).DeliveredRate(); got < 93e6 {
			t.Errorf("the download got %.1f of 100 Mbit/s", got/1e6)
		}
	})
}

// TestFloodInAClientsQueue: the queue of a client limits an unresponsive flood, also if the
// classifier cannot drop, because an action of its filter redirects each packet (Linux before
// 6.4).
//
//	server (router) == router == client
func TestFloodInAClientsQueue(t *testing.T) {
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{})
		server, e := l.Node("server"), htb.New()
		tree := eachTree(t, group.Direction{Limit: 20 * unit.Mbit, Groups: []group.Group{{
			Name: "users", Default: true, Each: group.Each{IPv4: 32, IPv6: 64}, Clients: 8, Ceiling: group.Amount{Rate: 2 * unit.Mbit},
		}}}, "in")
		if err := server.Do(func() error { _, err := e.Apply(shaper.Plan{Dev: "router", In: tree}); return err }); err != nil {
			t.Fatal(err)
		}
		flood := traffic.Flow{Name: "flood", From: "client", To: "server", Protocol: traffic.UDP, DstPort: 5001, Schedule: traffic.Constant(8 * unit.Mbit)}
		var waited time.Duration
		var drops uint64
		_, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{flood}, traffic.Options{Duration: 8 * time.Second, Interval: time.Second, OnInterval: func([]traffic.FlowInterval) {
			_ = server.Do(func() error {
				st, err := e.Observe("router")
				if err == nil {
					waited, drops = st.In.Groups[0].QueueDelay, st.In.Groups[0].Drops
				}
				return err
			})
		}})
		if err != nil {
			t.Fatal(err)
		}
		if drops == 0 || waited == 0 || waited > 600*time.Millisecond {
			t.Errorf("the queue delay reached %v, with %d drops", waited, drops)
		}
	})
}

// TestPriorityStays: a packet leaves with its original priority; Headgate's class is not
// visible to other devices. A macvlan is shaped, and packets are inspected at the device below
// it.
func TestPriorityStays(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	server := l.Node("server")
	labtest.Run(t, server, "ip", "link", "add", "m0", "link", "router", "type", "macvlan", "mode", "bridge")
	labtest.Run(t, server, "ip", "link", "set", "m0", "up")
	labtest.Run(t, server, "ip", "addr", "add", "10.99.0.1/24", "dev", "m0")
	labtest.Run(t, server, "ip", "neigh", "add", "10.99.0.2", "lladdr", "02:00:00:00:00:01", "dev", "m0")
	seen, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	const protocol, priority = 16, 32 // in struct __sk_buff
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, priority, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, protocol, asm.Word),
		asm.JNE.Imm(asm.R2, int32(binary.NativeEndian.Uint16([]byte{8, 0})), "out"),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, seen.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.StoreMem(asm.R0, 0, asm.R6, asm.Word),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("out"),
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	if err := server.Do(func() error {
		if _, err := htb.New().Apply(shaper.Plan{Dev: "m0", Out: onePercent(t, 100*unit.Mbit)}); err != nil {
			return err
		}
		below, err := net.InterfaceByName("router")
		if err != nil {
			return err
		}
		hook, err := link.AttachTCX(link.TCXOptions{Interface: below.Index, Program: prog, Attach: ebpf.AttachTCXEgress})
		if err != nil {
			return err
		}
		defer hook.Close()
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		// The last is the handle of a Headgate class, which applications must not select.
		for _, c := range []struct{ sent, desiredSide uint32 }{{5, 5}, {0, 0}, {0x48470010, 0}} {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, int(c.sent)); err != nil {
				return err
			}
			if err := seen.Put(uint32(0), ^uint32(0)); err != nil {
				return err
			}
			if err := unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: 5002, Addr: [4]byte{10, 99, 0, 2}}); err != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
			var got uint32
			if err := seen.Lookup(uint32(0), &got); err != nil {
				return err
			}
			if got != c.desiredSide {
				t.Errorf("a packet of priority %#x reached the device below with %#x, want %#x", c.sent, got, c.desiredSide)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
