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

	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/shaper"
)

// inside is the program in a network namespace, with the real engines.
type inside struct {
	*testing.T
	node *lab.Node
}

func (i inside) run(args ...string) (r result) {
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

// must gives what a command that has to succeed printed.
func (i inside) must(args ...string) result {
	i.Helper()
	r := i.run(args...)
	if r.code != done {
		i.Fatalf("headgate %v: exit %d\n%s%s", args, r.code, r.out, r.err)
	}
	return r
}

// file writes a configuration.
func (i inside) file(text string) string {
	i.Helper()
	path := filepath.Join(i.TempDir(), "headgate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		i.Fatal(err)
	}
	return path
}

// TestPatternLeavesWhatIsOurs: client -- router -- server, whose one device
// "router" has an "in", and so an IFB.
func TestPatternLeavesWhatIsOurs(t *testing.T) {
	server := inside{t, labtest.Rig(t, lab.RigOptions{}).Node("server")}
	f := server.file("kind: Interface\ndev: \"*\"\nin: {limit: 100Mbit, groups: [{name: all, default: true}]}\n")
	server.must("apply", "-f", f)
	if r := server.must("apply", "-f", f); r.out != "router: up to date\n" {
		t.Errorf("a pattern takes in more than the one device:\n%s", r.out)
	}
	server.must("clear", "--dev", "all")
}

// TestSooner: a tcx program that passes all packets itself. It is in nobody's
// way; what it does to the groups is told. client -- router -- server
func TestSooner(t *testing.T) {
	server := inside{t, labtest.Rig(t, lab.RigOptions{}).Node("server")}
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
		return // before Linux 6.6 there is no such hook
	}
	if err != nil {
		t.Fatal(err)
	}
	const groups = "{limit: 100Mbit, groups: [{name: all, default: true}]}\n"
	const warning = `headgate: warning: router: tcx egress program `
	if r := server.must("apply", "-f", server.file("kind: Interface\ndev: router\nin: "+groups)); r.err != "" {
		t.Errorf("a warning where nothing is limited: %s", r.err)
	}
	both := server.file("kind: Interface\ndev: router\nout: " + groups + "in: " + groups)
	if r := server.must("apply", "-f", both); !strings.HasPrefix(r.err, warning) || !strings.Contains(r.err, `(passes) sees packets first`) || !strings.HasSuffix(r.err, "belong to no group of \"out\", and get at most a quarter of its limit, together with control traffic\n") {
		t.Errorf("apply says %q", r.err)
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
		t.Errorf("the group has %d packets, and control %d: what is said of tcx is not so", all, states[0].Out.Control.Packets)
	}
	server.must("clear", "--dev", "router")
}

// TestOffloadsAreShown: what plan says becomes of the device's own settings, show tells, until somebody
// else sets them; gso: keep leaves them as they are. client -- router -- server
func TestOffloadsAreShown(t *testing.T) {
	server := inside{t, labtest.Rig(t, lab.RigOptions{}).Node("server")}
	t.Setenv("HEADGATE_STATE", t.TempDir())
	document := func(more string) string {
		return server.file("kind: Interface\ndev: router\n" + more + "out: {limit: 50Mbit, groups: [{name: all, default: true}]}\nin: {limit: 50Mbit, groups: [{name: all, default: true}]}\n")
	}
	// about are the lines that are about such settings, of what a command says.
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
	step("show, set by somebody else", "show")
	step("apply", "apply", "-f", sized)
	step("show", "show")
	step("apply, gso: keep", "apply", "-f", keep)
	step("show", "show")
	golden(t, "testdata/offloads.txt", says)
	server.must("clear", "--dev", "router")
}

// TestClearAll: what a device left that is gone is taken away, whether or not another
// has groups. client -- router -- server
func TestClearAll(t *testing.T) {
	server := inside{t, labtest.Rig(t, lab.RigOptions{}).Node("server")}
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
			t.Fatal("the IFB went with its device: this test proves nothing")
		}
		r := server.must("clear", "--dev", "all")
		if !strings.Contains(r.out, "removed: the device that it was made for is gone") || strings.Contains(r.out, "router: cleared") == alone {
			t.Errorf("clear says\n%s", r.out)
		}
		if left := ip("-br", "link"); strings.Contains(left, "hgi") {
			t.Errorf("clear left\n%s", left)
		}
	}
	if r := server.must("clear", "--dev", "all"); r.out != "no device has bandwidth groups\n" {
		t.Errorf("once more: %s", r.out)
	}
	if r := server.run("clear", "--dev", "router@if7"); r.code != failed || !strings.Contains(r.err, "write router") {
		t.Errorf("with what \"ip link\" prints: %d %s", r.code, r.err)
	}
}
