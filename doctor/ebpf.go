package doctor

import (
	"errors"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"headgate.dev/headgate/internal/bpfobj"
)

const bpfMount = "/sys/fs/bpf"

func eBPF() []Check {
	return []Check{jit("/proc/sys/net/core/bpf_jit_enable"), queueMeasurement(), bpfFS()}
}

// jit reads the sysctl of the JIT compiler. Only the first network namespace has it
// (net/core/sysctl_net_core.c), so a missing sysctl passes the check.
func jit(path string) Check {
	c := Check{About: Machine, Name: "eBPF JIT", State: OK, Found: "on", Meaning: "the classifier runs as machine code"}
	text, err := os.ReadFile(path)
	switch {
	case forbidden(err):
		c.State, c.Found, c.Remedy = Unknown, "", "run doctor as root"
	case err != nil:
		c.Found = "no sysctl net.core.bpf_jit_enable"
	case strings.TrimSpace(string(text)) == "0":
		c.State, c.Found = Limited, "off"
		c.Meaning, c.Remedy = "the classifier is interpreted, which costs several times the CPU time per packet", "sysctl -w net.core.bpf_jit_enable=1"
	}
	return c
}

// queueMeasurement attaches an empty program to the tracepoint at which the engine's program
// measures queues.
func queueMeasurement() Check {
	return checkOf("queue measurement (BTF, tp_btf)", tryTracing("net_dev_start_xmit"),
		"queues are measured, and ECN is marked before they build",
		"queues are bounded only by their length, and ECN is not marked: more queue delay in a full group",
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
	c := Check{About: Machine, Name: "bpf file system", State: OK, Meaning: "queues are still measured when headgate has exited"}
	if _, ok := bpfobj.FS(); ok {
		c.Found = bpfMount
		return c
	}
	c.State, c.Found, c.Remedy = Limited, "not mounted", "mount -t bpf bpf "+bpfMount
	c.Meaning = "apply mounts it if permitted; otherwise queues are bounded only by their length, and ECN is not marked"
	if _, err := os.Stat(bpfMount); errors.Is(err, os.ErrNotExist) {
		c.Remedy = "use a kernel built with CONFIG_BPF_SYSCALL and CONFIG_SYSFS"
	}
	return c
}
