package traffic_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// TCP uses ECN and SACK as configured in the namespace. A flow that requires ECN gets it, or an error
// that names the sysctl to set. UDP sends ECT(0) itself:
//
//	client ── router ── server
func TestECN(t *testing.T) {
	tcp := flow("tcp", traffic.TCP, 5*unit.Mbit)
	tcp.ECN = true
	udp := flow("udp", traffic.UDP, 5*unit.Mbit)
	udp.ECN, udp.DSCP = true, 10
	without := labtest.Rig(t, lab.RigOptions{Sysctl: map[string]string{"net.ipv4.tcp_ecn": "2"}})
	if _, err := traffic.Start(t.Context(), without.Host, []traffic.Flow{tcp}, traffic.Options{}); err == nil || !strings.Contains(err.Error(), `net.ipv4.tcp_ecn to 1 in node "client"`) {
		t.Errorf("error is %v", err)
	}
	l := labtest.Rig(t, lab.RigOptions{Sysctl: map[string]string{"net.ipv4.tcp_ecn": "1", "net.ipv4.tcp_sack": "0"}})
	s, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{tcp, udp}, traffic.Options{Duration: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out, err := l.Node("router").Command(ctx, "tcpdump", "-n", "-v", "-c", "20", "-i", "server", "udp").CombinedOutput()
	if err != nil || strings.Count(string(out), "tos 0x2a,ECT(0)") != 20 {
		t.Errorf("packets: %v\n%s", err, out)
	}
	r := s.Wait()
	if f := r.Flow("tcp"); !f.ECN || f.SACK || f.Total.DeliveredBytes == 0 {
		t.Errorf("result %+v", f)
	}
}

// A receive buffer and a window clamp limit the data in flight of a round trip, and so does a send
// buffer:
//
//	client ──50 ms── router ── server
//
// A clamp of 64 KiB is 10.5 Mbit/s of payload: within 10 %. Buffers of 64 KiB are doubled, and the
// kernel's overhead for packets varies: between a third and twice the buffer in a round trip.
func TestBuffers(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{RTT: 50 * time.Millisecond})
	const size = 64 << 10
	const window = size * 8 / 0.050
	for _, c := range []struct {
		name      string
		set       func(*traffic.Flow)
		low, high float64
	}{
		{"nothing", func(*traffic.Flow) {}, 4 * window, math.Inf(1)},
		{"clamp", func(f *traffic.Flow) { f.WindowClamp = size }, 0.85 * window, 1.05 * window},
		{"receive", func(f *traffic.Flow) { f.ReceiveBuffer = size }, window / 3, 2 * window},
		{"send", func(f *traffic.Flow) { f.SendBuffer = size }, window / 3, 2 * window},
	} {
		labtest.Try(t, func(t *labtest.Check) {
			f := flow("f", traffic.TCP, traffic.Unlimited)
			c.set(&f)
			iv := run(t, l, 3*time.Second, f).Flow("f").Between(time.Second, 3*time.Second)
			got := float64(iv.DeliveredBytes) * 8 / iv.Seconds
			t.Logf("%s: %.2f Mbit/s of payload, window %.2f", c.name, got/1e6, window/1e6)
			if got < c.low || got > c.high {
				t.Errorf("%s: %.2f Mbit/s, want %.2f to %.2f", c.name, got/1e6, c.low/1e6, c.high/1e6)
			}
		})
	}
}

