package htb

import (
	"fmt"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/nl"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/classifier"
)

// Super-packets are limited to the size that leaves pass unsplit. The host's own senders obey
// the device's gso_max_size (net/ipv4/tcp_output.c, tcp_tso_autosize; read at connect), and GRO
// obeys gro_max_size when it merges received packets (net/core/gro.c, skb_gro_receive). The
// leaf splits larger packets into single frames, which costs many times as much
// (docs/decisions/0025-packets-sized-to-the-limit.md).

const (
	// tcpHeaders is the maximum that the kernel subtracts from gso_max_size for headers
	// (net/core/sock.c, sk_setup_caps: MAX_TCP_HEADER + 1).
	tcpHeaders = 384
	// segmentHeaders is the length of the headers of IPv4 and of TCP with timestamps, the
	// minimum of most segments.
	segmentHeaders = 52
)

// sizeNames are the names of the device's settings, by Egress and Ingress; ipv4SizeNames are
// those for IPv4.
var (
	sizeNames     = [2]string{"gso_max_size", "gro_max_size"}
	ipv4SizeNames = [2]string{"gso_ipv4_max_size", "gro_ipv4_max_size"}
)

// sizeFor returns the maximum for a device's setting; 0 means any.
func (b builder) sizeFor(side int) uint32 {
	if side == ingress {
		return uint32(b.maxUnsplit(b.tree.Limit))
	}
	frames := b.frames(b.tree.Limit, sizeTime)
	if frames == 0 {
		return 0
	}
	return uint32(frames*uint64(max(b.link.mtu-segmentHeaders, 1)) + tcpHeaders)
}

// settings returns a device's super-packet limits.
func (k *kernel) settings(side int) nl.MaxSize {
	a := k.Link.Attrs()
	if side == egress {
		return nl.MaxSize{Size: a.GSOMaxSize, IPv4: a.GSOIPv4MaxSize}
	}
	return nl.MaxSize{Size: a.GROMaxSize, IPv4: a.GROIPv4MaxSize}
}

// sized returns the desired change of a side's setting, for its record. A setting that differs
// from the record was changed by another program, and is left unchanged.
func (k *kernel) sized(side int, p shaper.Plan, size uint32) *classifier.GSOChange {
	now := k.settings(side)
	old := recordedSize(k.sides[side].Record)
	if p.GSO == group.KeepGSO {
		size = 0
	}
	switch {
	case now.Size == 0: // not reported by the kernel
		return nil
	case old != nil && old.Set != now:
		return &classifier.GSOChange{Before: now, Set: now, Left: true}
	case old != nil && old.Left:
		return old
	case old != nil:
		now = old.Before
	}
	if size == 0 || size >= now.Size {
		return nil
	}
	set := nl.MaxSize{Size: size}
	if now.IPv4 > 0 {
		set.IPv4 = min(now.IPv4, size)
	}
	return &classifier.GSOChange{Before: now, Set: set}
}

func recordedSize(r *classifier.Record) *classifier.GSOChange {
	if r == nil {
		return nil
	}
	return r.Sized
}

// sizeStep returns the step that sets a device's setting to the desired value, or restores the
// previous value if no change is desired.
func (k *kernel) sizeStep(side int, want *classifier.GSOChange) (step, bool) {
	now := k.settings(side)
	to := now
	if want != nil {
		to = want.Set
	} else if old := recordedSize(k.sides[side].Record); old != nil && old.Set == now {
		to = old.Before
	}
	if to == now {
		return step{}, false
	}
	return step{
		change: func() shaper.Change {
			return shaper.Change{
				Verb: "change", Object: "device " + k.Name(),
				Detail: fmt.Sprintf("%s %d -> %d bytes", sizeNames[side], now.Size, to.Size),
			}
		},
		add: func(b *nl.Batch, _ int) { k.addSize(b, side, to) },
	}, true
}

func (k *kernel) addSize(b *nl.Batch, side int, to nl.MaxSize) {
	if side == egress {
		b.SetGSOMaxSize(k.Index(), to)
	} else {
		b.SetGROMaxSize(k.Index(), to)
	}
}

// leaves describes a setting that is left unchanged from now on, because another program set
// it.
func (m *transition) leaves(side int) string {
	want, old := m.desired[side].record.Sized, recordedSize(m.k.sides[side].Record)
	if want == nil || !want.Left || old != nil && old.Left {
		return ""
	}
	return fmt.Sprintf("%s was set to %d bytes by another program and is left unchanged", sizeNames[side], want.Set.Size)
}

// offloads returns the settings of a side that differ from those before shaping.
func (k *kernel) offloads(side int) (out []shaper.DeviceSetting) {
	r, now := recordedSize(k.sides[side].Record), k.settings(side)
	if r == nil || now.Size == 0 {
		return nil
	}
	left := r.Left || r.Set != now
	for _, s := range []struct {
		name             string
		now, set, before uint32
	}{{sizeNames[side], now.Size, r.Set.Size, r.Before.Size}, {ipv4SizeNames[side], now.IPv4, r.Set.IPv4, r.Before.IPv4}} {
		switch {
		case left && s.now > 0:
			out = append(out, shaper.DeviceSetting{Name: s.name, Value: s.now, ChangedByOther: true})
		case !left && s.set != s.before:
			out = append(out, shaper.DeviceSetting{Name: s.name, Value: s.now, Before: s.before})
		}
	}
	return out
}
