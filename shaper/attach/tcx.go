package attach

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// TCXPrograms describes the programs that process a device's packets before its filters (tcx, by
// Egress, Ingress). They do not conflict with Headgate, and nothing can precede them. Packets
// for which they return TCX_NEXT continue to Headgate's filter; packets that they pass, drop or
// redirect do not (net/core/dev.c, sch_handle_egress). At egress, such packets are in the class
// of control traffic, which is the default class of the HTB tree. HTB sets its default class
// only at creation (it has no ->change), and sends packets whose class it cannot find without
// any limit (net/sched/sch_htb.c, htb_classify). The default is therefore a class that every
// tree has, and not a group, which may be removed.
func TCXPrograms(dev string) (words [2][]string, err error) {
	l, err := find(dev)
	if err != nil {
		return words, err
	}
	for side, hook := range [2]ebpf.AttachType{Egress: ebpf.AttachTCXEgress, Ingress: ebpf.AttachTCXIngress} {
		// Kernels before 6.6 have no tcx hook and reject the query.
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

// programName returns " (name)", or "" if the program has no name or no longer exists.
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
