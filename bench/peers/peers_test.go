package peers_test

import (
	"os/exec"
	"strings"
	"testing"

	"headgate.dev/headgate/bench/peers"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

func tree(t *testing.T) *group.Tree {
	d := group.Direction{Limit: 100 * unit.Mbit, Groups: []group.Group{
		{Name: "a", Guarantee: group.Amount{Share: 100_000}, Match: []group.Selector{{DPort: []group.PortRange{{First: 5001, Last: 5001}}}}},
		{Name: "b", Guarantee: group.Amount{Share: 400_000}, Default: true},
	}}
	tree, problems := d.Resolve("out", true)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &tree
}

// Every peer sets up what its name says, and removes everything.
//
//	client ── router ── server: the device "router" of the server is limited
func TestApplyAndClear(t *testing.T) {
	l, err := lab.Up(t.Context(), lab.Rig(lab.RigOptions{Name: lab.UniqueName("peers")}))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	show := func() (text string) {
		_ = l.Node("server").Do(func() error {
			for _, cmd := range []string{"tc qdisc show", "tc class show dev router", "tc filter show dev router egress", "ip -o link show"} {
				words := strings.Fields(cmd)
				out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v: %s", cmd, err, out)
				}
				text += string(out)
			}
			return nil
		})
		return text
	}
	before := show()
	for name, c := range map[string]struct {
		peer peers.Limiter
		in   bool
		says []string
	}{
		"HTB":     {peers.HTB{Leaf: 250_000}, true, []string{"htb 1: dev router root", "htb 1: dev peerifb root", "limit 250000b", "rate 40Mbit ceil 100Mbit"}},
		"cutting": {peers.HTB{Leaf: 250_000, Cut: true}, true, []string{"htb 1: dev peerifb root", "burst 1600b"}},
		"plain":   {peers.Plain(), true, []string{"tbf 1: dev router root", "tbf 1: dev peerifb root", "burst 125000b"}},
		"CNI":     {peers.CNI(), true, []string{"burst 128Kb"}},
		"policer": {peers.Policer{Burst: 128 << 10}, false, []string{"policer"}},
	} {
		p := shaper.Plan{Dev: "router", Perspective: group.Host, Out: tree(t)}
		if c.in {
			p.In = p.Out
		}
		if err := l.Node("server").Do(func() error { return c.peer.Apply(p) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		now := show()
		for _, want := range c.says {
			if !strings.Contains(now, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, now)
			}
		}
		if err := l.Node("server").Do(func() error { return c.peer.Clear("router") }); err != nil {
			t.Errorf("%s: clear: %v", name, err)
		}
		if after := show(); after != before {
			t.Errorf("%s left\n%s\nwant\n%s", name, after, before)
		}
	}
}

// The kernel's policer is one filter in each direction, if the kernel has it.
func TestPolice(t *testing.T) {
	l, err := lab.Up(t.Context(), lab.Rig(lab.RigOptions{Name: lab.UniqueName("peers")}))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := shaper.Plan{Dev: "router", Perspective: group.Host, Out: tree(t), In: tree(t)}
	var lacks error
	err = l.Node("server").Do(func() error {
		peer := peers.Police{Rate: unit.Mbit, Burst: 32 << 10, SMAC: 0x77}
		defer peer.Clear(p.Dev)
		if lacks = peer.Apply(p); lacks != nil {
			return nil
		}
		for _, hook := range []string{"ingress", "egress"} {
			out, err := exec.Command("tc", "filter", "show", "dev", p.Dev, hook).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "police") {
				t.Errorf("%s: %v, %s", hook, err, out)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lacks != nil {
		if !strings.Contains(lacks.Error(), "action") {
			t.Errorf("a kernel without a policer returns only %q", lacks)
		}
	}
}
