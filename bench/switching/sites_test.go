package switching

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
)

// Each site carries the ring through the switch for which it is named.
//
//	vm1 ─┐
//	vm2 ─┼─ host       (no switch: vm1 ─ vm2 ─ pm ─ vm1)
//	pm  ─┘
func TestSitesCarryTheRing(t *testing.T) {
	for _, s := range sites {
		t.Run(s.id, func(t *testing.T) {
			labtest.NeedRoot(t)
			t.Setenv("TMPDIR", t.TempDir())
			topology := s.topology()
			l := labtest.Up(t, topology)
			if s.build != nil {
				b, err := s.build(t.Context(), l)
				if b != nil {
					t.Cleanup(func() {
						if err := b.close(); err != nil {
							t.Error(err)
						}
					})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			labtest.Try(t, func(t *labtest.Check) {
				found, err := ring{mbit: 10, seconds: 1, addr: s.addr(topology)}.run(t.Context(), l)
				if err != nil {
					t.Fatal(err)
				}
				for i, hop := range hops {
					// 10 Mbit/s is 153 datagrams in a second; a fifth may be late.
					if v := found.mbit[i][0]; v < 8 || v > 11 {
						t.Errorf("%v: %v Mbit/s of 10 were received", hop, v)
					}
				}
				if v := found.busy[0]; v <= 0 {
					t.Errorf("the processors were busy for %v %%", v)
				}
			})
			if s.joined {
				passed(t, l, s)
			}
		})
	}
}

// passed checks that the host's devices sent the ring, through the switch for which the site is named.
func passed(t *testing.T, l *lab.Lab, s site) {
	t.Helper()
	err := l.Node(host).Do(func() error {
		_, err := netlink.LinkByName(bridgeName)
		if made := err == nil; made != (s.build != nil) {
			return fmt.Errorf("%s exists: %v", bridgeName, made)
		}
		for _, m := range machines {
			link, err := netlink.LinkByName(m)
			if err != nil {
				return err
			}
			// 150 datagrams of six fragments each, at least.
			if sent := link.Attrs().Statistics.TxPackets; sent < 700 {
				return fmt.Errorf("the host sent %d packets to %s", sent, m)
			}
			isPort := link.Attrs().MasterIndex != 0
			if want := strings.HasPrefix(s.name, "Linux bridge") || s.id == "groups"; isPort != want {
				return fmt.Errorf("%s is a port of a bridge of the kernel's: %v", m, isPort)
			}
			if s.id != "groups" {
				continue
			}
			state, err := htb.New().Observe(m)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(hops[:], func(h [2]string) bool { return h[1] == m })
			if got := bytesOf(state.Out.Groups, hops[i][0]+"-"+m); got < 1e6 {
				return fmt.Errorf("on %s the hop's group has %d bytes", m, got)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func bytesOf(groups []shaper.GroupState, path string) uint64 {
	for _, g := range groups {
		if g.Path == path {
			return g.Bytes
		}
	}
	return 0
}

// An interrupted bench leaves no process, no file and no namespace of Open vSwitch.
func TestInterruptedLeavesNothing(t *testing.T) {
	labtest.NeedRoot(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	b := Bench(bench.NewDraw(1))
	// While it is created, and while the ring runs.
	for _, after := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		began := time.Now()
		r, err := b.Run(ctx, bench.Options{Only: []string{"survey/open-vswitch/5Mbit"}, Environment: &bench.Environment{}})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Short()) != measures || !strings.Contains(r.Claims[0].Missing, "interrupted") {
			t.Errorf("after %v: %d claims are missing, %q", after, len(r.Short()), r.Claims[0].Missing)
		}
		// It would have taken 10 s.
		if took := time.Since(began); took > after+7*time.Second {
			t.Errorf("interrupted after %v, but it ran until %v", after, took)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("after %v these files are left: %q", after, left)
		}
		if left := programsIn(dir); len(left) > 0 {
			t.Errorf("after %v these processes run: %q", after, left)
		}
		if left, _ := filepath.Glob(fmt.Sprintf("/run/netns/hg-bench-%d*", os.Getpid())); len(left) > 0 {
			t.Errorf("after %v these namespaces are left: %q", after, left)
		}
	}
}

// programsIn returns the command lines of processes that name the folder.
func programsIn(dir string) (out []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), dir) {
			out = append(out, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return out
}

// The output of a program that exits at once is in the error, and there is no wait.
func TestProgramThatDoesNotStart(t *testing.T) {
	labtest.NeedRoot(t)
	l := labtest.Up(t, sites[0].topology())
	o := &ovs{dir: t.TempDir(), host: l.Node(host)}
	err := o.run(t.Context(), o.path("db.sock"), "ovsdb-server", o.path("no-such.db"), "--remote=p"+o.remote())
	if err == nil || !strings.Contains(err.Error(), "no-such.db") {
		t.Errorf("%v", err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(o.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
}