// transmitted returns the layer-2 bytes that a node's device has sent.
func transmitted(t testing.TB, l *lab.Lab, node, device string) float64 {
	t.Helper()
	out := labtest.Run(t, l.Node(node), "ip", "-s", "-o", "link", "show", "dev", device)
	_, tx, ok := strings.Cut(out, "TX:")
	if !ok {
		t.Fatalf("no counters in %s", out)
	}
	for _, word := range strings.Fields(strings.ReplaceAll(tx, `\`, " ")) {
		if n, err := strconv.ParseFloat(word, 64); err == nil {
			return n
		}
	}
	t.Fatalf("no counters in %s", out)
	return 0
}

// A multipath flow has the subflows that its namespaces create:
//
//	client ── router ── server      client has two addresses on its link
//
// The frames that it delivers are those that its device sent, within 0.5 %.
func TestMPTCP(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{NoOffload: true})
	client, router := l.Node("client"), l.Node("router")
	run := func() *traffic.FlowResult {
		f := flow("f", traffic.TCP, 50*unit.Mbit)
		f.MPTCP = true
		before := transmitted(t, l, "client", "router")
		r, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{f}, traffic.Options{Duration: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		got := r.Flow("f")
		bits := (transmitted(t, l, "client", "router") - before) * 8
		t.Logf("delivered %.0f, device %.0f bits, %d subflows, payload %d of %d", got.Total.DeliveredL2Bits, bits, got.Subflows, got.PayloadBytes, got.FrameBytes)
		if math.Abs(got.Total.DeliveredL2Bits/bits-1) > 0.005 || math.Abs(got.Total.DeliveredRate()/50e6-1) > 0.02 || got.Error != "" {
			t.Errorf("delivered %.0f bits, the device %.0f, error %q", got.Total.DeliveredL2Bits, bits, got.Error)
		}
		return got
	}
	if f := run(); f.Subflows != 1 {
		t.Errorf("%d subflows, want 1", f.Subflows)
	}
	labtest.Run(t, client, "ip", "addr", "add", "10.9.0.1/24", "dev", "router")
	labtest.Run(t, router, "ip", "addr", "add", "10.9.0.2/24", "dev", "client")
	for _, n := range []string{"client", "server"} {
		labtest.Run(t, l.Node(n), "ip", "mptcp", "limits", "set", "subflows", "2")
	}
	labtest.Run(t, client, "ip", "mptcp", "endpoint", "add", "10.9.0.1", "subflow")
	if f := run(); f.Subflows != 2 {
		t.Errorf("%d subflows, want 2", f.Subflows)
	}
	// The server announces another address.
	labtest.Run(t, client, "ip", "mptcp", "endpoint", "flush")
	labtest.Run(t, client, "ip", "mptcp", "limits", "set", "add_addr_accepted", "2")
	labtest.Run(t, l.Node("server"), "ip", "addr", "add", "10.8.0.2/24", "dev", "router")
	labtest.Run(t, router, "ip", "addr", "add", "10.8.0.1/24", "dev", "server")
	labtest.Run(t, client, "ip", "route", "add", "10.8.0.0/24", "via", "10.9.0.2")
	labtest.Run(t, l.Node("server"), "ip", "route", "add", "10.9.0.0/24", "via", "10.8.0.1")
	labtest.Run(t, l.Node("server"), "ip", "mptcp", "endpoint", "add", "10.8.0.2", "signal")
	if f := run(); f.Subflows != 2 {
		t.Errorf("%d subflows to the addresses that the server announces, want 2", f.Subflows)
	}
	// Where multipath TCP is turned off, the error says so.
	for _, n := range []string{"client", "server"} {
		if err := l.Node(n).Do(func() error { return os.WriteFile("/proc/sys/net/mptcp/enabled", []byte("0"), 0) }); err != nil {
			t.Fatal(err)
		}
	}
	f := flow("f", traffic.TCP, unit.Mbit)
	f.MPTCP = true
	if _, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{f}, traffic.Options{}); err == nil || !strings.Contains(err.Error(), "net.mptcp.enabled") {
		t.Errorf("error is %v", err)
	}
}

// Flows to one port must agree on the settings that sockets inherit from its listener.
func TestSharedPort(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	var flows []traffic.Flow
	for i := range 2 {
		f := flow(fmt.Sprint(i), traffic.TCP, unit.Mbit)
		f.DstPort, f.ReceiveBuffer = 5001, unit.Bytes(i*64<<10)
		flows = append(flows, f)
	}
	if _, err := traffic.Start(t.Context(), l.Host, flows, traffic.Options{}); err == nil || !strings.Contains(err.Error(), "give it another port") {
		t.Errorf("error is %v", err)
	}
}
