package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
)

// TestMarksAtIngress checks which programs can mark received packets before classification. The
// warnings about rules with marks under "in" (package placement, docs/where.md) depend on the result.
//
//	there ── here, which has a veth pair va ── vb in itself
func TestMarksAtIngress(t *testing.T) {
	l := labtest.Up(t, &lab.Topology{Nodes: []lab.NodeSpec{{Name: "here"}, {Name: "there"}}, Links: []lab.LinkSpec{{Ends: [2]string{"here", "there"}}}})
	here, there := nodeProgram{t, l.Node("here")}, l.Node("there")
	t.Setenv("HEADGATE_STATE", t.TempDir())
	addr, err := here.node.Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	document := func(dev string) string {
		return here.file("kind: Interface\ndev: " + dev + "\nin: {limit: 100Mbit, groups: [{name: marked, match: [{mark: 7, proto: icmp}]}, {name: rest, match: [{proto: icmp}]}, {name: others, default: true}]}\n")
	}
	counted := func(dev string) (marked, all uint64) {
		var states []shaper.State
		if err := json.Unmarshal([]byte(here.must("show", "--dev", dev, "-o", "json").out), &states); err != nil {
			t.Fatal(err)
		}
		return states[0].In.Groups[0].Packets, states[0].In.Groups[0].Packets + states[0].In.Groups[1].Packets
	}
	check := func(what, dev string, want bool, send func()) {
		t.Helper()
		before, beforeAll := counted(dev)
		send()
		after, afterAll := counted(dev)
		if afterAll == beforeAll || want && after-before != 3 || !want && after != before {
			t.Errorf("%s: %d of %d packets had the mark; want the 3 that were sent: %v", what, after-before, afterAll-beforeAll, want)
		}
	}
	ping := func(from *lab.Node, to string) func() {
		return func() { _ = from.Command(t.Context(), "ping", "-m7", "-c3", "-i0.05", "-W1", "-q", to).Run() }
	}
	here.must("apply", "-f", document("there"))
	check("a sender in another namespace", "there", false, ping(there, addr.String()))
	if _, err := exec.LookPath("nft"); err == nil {
		for hook, family := range map[string]string{"ingress device there priority -500": "netdev", "prerouting priority raw": "inet"} {
			labtest.Run(t, here.node, "nft", "add table "+family+" t")
			labtest.Run(t, here.node, "nft", "add chain "+family+" t c { type filter hook "+hook+"; }")
			labtest.Run(t, here.node, "nft", "add rule "+family+" t c meta mark set 7")
			check("nftables' "+hook, "there", false, ping(there, addr.String()))
			labtest.Run(t, here.node, "nft", "flush ruleset")
		}
	}
	mark, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "marks", Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.StoreImm(asm.R1, 8, 7, asm.Word),  // skb->mark
		asm.Mov.Imm(asm.R0, -1), asm.Return(), // TCX_NEXT
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer mark.Close()
	var attached link.Link
	err = here.node.Do(func() error {
		dev, err := net.InterfaceByName("there")
		if err == nil {
			attached, err = link.AttachTCX(link.TCXOptions{Interface: dev.Index, Program: mark, Attach: ebpf.AttachTCXIngress})
		}
		return err
	})
	if err == nil {
		check("a program on the tcx ingress hook", "there", true, ping(there, addr.String()))
		attached.Close()
	} else if !errors.Is(err, ebpf.ErrNotSupported) { // tcx needs Linux 6.6
		t.Fatal(err)
	}
	labtest.Run(t, here.node, "sh", "-ec", `ip link add va type veth peer name vb; ip link set va up; ip link set vb up; ip link set lo up
		ip addr add 10.77.0.1/24 dev va; ip neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev va`)
	here.must("apply", "-f", document("vb"))
	check("a sender in this namespace, over a veth", "vb", true, ping(here.node, "10.77.0.9"))
	here.must("apply", "-f", document("lo"))
	check("a sender over lo", "lo", true, ping(here.node, "127.0.0.1"))
	if _, err := exec.LookPath("nft"); err == nil {
		here.must("clear", "--dev", "there")
		labtest.Run(t, here.node, "sh", "-ec", fmt.Sprintf(`ip link add name br0 type bridge; ip link set br0 up; ip link set there master br0; ip addr flush dev there; ip addr add %s/24 dev br0`, addr))
		labtest.Run(t, here.node, "nft", "add table netdev t")
		labtest.Run(t, here.node, "nft", "add chain netdev t c { type filter hook ingress device there priority -500; }")
		labtest.Run(t, here.node, "nft", "add rule netdev t c ip protocol icmp meta mark set 7")
		here.must("apply", "-f", document("br0"))
		check("nftables' ingress of a bridge's port", "br0", true, ping(there, addr.String()))
	}
	here.must("clear", "--dev", "all")
}

