package htb

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/attach"
	"headgate.dev/headgate/shaper/classifier"
	"headgate.dev/headgate/unit"
)

// adjustableTime is the transmission time, at the guarantee, of the largest packet that the leaf of an
// adjustable group passes unsplit, in seconds: 1 % of a second, so that a burst exceeds what the limit allows in a
// second by not more. It is longer than unsplitTime, because the same leaf sends at many times the guarantee when the
// limit is raised. unsplitTime at the limit of the tree applies too.
const adjustableTime = 0.010

var _ shaper.Adjuster = (*Engine)(nil)

// adjustableUnsplit is maxUnsplit for an adjustable group.
func (b builder) adjustableUnsplit(n group.Node) uint64 {
	own, whole := b.frames(n.Guarantee, adjustableTime)*b.link.frame(), b.maxUnsplit(b.tree.Limit)
	if own == 0 || whole == 0 {
		return max(own, whole)
	}
	return min(own, whole)
}

func (b builder) adjustableLeaf(n group.Node) leaf {
	return b.leafOf(n.Guarantee, b.tree.Limit, b.adjustableUnsplit(n))
}

// adjustableClass returns the class of an adjustable group with a limit.
func (b builder) adjustableClass(n group.Node, limit unit.Rate) nl.HTBClass {
	packet := max(superPacket, b.link.frame())
	if whole := b.adjustableUnsplit(n); whole > 0 {
		packet = whole + uint64(b.link.overhead.Frame)
	}
	return b.classOf(float64(n.Guarantee)*b.guarantees, b.classCeiling(limit), packet)
}

// limitOf returns the limit of an adjustable group.
func (b builder) limitOf(n group.Node) unit.Rate {
	if limit, ok := b.limits[n.Path]; ok {
		return limit
	}
	return clampLimit(n.Guarantee, b.tree.Limit)
}

// clampLimit returns the limit that the class of an adjustable group has for a wanted one: at least group.MinRate, at
// which a waiting packet leaves within a second or two, at most whole, the limit of the tree, and with the precision of
// the class, so that limitOfClass returns the same.
func clampLimit(limit, whole unit.Rate) unit.Rate {
	b := builder{tree: group.Tree{Limit: whole}}
	return limitOfClass(b.classCeiling(min(max(limit, group.MinRate), whole)).BytesPerSecond(), whole)
}

// limitOfClass is the inverse of classCeiling: it returns the limit of an adjustable group by the ceiling of its class
// in bytes per second. whole is the limit of the tree.
func limitOfClass(ceil uint64, whole unit.Rate) unit.Rate {
	if ceil >= whole.BytesPerSecond() {
		return whole
	}
	b := builder{tree: group.Tree{Limit: whole}}
	limit := unit.Rate(ceil) * 8 / (classifier.CeilingReserveDivisor - 1) * classifier.CeilingReserveDivisor
	for limit < whole && b.classCeiling(limit).BytesPerSecond() < ceil { // a few steps, because the divisions round down
		limit += 8
	}
	return min(limit, whole)
}

// limit returns the limit in force of an adjustable group, by its class; the guarantee if it has no class.
func (t tree) limit(minor uint16, n group.Node, whole unit.Rate) unit.Rate {
	if c, ok := t.classes[minor]; ok {
		return limitOfClass(c.htb.Ceil, whole)
	}
	return clampLimit(n.Guarantee, whole)
}

// limits returns the limits in force of a tree's adjustable groups, by path.
func (t tree) limits(want group.Tree, minor func(node int) uint16) map[string]unit.Rate {
	out := map[string]unit.Rate{}
	for i, n := range want.Nodes {
		if n.Adjustable {
			out[n.Path] = t.limit(minor(i), n, want.Limit)
		}
	}
	return out
}

// Adjust sets the limits of adjustable groups. It reads no classes, and compares nothing. It takes 0.9 ms for one group,
// 1.5 ms for 100 and 8 ms for 1,000 groups of a device (BenchmarkAdjust, AMD EPYC at idle priority).
func (e *Engine) Adjust(dev string, limits map[string]unit.Rate) error {
	return attach.Locked(func() error {
		return attach.With(dev, group.HTB, func(c *nl.Conn, d *attach.Device) error {
			return (&kernel{Device: d, conn: c}).adjust(limits)
		})
	})
}

func (k *kernel) adjust(limits map[string]unit.Rate) error {
	s := k.Sides[egress]
	if s.Record == nil || s.Record.In {
		return fmt.Errorf("device %s %w", k.Name(), shaper.ErrNotShaped)
	}
	w := desiredSide{Direction: attach.Directions(s.Record.Plan)[egress], record: *s.Record}
	b := newBuilder(*w.Tree, k.linkFacts(egress, s.Record.Plan))
	b.limits = map[string]unit.Rate{}
	missing := maps.Clone(limits)
	for _, n := range w.Tree.Nodes {
		if limit, changes := limits[n.Path]; changes && n.Adjustable {
			b.limits[n.Path] = clampLimit(limit, w.Tree.Limit)
			delete(missing, n.Path)
		}
	}
	var batch nl.Batch
	for _, c := range b.classes(w.minor, s.Record.Places) {
		if _, changes := b.limits[c.path]; changes {
			batch.SetHTBClass(k.Index(), c.handle(), c.above(), c.htb)
			w.classes = append(w.classes, c)
		}
	}
	if len(w.classes) > 0 {
		minors, values := w.classTimes()
		if err := putClassTimes(s.Maps[classTimesMap], minors, values); err != nil {
			return err
		}
		if err := k.conn.Execute(&batch); err != nil {
			return fmt.Errorf("cannot change the limits of device %s: %w", k.Name(), err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("device %s has no group with an adjustable limit named %s: apply its plan first", k.Name(), strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return nil
}
