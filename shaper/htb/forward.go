package htb

import (
	"slices"

	"headgate/shaper"
	"headgate/shaper/attach"
)

// Packets come from a device's ingress to the IFB in one of two ways. The classifier
// redirects them, which nothing else can undo; or, where chains of nftables are at the
// ingress hook, which redirected packets would pass by, the classifier only marks them
// with their class, and a chain of ours behind all others' forwards them. "nft flush
// ruleset" takes that chain away, and a rename of the device does from Linux 6.16 on:
// then nothing is limited until the next apply, and nothing is lost. That is why it is
// not the way for all.

// forwards tells whether packets are to come to the IFB by a chain of nftables.
func (k *kernel) forwards() (bool, error) {
	a, err := k.Around()
	return err == nil && len(a.Chains) > 0, err
}

// forwards tells whether the side's program leaves its packets to a chain.
func (s side) forwards() bool { return s.Record != nil && s.Record.Forward }

// onTheWayIn is what is in the way of ingress besides what no side can have. A
// redirect ends the list of filters, so that none may come after it; a chain does not.
func (k *kernel) onTheWayIn(forward bool) ([]string, error) {
	a, err := k.Around()
	if err != nil {
		return nil, err
	}
	if forward {
		return slices.Clone(a.Blocking), nil
	}
	return slices.Concat(a.Blocking, k.Sides[ingress].After), nil
}

// notOurs is what Observe tells of the way in.
func (k *kernel) notOurs() ([]string, error) {
	s := k.sides[ingress]
	if s.Record == nil {
		return nil, nil
	}
	forward := s.Record.Forward
	blocked, err := k.onTheWayIn(forward)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, what := range append(blocked, s.blocked...) {
		out = append(out, attach.Obstacle(what))
	}
	if forward {
		out = append(out, s.After...)
	}
	a, err := k.Around()
	for _, chain := range a.Chains {
		if forward {
			chain += ", behind which Headgate's own forwards (" + k.ForwardName(s.Record.IFB) + ")"
		} else {
			chain += ", which packets pass by until the next apply"
		}
		out = append(out, chain)
	}
	return out, err
}

// chainMove tells how the chain of ours has to change.
func (k *kernel) chainMove(w want) (set, remove bool) {
	if s := k.sides[ingress]; w.Tree == nil && s.Record == nil && s.qdisc == nil {
		return false, false
	}
	a, err := k.Around()
	if err != nil {
		return false, false // desire has failed before
	}
	if w.Tree == nil || !w.record.Forward {
		return false, a.Forwarding()
	}
	ifb := k.sides[ingress].qdisc
	return ifb == nil || !a.Forwards(ifb.Attrs().Index), false
}

// chainChanges says it in words.
func (m *move) chainChanges() (out []shaper.Change) {
	object := m.want[ingress].String() + " forwarding"
	switch {
	case m.setChain:
		out = append(out, shaper.Change{Verb: "add", Object: object, Detail: "by a chain of nftables behind all others at the ingress hook"})
	case m.removeChain:
		out = append(out, shaper.Change{Verb: "remove", Object: object, Detail: "by a chain of nftables"})
	case m.want[ingress].Tree != nil && m.k.sides[ingress].forwards() && !m.want[ingress].record.Forward:
		// Whoever took the others' chains away took ours, too.
		out = append(out, shaper.Change{Verb: "change", Object: object, Detail: "by a chain of nftables -> by the classifier"})
	}
	return out
}

// moveChain comes after the batch: what the classifier redirects does not come to the
// chain, and what has no class of ours passes it, so that no moment sends a packet to
// the IFB twice.
func (m *move) moveChain() error {
	switch {
	case m.setChain:
		return m.k.SetForward(major, m.k.sides[ingress].qdisc.Attrs().Index)
	case m.removeChain:
		return m.k.RemoveForward()
	}
	return nil
}
