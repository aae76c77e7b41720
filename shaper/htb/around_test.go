package htb

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	vnl "github.com/vishvananda/netlink/nl"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// nft loads a ruleset on the server, and returns false if the kernel does not support it.
func (r *upgradeRig) nft(ruleset string) bool {
	r.Helper()
	cmd := r.server.Command(r.Context(), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(ruleset)
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "not supported") || strings.Contains(string(out), "No such file or directory") {
			return lacking(r, ruleset, string(out))
		}
		r.Fatalf("nft %s: %v\n%s", ruleset, err, out)
	}
	return true
}

// genericXDP attaches a program in generic mode that passes and counts all packets, and returns
// a function that reads the count.
func (r *upgradeRig) genericXDP() (count func() uint64) {
	r.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { m.Close() })
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "count", Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.LoadMapPtr(asm.R1, m.FD()), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4), asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "out"),
			asm.Mov.Imm(asm.R1, 1), asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R0, 2).WithSymbol("out"), asm.Return(), // XDP_PASS
		},
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { p.Close() })
	r.do(func() error {
		l, err := netlink.LinkByName(shaped)
		if err != nil {
			return err
		}
		return netlink.LinkSetXdpFdWithFlags(l, p.FD(), vnl.XDP_FLAGS_SKB_MODE)
	})
	return func() (n uint64) {
		if err := m.Lookup(uint32(0), &n); err != nil {
			r.Fatal(err)
		}
		return n
	}
}

// TestAroundIsRefused: objects that packets from the IFB would skip or pass twice, and objects
// that keep packets from the IFB, are rejected by name for the direction that uses ingress:
// "in" of a host and "out" of a guest. "out" of a host redirects nothing.
func TestAroundIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		put   func(r *upgradeRig) bool
		take  []string
		words string
	}{
		{"generic XDP", func(r *upgradeRig) bool { r.genericXDP(); return true }, []string{"ip", "link", "set", shaped, "xdpgeneric", "off"}, "in generic mode"},
		{"chain with the same priority", func(r *upgradeRig) bool {
			return r.nft("table netdev fw {\n chain pre { type filter hook ingress device " + shaped + " priority 2147483647; }\n}\n")
		}, []string{"nft", "delete", "table", "netdev", "fw"}, "nftables ingress chain netdev fw pre priority 2147483647"},
		{"flowtable", func(r *upgradeRig) bool {
			return r.nft("table ip fw {\n flowtable fast { hook ingress priority 0; devices = { " + shaped + " }; }\n}\n")
		}, []string{"nft", "delete", "table", "ip", "fw"}, "nftables flowtable ip fw fast"},
		{"later filter", func(r *upgradeRig) bool {
			labtest.Run(r, r.server, "tc", "qdisc", "add", "dev", shaped, "clsact")
			labtest.Run(r, r.server, "tc", strings.Fields("filter add dev "+shaped+" ingress pref 9 protocol ip u32 match ip protocol 1 0xff action mirred egress redirect dev lo")...)
			return true
		}, []string{"tc", "qdisc", "del", "dev", shaped, "clsact"}, "ingress filter u32 pref 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newUpgradeRig(t)
			tree := fourGroups(t, 100*unit.Mbit)
			in := shaper.Plan{Dev: shaped, Perspective: group.Host, In: tree}
			guest := shaper.Plan{Dev: shaped, Perspective: group.Guest, Out: tree}
			refused := func(when string, p shaper.Plan) {
				t.Helper()
				_ = r.server.Do(func() error {
					_, err := r.engine.Diff(p)
					_, again := r.engine.Apply(p)
					for _, err := range []error{err, again} {
						if !errors.Is(err, shaper.ErrForeign) || !strings.Contains(err.Error(), c.words) || !strings.Contains(err.Error(), shaped) {
							t.Errorf("%s: %v", when, err)
						}
					}
					return nil
				})
			}
			if !c.put(r) {
				return
			}
			refused("in of a host", in)
			refused("out of a guest", guest)
			r.apply(shaper.Plan{Dev: shaped, Perspective: group.Host, Out: tree})
			r.do(func() error { return r.engine.Clear(shaped) })
			labtest.Run(t, r.server, c.take[0], c.take[1:]...)

			// An object that is added later changes nothing in force, and is reported.
			r.apply(in)
			if st := r.observe(); len(st.Foreign) > 0 {
				t.Errorf("Observe reports %q without foreign objects", st.Foreign)
			}
			if c.name == "later filter" {
				labtest.Run(r, r.server, "tc", strings.Fields("filter add dev "+shaped+" ingress pref 9 protocol ip u32 match ip protocol 1 0xff action mirred egress redirect dev lo")...)
			} else {
				c.put(r)
			}
			if st := r.observe(); !strings.Contains(fmt.Sprint(st.Foreign), c.words) || st.In == nil {
				t.Errorf("Observe reports %q", st.Foreign)
			}
			refused("in of a host again", in)
			r.passes("with the state in force")
		})
	}
}
