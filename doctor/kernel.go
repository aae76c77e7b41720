package doctor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/nl"
)

// The oldest kernel that the eBPF programs and netlink requests support.
const needMajor, needMinor = 5, 15

func kernelVersion() Check {
	c := Check{About: Machine, Name: "kernel", Needed: true, Meaning: fmt.Sprintf("groups need %d.%d or newer", needMajor, needMinor)}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		c.State, c.Found = Unknown, err.Error()
		return c
	}
	c.Found = unix.ByteSliceToString(u.Release[:])
	if olderThan(c.Found, needMajor, needMinor) {
		c.State, c.Remedy = Missing, fmt.Sprintf("install a kernel of %d.%d or newer", needMajor, needMinor)
		return c
	}
	c.State = OK
	return c
}

// olderThan reports whether a release, such as "5.10.0-8-amd64", is older than a version.
func olderThan(release string, major, minor int) bool {
	parts := strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	number := func(i int) int {
		if i >= len(parts) {
			return 0
		}
		n, _ := strconv.Atoi(parts[i]) // only digits: fails only if the number is out of range
		return n
	}
	return number(0) < major || number(0) == major && number(1) < minor
}

// wantCaps has the capabilities that Headgate needs.
var wantCaps = []struct {
	number int
	name   string
	what   string
}{
	{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", "is needed to create qdiscs, filters and devices"},
	{unix.CAP_BPF, "CAP_BPF", "is needed to load eBPF programs"},
	{unix.CAP_PERFMON, "CAP_PERFMON", "is needed to measure queues"},
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "is needed to read the state in force"},
}

func capabilities() Check {
	c := Check{About: Machine, Name: "capabilities", State: OK, Needed: true}
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		c.State, c.Found = Unknown, err.Error()
		return c
	}
	var have, lack []string
	for _, w := range wantCaps {
		if effective(string(status))&(1<<w.number) != 0 {
			have = append(have, w.name)
			continue
		}
		lack = append(lack, w.name)
		c.Meaning += ", " + w.name + " " + w.what
	}
	if len(lack) == 0 {
		c.Found, c.Meaning = strings.Join(have, " "), "all that headgate needs"
		return c
	}
	c.State, c.Found, c.Remedy = Unknown, "without "+strings.Join(lack, " "), "run doctor as root"
	c.Meaning = strings.TrimPrefix(c.Meaning, ", ")
	return c
}

// effective parses the effective capability set in /proc/PID/status (proc_pid_status(5)).
func effective(status string) (set uint64) {
	for line := range strings.Lines(status) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, _ = strconv.ParseUint(strings.TrimSpace(hex), 16, 64) // on an error assume no capabilities
		}
	}
	return set
}

// kernelParts tries the qdiscs, filters and devices of which the engines build groups, on the
// loopback device of a new namespace.
func kernelParts() []Check {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return []Check{checkOf("netlink", err, "", "headgate cannot configure the kernel", "").needed()}
	}
	index := lo.Attrs().Index
	const option = "use a distribution's kernel, or build one with "
	groups := func(name string, err error, config string) Check {
		return checkOf(name, err, "groups use it", "no group can be enforced", option+config).needed()
	}
	const root, leaf, segmenting = 1, 2, 3
	handle := func(minor uint16) nl.Handle { return nl.MakeHandle(1, minor) }
	class := nl.HTBClass{Rate: 1e6, Ceil: 1e6, Buffer: 1e6, Cbuffer: 1e6, Quantum: 1500}
	out := []Check{
		groups("HTB", try(func(b *nl.Batch) {
			b.AddHTB(index, handle(0), nl.Root, leaf)
			b.SetHTBClass(index, handle(root), handle(0), class)
			b.SetHTBClass(index, handle(leaf), handle(root), class)
			b.SetHTBClass(index, handle(segmenting), handle(root), class)
		}), "CONFIG_NET_SCH_HTB"),
		groups("bfifo", try(func(b *nl.Batch) {
			b.SetLeaf(index, nl.MakeHandle(2, 0), handle(leaf), nl.Leaf{Limit: 1e5})
		}), "CONFIG_NET_SCH_FIFO"),
		groups("TBF", try(func(b *nl.Batch) {
			b.SetLeaf(index, nl.MakeHandle(3, 0), handle(segmenting), nl.Leaf{Limit: 1e5, Segment: 1514})
		}), "CONFIG_NET_SCH_TBF"),
		groups("clsact", try(func(b *nl.Batch) { b.AddClsact(index) }), "CONFIG_NET_SCH_INGRESS"),
		groups("cls_bpf", tryFilter(index), "CONFIG_NET_CLS_BPF, CONFIG_BPF_SYSCALL"),
		checkOf("IFB", tryIFB(), "direction \"in\" is shaped on it", "only direction \"out\" can be shaped, not \"in\"", option+"CONFIG_IFB").needed(),
		checkOf("fq_codel", tryKind("fq_codel"), "groups' queues use it: flows of one group have separate queues",
			"flows of one group share one queue; groups still have separate queues", option+"CONFIG_NET_SCH_FQ_CODEL").onlyLimits(),
		checkOf("netem", tryKind("netem"), "not used by groups or the lab; available for your own tests",
			"not used by groups or the lab; your own tests with tc cannot add delay", option+"CONFIG_NET_SCH_NETEM").onlyLimits(),
		checkOf("TUN/TAP", tryTAP(), "used by the lab's links with delay, and by VMs", "the lab has no links with delay",
			option+"CONFIG_TUN, and create /dev/net/tun").onlyLimits(),
	}
	// The namespace's end would remove the qdiscs too, but their modules are released sooner this way.
	_ = try(func(b *nl.Batch) {
		b.DeleteQdisc(index, nl.ClsactHandle, nl.Clsact)
		b.DeleteQdisc(index, handle(0), nl.Root)
	})
	return out
}

// try sends requests to the kernel.
func try(add func(*nl.Batch)) error {
	c, err := nl.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	var b nl.Batch
	add(&b)
	return c.Execute(&b)
}

func tryFilter(index int) error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "headgate_doctor", Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}, // TC_ACT_UNSPEC
	})
	if err != nil {
		return fmt.Errorf("cannot load an eBPF program: %w", err)
	}
	defer p.Close()
	return try(func(b *nl.Batch) { b.SetBPFFilter(index, nl.ClsactEgress, 1, p.FD(), "headgate_doctor") })
}

func tryIFB() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "ifbtry"
	ifb := &netlink.Ifb{LinkAttrs: attrs}
	if err := netlink.LinkAdd(ifb); err != nil {
		return err
	}
	return netlink.LinkDel(ifb)
}

// tryKind creates a qdisc without options. A kind that requires options fails, but is
// supported; ENOENT means that the kernel does not support the kind.
func tryKind(kind string) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	err = netlink.QdiscReplace(&netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: lo.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(9, 0)}, QdiscType: kind,
	})
	if errors.Is(err, unix.ENOENT) {
		return errors.New("not in this kernel")
	}
	if forbidden(err) {
		return err
	}
	return nil
}

func tryTAP() error {
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	req, err := unix.NewIfreq("taptry")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	return os.NewSyscallError("TUNSETIFF", unix.IoctlIfreq(int(f.Fd()), unix.TUNSETIFF, req))
}
