package doctor

import (
	"errors"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"headgate/internal/bpfobj"
)

const bpfMount = "/sys/fs/bpf"

func eBPF() []Check { return []Check{jit("/proc/sys/net/core/bpf_jit_enable"), departures(), bpfFS()} }

// jit reads the switch; a kernel that cannot but compile has none, or always 1.
func jit(path string) Check {
	c := Check{About: Machine, Name: "eBPF JIT", State: OK, Found: "on", Means: "the classifier runs as machine code"}
	text, err := os.ReadFile(path)
	switch {
	case forbidden(err):
		c.State, c.Found, c.Remedy = Unknown, "", "run it as root"
	case err != nil:
		c.Found = "no switch for it"
	case strings.TrimSpace(string(text)) == "0":
		c.State, c.Found = Limited, "off"
		c.Means, c.Remedy = "the classifier is interpreted, and costs several times as much for each packet", "sysctl -w net.core.bpf_jit_enable=1"
	}
	return c
}

// departures attaches a program that does nothing where the engine attaches the
// one that measures queues.
func departures() Check {
	return tried("queue measurement (BTF, tp_btf)", tryTracing("net_dev_start_xmit"),
		"queues are measured, and ECN is marked before they build",
		"queues are bounded by their length alone, and ECN is not marked: more delay inside a full group",
		"use a kernel built with CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_EVENTS").onlyLimits()
}

func tryTracing(tracepoint string) error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "headgate_doctor", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: tracepoint, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer p.Close()
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return err
	}
	return l.Close()
}

func bpfFS() Check {
	c := Check{About: Machine, Name: "bpf file system", State: OK, Means: "what measures queues stays when headgate ends"}
	if _, ok := bpfobj.FS(); ok {
		c.Found = bpfMount
		return c
	}
	c.State, c.Found, c.Remedy = Limited, "not mounted", "mount -t bpf bpf "+bpfMount
	c.Means = "apply mounts it if it may; else queues are bounded by their length alone, and ECN is not marked"
	if _, err := os.Stat(bpfMount); errors.Is(err, os.ErrNotExist) {
		c.Remedy = "use a kernel built with CONFIG_BPF_SYSCALL and CONFIG_SYSFS"
	}
	return c
}
