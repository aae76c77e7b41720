package attach

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Sooner are programs that see a device's packets before its filters do (tcx, by
// Egress, Ingress), in words. They are in nobody's way, and nothing can come
// before them. What they end with TCX_NEXT goes on to our filter; what they pass,
// drop or redirect themselves does not (net/core/dev.c, sch_handle_egress): at
// egress it is in the class of control traffic, which is the HTB tree's default.
// HTB learns its default once (it has no ->change), and what it cannot find it
// sends without any limit (net/sched/sch_htb.c, htb_classify), so the default is a
// class that every tree has and not a group, which may go.
func Sooner(dev string) (words [2][]string, err error) {
	l, err := find(dev)
	if err != nil {
		return words, err
	}
	for side, hook := range [2]ebpf.AttachType{Egress: ebpf.AttachTCXEgress, Ingress: ebpf.AttachTCXIngress} {
		// Kernels before 6.6 have no such hook, and refuse the question.
		r, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: hook})
		if err != nil {
			continue
		}
		for _, p := range r.Programs {
			words[side] = append(words[side], fmt.Sprintf("tcx %s program %d%s", hookNames[side], p.ID, programName(p.ID)))
		}
	}
	return words, nil
}

// programName is " (name)", or nothing if it has none or is gone.
func programName(id ebpf.ProgramID) string {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return ""
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil || info.Name == "" {
		return ""
	}
	return " (" + info.Name + ")"
}
