package htb

import (
	"fmt"

	"headgate/group"
	"headgate/internal/nl"
	"headgate/shaper"
	"headgate/shaper/classifier"
	"headgate/unit"
)

// Super-packets are made as large as the leaves pass them whole: the host's own senders
// heed the device's gso_max_size (net/ipv4/tcp_output.c, tcp_tso_autosize; taken at
// connect), and what is merged on the way in its gro_max_size (net/core/gro.c,
// skb_gro_receive). Larger ones are cut into single frames by the leaf, which costs
// many times as much (docs/decisions/0025-packets-sized-to-the-limit.md).

const (
	// tcpHeaders is what the kernel takes off gso_max_size for headers (net/core/sock.c,
	// sk_setup_caps: MAX_TCP_HEADER + 1), at most.
	tcpHeaders = 384
	// segmentHeaders are IPv4's and TCP's with timestamps, the least that most segments
	// have.
	segmentHeaders = 52
)

// sizeNames are the device's settings, by Egress and Ingress, and ipv4SizeNames those of IPv4.
var (
	sizeNames     = [2]string{"gso_max_size", "gro_max_size"}
	ipv4SizeNames = [2]string{"gso_ipv4_max_size", "gro_ipv4_max_size"}
)

// sizeFor is what a device's setting should be at most; 0 is any.
func (b builder) sizeFor(side int) uint32 {
	if side == ingress {
		return uint32(b.whole(b.tree.Limit))
	}
	frames := b.frames(b.tree.Limit, sizeTime)
	if frames == 0 {
		return 0
	}
	return uint32(frames*uint64(max(b.link.mtu-segmentHeaders, 1)) + tcpHeaders)
}

// settings are a device's limits of super-packets.
func (k *kernel) settings(side int) nl.MaxSize {
	a := k.Link.Attrs()
	if side == egress {
		return nl.MaxSize{Size: a.GSOMaxSize, IPv4: a.GSOIPv4MaxSize}
	}
	return nl.MaxSize{Size: a.GROMaxSize, IPv4: a.GROIPv4MaxSize}
}

// sized tells what a side's setting should become, and what its record keeps of it. A
// setting that is not what the record says was changed by somebody else, and is left to
// them.
func (k *kernel) sized(side int, p shaper.Plan, size uint32) *classifier.Sized {
	now := k.settings(side)
	old := recordedSize(k.sides[side].Record)
	if p.GSO == group.KeepGSO {
		size = 0
	}
	switch {
	case now.Size == 0: // the kernel does not tell
		return nil
	case old != nil && old.Set != now:
		return &classifier.Sized{Before: now, Set: now, Left: true}
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
	return &classifier.Sized{Before: now, Set: set}
}

func recordedSize(r *classifier.Record) *classifier.Sized {
	if r == nil {
		return nil
	}
	return r.Sized
}

// sizeStep leads a device's setting to what it should be: to what it was, where nothing
// is wanted any more.
func (k *kernel) sizeStep(side int, want *classifier.Sized) (step, bool) {
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
				Detail: fmt.Sprintf("%s %v -> %v", sizeNames[side], unit.Bytes(now.Size), unit.Bytes(to.Size)),
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

// leaves says that a setting is somebody else's from now on.
func (m *move) leaves(side int) string {
	want, old := m.want[side].record.Sized, recordedSize(m.k.sides[side].Record)
	if want == nil || !want.Left || old != nil && old.Left {
		return ""
	}
	return fmt.Sprintf("%s is %v now, by somebody else, and is left as it is", sizeNames[side], unit.Bytes(want.Set.Size))
}

// offloads are the settings of a side that are not as they were before it was divided.
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
			out = append(out, shaper.DeviceSetting{Name: s.name, Value: s.now, LeftAlone: true})
		case !left && s.set != s.before:
			out = append(out, shaper.DeviceSetting{Name: s.name, Value: s.now, Before: s.before})
		}
	}
	return out
}
