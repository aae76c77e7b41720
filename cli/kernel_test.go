package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"headgate.dev/headgate/internal/golden"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
)

// nodeProgram runs the program in a network namespace, with the real engines.
type nodeProgram struct {
	*testing.T
	node *lab.Node
}

func (i nodeProgram) run(args ...string) (r result) {
	i.Helper()
	var out, errs bytes.Buffer
	err := i.node.Do(func() error {
		r.code = Run(args, strings.NewReader(""), &out, &errs)
		return nil
	})
	if err != nil {
		i.Fatal(err)
	}
	r.out, r.err = out.String(), errs.String()
	return r
}

// must runs a command, fails the test if the exit code is not 0, and returns the output.
func (i nodeProgram) must(args ...string) result {
	i.Helper()
	r := i.run(args...)
	if r.code != exitOK {
		i.Fatalf("headgate %v: exit %d\n%s%s", args, r.code, r.out, r.err)
	}
	return r
}

// file writes a configuration.
func (i nodeProgram) file(text string) string {
	i.Helper()
	path := filepath.Join(i.TempDir(), "headgate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		i.Fatal(err)
	}
	return path
}

// TestPatternExcludesOwnDevices checks that a device pattern does not match Headgate's own IFB.
// Topology: client -- router -- server. The server has one device, "router", with an "in", and
// so an IFB.
func TestPatternExcludesOwnDevices(t *testing.T) {
	server := nodeProgram{t, labtest.Rig(t, lab.RigOptions{}).Node("server")}
	f := server.file("kind: Interface\ndev: \"*\"\nin: {limit: 100Mbit, groups: [{name: all, default: true}]}\n")
	server.must("apply", "-f", f)
	if r := server.must("apply", "-f", f); r.out != "router: up to date\n" {
		t.Errorf("the pattern matches more than one device:\n%s", r.out)
	}
	server.must("clear", "--dev", "all")
}

