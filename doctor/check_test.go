package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/unit"
)

func TestConclude(t *testing.T) {
	check := func(s State, needed bool) Check { return Check{State: s, Needed: needed} }
	for _, c := range []struct {
		what          string
		checks        []Check
		ok, forbidden bool
	}{
		{"no checks", nil, true, false},
		{"checks that are not needed fail", []Check{check(OK, true), check(Missing, false), check(Unknown, false), check(Limited, true)}, true, false},
		{"a needed check is missing", []Check{check(OK, true), check(Missing, true)}, false, false},
		{"a needed check is unknown", []Check{check(Unknown, true), check(OK, true)}, false, true},
	} {
		r := Report{Checks: c.checks}
		r.conclude()
		if r.OK != c.ok || r.NotPermitted != c.forbidden {
			t.Errorf("%s: ok %v, forbidden %v", c.what, r.OK, r.NotPermitted)
		}
	}
}

func TestCheckOf(t *testing.T) {
	for _, c := range []struct {
		err    error
		state  State
		means  string
		remedy string
	}{
		{nil, OK, "gain", ""},
		{errors.New("no such thing"), Missing, "loss", "remedy"},
		{fmt.Errorf("load: %w", syscall.EPERM), Unknown, "gain", "run doctor as root"},
		{&os.PathError{Err: syscall.EACCES}, Unknown, "gain", "run doctor as root"},
	} {
		got := checkOf("it", c.err, "gain", "loss", "remedy")
		if got.State != c.state || got.Meaning != c.means || got.Remedy != c.remedy {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
	if c := checkOf("it", errors.New("no"), "", "", "").onlyLimits(); c.State != Limited {
		t.Errorf("state of a failed attempt that only limits: %s", c.State)
	}
	if c := checkOf("it", syscall.EPERM, "", "", "").onlyLimits(); c.State != Unknown {
		t.Errorf("state of a forbidden attempt: %s", c.State)
	}
}

func TestOlderThan(t *testing.T) {
	for release, want := range map[string]bool{
		"5.15.0": false, "5.14.21-150500.55-default": true, "4.19.0-27-amd64": true, "6.1.0-13-amd64": false,
		"6.18.44-fc-v669": false, "10.0": false, "5.15-rc1": false, "": true, "five": true,
	} {
		if olderThan(release, 5, 15) != want {
			t.Errorf("%q older than 5.15: %v", release, !want)
		}
	}
}

func TestEffective(t *testing.T) {
	if got := effective("Name:\tx\nCapInh:\t0000000000000001\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n"); got != 0x1ffffffffff {
		t.Errorf("%x", got)
	}
	if got := effective("Name: x"); got != 0 {
		t.Errorf("without CapEff: %x", got)
	}
}

func TestJIT(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bpf_jit_enable")
	for text, want := range map[string]State{"1\n": OK, "2\n": OK, "0\n": Limited} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := jit(file); c.State != want || (c.State == OK) != (c.Remedy == "") {
			t.Errorf("bpf_jit_enable %q: %+v", text, c)
		}
	}
	if c := jit(file + ".no"); c.State != OK {
		t.Errorf("without bpf_jit_enable: %+v", c)
	}
}

func TestCongestion(t *testing.T) {
	for list, remedy := range map[string]string{"reno cubic bbr": "", "reno cubic": "modprobe tcp_bbr", "reno": "modprobe tcp_cubic tcp_bbr"} {
		if c := congestion(list, nil); c.Remedy != remedy || c.Found != list || (c.State == OK) != (remedy == "") {
			t.Errorf("%q: %+v", list, c)
		}
	}
}

func TestModulesThatTheTrialLoaded(t *testing.T) {
	before := modules{"ext4", "veth", "sch_htb"}
	now := modules{"ext4", "veth", "sch_htb", "ifb", "sch_tbf", "nf_tables"}
	if got := before.added(now); !slices.Equal(got, []string{"sch_tbf", "ifb"}) {
		t.Errorf("unloads %v, want the new modules that the trial may have loaded", got)
	}
	if got := modules(trialModules).added(now); len(got) > 0 {
		t.Errorf("without a list of modules, unloads %v", got)
	}
}

func TestQueues(t *testing.T) {
	t8 := &ethtool{dev: "none", socket: -1}
	link := func(n int) netlink.Link {
		return &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "none", NumTxQueues: n}}
	}
	for _, c := range []struct {
		queues   int
		measured *Ceiling
		state    State
		means    []string
	}{
		{1, nil, OK, []string{"one queue and one lock", "--measure"}},
		{8, nil, Limited, []string{"all 8 share one HTB and its lock", "0.4 million packets", "--measure"}},
		{8, &Ceiling{PacketsPerSecond: 1.5e6, Bandwidth: 40 * unit.Gbit}, Limited, []string{"1.5 million packets or 40 Gbit per second, as measured"}},
	} {
		got := queues(link(c.queues), t8, c.measured)
		if got.State != c.state {
			t.Errorf("%d queues: %+v", c.queues, got)
		}
		for _, means := range c.means {
			if !strings.Contains(got.Meaning, means) {
				t.Errorf("%d queues: %q lacks %q", c.queues, got.Meaning, means)
			}
		}
	}
}

// A network card that is bound to a pass-through driver is reported; other devices of the
// same driver are not.
func TestBypassed(t *testing.T) {
	drivers := t.TempDir()
	for path, class := range map[string]string{
		"vfio-pci/0000:05:00.0": "0x020000", "vfio-pci/0000:06:00.0": "0x030000", "ixgbe/0000:07:00.0": "0x020000", "igb_uio/0000:04:00.1": "0x020000",
	} {
		dir := filepath.Join(drivers, path)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "class"), []byte(class+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if c := passedThroughCards(drivers); c.State != Limited || c.Found != "0000:04:00.1 (igb_uio), 0000:05:00.0 (vfio-pci)" {
		t.Errorf("%+v", c)
	}
	if c := passedThroughCards(t.TempDir()); c.State != OK {
		t.Errorf("without such cards: %+v", c)
	}
}

// Virtual functions of a device are reported.
func TestVirtualFunctions(t *testing.T) {
	l := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "eth0", Index: -1, Vfs: make([]netlink.VfInfo, 3)}}
	if c := bypasses(l); len(c) != 1 || c[0].Name != "SR-IOV" || c[0].Found != "3 virtual functions" {
		t.Errorf("%+v", c)
	}
	l.Vfs = nil
	if c := bypasses(l); len(c) != 0 {
		t.Errorf("without virtual functions: %+v", c)
	}
}
