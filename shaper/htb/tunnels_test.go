package htb

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// bothWays shapes a device of here in both directions, and checks that pings from the far host
// are classified, queued and answered once, and that the answers are counted once.
func (w *ways) bothWays(dev, to string) {
	w.Helper()
	w.dev = dev
	tree := fourGroups(w.T, 100*unit.Mbit)
	w.apply(shaper.Plan{Dev: dev, Out: tree, In: tree})
	left := func() (packets uint64) {
		for _, g := range w.observe().Out.Groups {
			packets += g.Packets
		}
		return packets
	}
	before := left()
	w.once(dev, to)
	if n := left() - before; n != pings {
		w.Errorf("%s: %d answers were counted at egress, want %d", dev, n, pings)
	}
	w.do(func() error { return w.engine.Clear(dev) })
}

// TestWireGuardIsCountedOnce: WireGuard's packets are counted once on its own device and once
// on the device below it. The test needs a kernel with WireGuard.
//
//	wg0                wg0
//	here (dev) ────── far
func TestWireGuardIsCountedOnce(t *testing.T) {
	w := newWays(t)
	w.direct()
	nodes, keys := []*lab.Node{w.here, w.far}, [2]string{}
	for i, n := range nodes {
		if !w.may(n, "ip link add wg0 type wireguard") {
			return
		}
		keys[i] = strings.TrimSpace(labtest.Run(t, n, "sh", "-c", "umask 077; d=$(mktemp -d) && wg genkey >$d/k && wg set wg0 private-key $d/k listen-port 51820 && wg show wg0 public-key; rm -r $d"))
	}
	for i, n := range nodes {
		w.at(n, fmt.Sprintf("wg set wg0 peer %s allowed-ips 10.78.0.0/24 endpoint 10.77.0.%d:51820", keys[1-i], 2-i))
		w.at(n, fmt.Sprintf("ip addr add 10.78.0.%d/24 dev wg0", 1+i))
		w.at(n, "ip link set wg0 up")
	}
	below := w.dev
	w.ping("10.78.0.1") // the handshake
	w.bothWays(below, "10.78.0.1")
	w.bothWays("wg0", "10.78.0.1")
}

// TestPPPoEIsCountedOnce is the same for PPPoE: its own device, whose packets start with the IP
// header, and the device that carries the session's frames. The test needs a kernel with PPPoE,
// and pppd.
func TestPPPoEIsCountedOnce(t *testing.T) {
	w := newWays(t)
	if _, err := exec.LookPath("pppoe-server"); err != nil {
		lacking(t, "pppoe-server", err.Error())
		return
	}
	if out, err := exec.Command("modprobe", "pppoe").CombinedOutput(); err != nil {
		lacking(t, "modprobe pppoe", string(out))
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	start := func(n *lab.Node, name string, args ...string) {
		t.Helper()
		cmd := n.Command(ctx, name, args...)
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	}
	options := t.TempDir() + "/options"
	if err := os.WriteFile(options, []byte("noauth\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	start(w.far, "pppoe-server", "-F", "-I", w.farDev, "-L", "10.78.0.2", "-R", "10.78.0.1", "-N", "1", "-O", options)
	start(w.here, "pppd", "plugin", "pppoe.so", "nic-"+w.dev, "noauth", "nodetach", "nodefaultroute", "lcp-echo-interval", "0", "maxfail", "0", "holdoff", "1", "persist")
	deadline := time.Now().Add(60 * time.Second)
	for w.here.Command(ctx, "sh", "-c", "ip -4 addr show dev ppp0 | grep -q 10.78.0.1").Run() != nil {
		if time.Now().After(deadline) {
			t.Fatal("no PPPoE session within a minute")
		}
		time.Sleep(200 * time.Millisecond)
	}
	w.ping("10.78.0.1")
	below := w.dev
	w.bothWays(below, "10.78.0.1")
	w.bothWays("ppp0", "10.78.0.1")
}
