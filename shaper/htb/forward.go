package htb

import (
	"slices"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
)

// Ingress packets reach the IFB in one of two ways. Usually the classifier redirects them,
// which no other program can disable. If nftables chains exist at the ingress hook, which
// redirected packets would skip, the classifier only marks packets with their class, and a
// chain of Headgate that runs after all others forwards them. "nft flush ruleset" removes that
// chain, as does a rename of the device from Linux 6.16 on. Then nothing is limited until the
// next apply, and no packet is lost. Because of this dependency, forwarding is used only if
// necessary.

// forwards reports whether packets must reach the IFB by an nftables chain.
func (k *kernel) forwards() (bool, error) {
	a, err := k.IngressPath()
	return err == nil && len(a.Chains) > 0, err
}

// forwards reports whether the side's program leaves forwarding to a chain.
func (s side) forwards() bool { return s.Record != nil && s.Record.Forward }

// ingressConflicts returns the foreign objects that conflict with shaping ingress. A redirect ends
// the list of filters, so no filter may follow it; a forwarding chain has no such restriction.
func (k *kernel) ingressConflicts(forward bool) ([]string, error) {
	a, err := k.IngressPath()
	if err != nil {
		return nil, err
	}
	if forward {
		return slices.Clone(a.Blocking), nil
	}
	return slices.Concat(a.Blocking, k.Sides[ingress].After), nil
}

// foreignIngress returns the foreign objects on the ingress path that Observe reports.
func (k *kernel) foreignIngress() ([]string, error) {
	s := k.sides[ingress]
	if s.Record == nil {
		return nil, nil
	}
	forward := s.Record.Forward
	blocked, err := k.ingressConflicts(forward)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, what := range append(blocked, s.blocked...) {
		out = append(out, attach.WithConflict(what))
	}
	if forward {
		out = append(out, s.After...)
	}
	a, err := k.IngressPath()
	for _, chain := range a.Chains {
		if forward {
			chain += ", followed by Headgate's forwarding chain (" + k.ForwardName(s.Record.IFB) + ")"
		} else {
			chain += ", which packets skip until the next apply"
		}
		out = append(out, chain)
	}
	return out, err
}

// chainTransition reports whether Headgate's chain must be created or removed.
func (k *kernel) chainTransition(w desiredSide) (set, remove bool) {
	if s := k.sides[ingress]; w.Tree == nil && s.Record == nil && s.qdisc == nil {
		return false, false
	}
	a, err := k.IngressPath()
	if err != nil {
		return false, false // for a device to shape, desiredSides has failed before
	}
	if w.Tree == nil || !w.record.Forward {
		return false, a.Forwarding()
	}
	ifb := k.sides[ingress].qdisc
	return ifb == nil || !a.Forwards(ifb.Attrs().Index), false
}

// chainChanges describes the changes of the chain.
func (m *transition) chainChanges() (out []shaper.Change) {
	object := m.desired[ingress].String() + " forwarding"
	switch {
	case m.setChain:
		out = append(out, shaper.Change{Verb: "add", Object: object, Detail: "by an nftables chain after all others at the ingress hook"})
	case m.removeChain:
		out = append(out, shaper.Change{Verb: "remove", Object: object, Detail: "by an nftables chain"})
	case m.desired[ingress].Tree != nil && m.k.sides[ingress].forwards() && !m.desired[ingress].record.Forward:
		// The program that removed the foreign chains removed Headgate's chain too.
		out = append(out, shaper.Change{Verb: "change", Object: object, Detail: "by an nftables chain -> by the classifier"})
	}
	return out
}

// moveChain changes the chain after the batch. Packets that the classifier redirects do not
// reach the chain, and packets without a Headgate class pass it, so no packet is sent to the
// IFB twice at any moment.
func (m *transition) moveChain() error {
	switch {
	case m.setChain:
		return m.k.SetForward(major, m.k.sides[ingress].qdisc.Attrs().Index)
	case m.removeChain:
		return m.k.RemoveForward()
	}
	return nil
}