// TestForeignTCXProgram attaches a foreign tcx program that accepts all packets, so that the classifier never
// runs. The program is not an error; apply, show, doctor and top warn about its effect on the
// groups. Topology: client -- router -- server
func TestForeignTCXProgram(t *testing.T) {
	server := nodeProgram{t, labtest.Rig(t, lab.RigOptions{}).Node("server")}
	pass, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "passes", Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}, // TCX_PASS
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Close()
	err = server.node.Do(func() error {
		dev, err := net.InterfaceByName("router")
		if err != nil {
			return err
		}
		l, err := link.AttachTCX(link.TCXOptions{Interface: dev.Index, Program: pass, Attach: ebpf.AttachTCXEgress})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
	if errors.Is(err, ebpf.ErrNotSupported) {
		return // tcx needs Linux 6.6
	}
	if err != nil {
		t.Fatal(err)
	}
	const groups = "{limit: 100Mbit, groups: [{name: all, default: true}]}\n"
	const warning = `headgate: warning: router: tcx egress program `
	if r := server.must("apply", "-f", server.file("kind: Interface\ndev: router\nin: "+groups)); r.err != "" {
		t.Errorf("a warning without a limit in that direction: %s", r.err)
	}
	both := server.file("kind: Interface\ndev: router\nout: " + groups + "in: " + groups)
	if r := server.must("apply", "-f", both); !strings.HasPrefix(r.err, warning) || !strings.Contains(r.err, `(passes) runs before Headgate's classifier`) || !strings.HasSuffix(r.err, "are in no group of \"out\", and share at most a quarter of its limit with control traffic\n") {
		t.Errorf("apply prints %q", r.err)
	}
	for _, command := range []string{"show", "doctor router", "top --once --interval 100ms"} {
		if r := server.must(strings.Fields(command)...); strings.Count(r.out, "(passes)") != 1 {
			t.Errorf("headgate %s does not name the program once:\n%s", command, r.out)
		}
	}
	_ = server.node.Command(t.Context(), "ping", "-c3", "-i0.1", "-W1", "10.0.0.1").Run()
	var states []shaper.State
	if err := json.Unmarshal([]byte(server.must("show", "-o", "json").out), &states); err != nil {
		t.Fatal(err)
	}
	if all := states[0].Out.Groups[0].Packets; all != 0 || states[0].Out.Control.Packets == 0 {
		t.Errorf("the group has %d packets, and control %d: the warning about tcx is wrong", all, states[0].Out.Control.Packets)
	}
	server.must("clear", "--dev", "router")
}

// TestOffloadsAreShown checks plan, apply and show of the device's GSO sizes: with the default, with
// gso: keep, and after another program changed them. Topology: client -- router -- server
func TestOffloadsAreShown(t *testing.T) {
	server := nodeProgram{t, labtest.Rig(t, lab.RigOptions{}).Node("server")}
	t.Setenv("HEADGATE_STATE", t.TempDir())
	document := func(more string) string {
		return server.file("kind: Interface\ndev: router\n" + more + "out: {limit: 50Mbit, groups: [{name: all, default: true}]}\nin: {limit: 50Mbit, groups: [{name: all, default: true}]}\n")
	}
	// about returns the lines of a command's output that contain GSO sizes.
	about := func(args ...string) string {
		t.Helper()
		text := ""
		for line := range strings.Lines(server.must(args...).out) {
			if strings.Contains(line, "max_size") {
				text += line
			}
		}
		return text
	}
	says := ""
	step := func(what string, args ...string) {
		t.Helper()
		says += what + "\n" + about(args...)
	}
	keep, sized := document("gso: keep\n"), document("")
	step("plan, gso: keep", "plan", "-f", keep)
	step("apply, gso: keep", "apply", "-f", keep)
	step("show", "show")
	step("plan", "plan", "-f", sized)
	step("apply", "apply", "-f", sized)
	step("show", "show")
	step("show -o json", "show", "-o", "json")
	labtest.Run(t, server.node, "ip", "link", "set", "router", "gso_max_size", "20000")
	step("show, set by another program", "show")
	step("apply", "apply", "-f", sized)
	step("show", "show")
	step("apply, gso: keep", "apply", "-f", keep)
	step("show", "show")
	golden.Compare(t, "testdata/offloads.txt", says)
	server.must("clear", "--dev", "router")
}

// TestClearAll checks that clear removes the IFB of a deleted device, with and without groups on
// another device. Topology: client -- router -- server
func TestClearAll(t *testing.T) {
	server := nodeProgram{t, labtest.Rig(t, lab.RigOptions{}).Node("server")}
	ip := func(args ...string) string { t.Helper(); return labtest.Run(t, server.node, "ip", args...) }
	in := func(dev string) string {
		return server.file("kind: Interface\ndev: " + dev + "\nin: {limit: 100Mbit, groups: [{name: all, default: true}]}\n")
	}
	for _, alone := range []bool{true, false} {
		ip("link", "add", "gone", "type", "veth", "peer", "name", "far")
		server.must("apply", "-f", in("gone"))
		if !alone {
			server.must("apply", "-f", in("router"))
		}
		ip("link", "del", "gone")
		if !strings.Contains(ip("-br", "link"), "hgi") {
			t.Fatal("the kernel removed the IFB with its device: this test has no effect")
		}
		r := server.must("clear", "--dev", "all")
		if !strings.Contains(r.out, "removed: its device no longer exists") || strings.Contains(r.out, "router: cleared") == alone {
			t.Errorf("clear prints\n%s", r.out)
		}
		if left := ip("-br", "link"); strings.Contains(left, "hgi") {
			t.Errorf("clear left\n%s", left)
		}
	}
	if r := server.must("clear", "--dev", "all"); r.out != "no device has bandwidth groups\n" {
		t.Errorf("the second clear: %s", r.out)
	}
	if r := server.run("clear", "--dev", "router@if7"); r.code != exitFailed || !strings.Contains(r.err, "write router") {
		t.Errorf("with a name as \"ip link\" prints it: %d %s", r.code, r.err)
	}
}