// TestPlacementWarnings checks that check, plan and explain warn about rules that likely match no packets, with
// the line, and do not warn about other rules.
func TestPlacementWarnings(t *testing.T) {
	l := labtest.Up(t, &lab.Topology{Nodes: []lab.NodeSpec{{Name: "here"}, {Name: "wan"}}, Links: []lab.LinkSpec{{Ends: [2]string{"here", "wan"}}}})
	here := nodeProgram{t, l.Node("here")}
	t.Setenv("HEADGATE_STATE", t.TempDir())
	labtest.Run(t, here.node, "sh", "-ec", `ip link set lo up
		for b in br0 br1; do ip link add $b type bridge; ip link set $b up; ip link add p$b type veth peer name q$b; ip link set p$b master $b; done; ip addr add 192.168.7.1/24 dev br1`)
	if _, err := exec.LookPath("nft"); err == nil {
		labtest.Run(t, here.node, "nft", "add table ip nat")
		labtest.Run(t, here.node, "nft", "add chain ip nat postrouting { type nat hook postrouting priority srcnat; }")
		labtest.Run(t, here.node, "nft", `add rule ip nat postrouting oifname "wan" masquerade`)
	}
	const groups = "  limit: 10Mbit\n  groups:\n    - {name: web, match: [%s]}\n    - {name: rest, default: true}\n"
	for _, c := range []struct{ dev, more, direction, rule, want string }{
		{"wan", "", "in", "{mark: 7}", "in.groups[0].match[0].mark: warning: received packets"},
		{"wan", "", "in", "{proto: tcp}, {not: {mark: 0x4000/0xff00}}, {mark: 1}", "in.groups[0].match[1].not.mark: warning: received packets"},
		{"wan", "", "in", "{mark: 7}, {mark: 8}", "(applies to 2 rules)"},
		{"wan", "perspective: guest\n", "out", "{mark: 7}", "out.groups[0].match[0].mark: warning: received packets"},
		{"wan", "", "out", "{mark: 7}", ""}, {"wan", "perspective: guest\n", "in", "{mark: 7}", ""},
		{"lo", "", "in", "{mark: 7}", ""},
		{"br1", "", "in", "{mark: 7}", "only if it was set earlier"},
		{"br0", "", "out", "{proto: tcp}", "dev: warning: br0 is a bridge on which this machine has no address: traffic between its ports (pbr0) does not pass through it"},
		{"br1", "", "out", "{proto: tcp}", "dev: warning: br1 is a bridge: traffic between its ports (pbr1) does not pass through it, only traffic that this machine"},
		{"pbr0", "", "out", "{proto: tcp}", ""},
		{"wan", "", "out", "{proto: tcp, src: 192.168.7.0/24}", "out.groups[0].match[0].src: warning: egress packets of wan already have its address 10."},
		{"wan", "", "in", "{dst: 192.168.7.5}", "in.groups[0].match[0].dst: warning: ingress packets of wan still have its address 10."},
		{"wan", "", "out", "{src: 0.0.0.0/0}, {src: fd00::/8}, {dst: 192.168.7.0/24}", ""},
		{"br1", "", "out", "{src: 192.168.8.0/24, proto: tcp}", "br1 is a bridge"},
	} {
		if _, err := exec.LookPath("nft"); err != nil && strings.Contains(c.want, "its address") {
			continue
		}
		f := here.file("kind: Interface\ndev: " + c.dev + "\n" + c.more + c.direction + ":\n" + fmt.Sprintf(groups, c.rule))
		for _, command := range [][]string{{"check", "-f", f}, {"plan", "-f", f}, {"explain", "--packet", "arp", "--dev", c.dev, "-f", f}} {
			r := here.must(command...)
			warnings := 0
			for _, line := range strings.Split(r.err, "\n") {
				if strings.Contains(line, ": warning: ") && strings.HasPrefix(line, f+":") {
					warnings++
				}
			}
			if c.want == "" && warnings > 0 || c.want != "" && (warnings == 0 || !strings.Contains(r.err, c.want)) || strings.Contains(c.want, "address") && warnings != 1 {
				t.Errorf("%s of %s %s %s prints %q, want %q", command[0], c.dev, c.direction, c.rule, r.err, c.want)
			}
		}
	}
	f := here.file("kind: Interface\ndev: wan\nin:\n" + fmt.Sprintf(groups, "{mark: 7}"))
	if r := here.must("check", "--offline", "-f", f); !strings.Contains(r.err, f+":6: in.groups[0].match[0].mark: warning: ") {
		t.Errorf("check for another machine prints %q", r.err)
	}
	here.must("apply", "-f", f)
	if r := here.must("explain", "--dev", "wan", "--packet", "tcp 10.0.0.1:1 10.0.0.2:2 mark 7"); !strings.Contains(r.out, "group web") || !strings.Contains(r.out, "note: received packets have no mark at this point") {
		t.Errorf("explain prints %q", r.out)
	}
	here.must("clear", "--dev", "wan")

}
