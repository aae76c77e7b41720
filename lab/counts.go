package lab

import (
	"fmt"
	"time"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/lab/wire"
)

// latePart is the fraction of an emulated link's writes that may be late by more than its LateBound;
// above it a run is unusable. The value is chosen by this project: with the default bound of 1 ms, the
// 99th percentile of delays is then that of the path. With a tenth of it hardly any run was usable on
// two virtual processors that stalled for some ms twice a second, 0.4 % of the time, while they only
// computed. A write that is late by wire.VeryLate bounds makes the run unusable at once.
const latePart = 0.01

// LinkInterval has the counts of one direction of a link in a part of a run. Bytes are layer 2. On a
// plain veth without a rate a super-packet counts as one frame.
type LinkInterval struct {
	StartSeconds float64 `json:"start_s"`
	Seconds      float64 `json:"seconds"`
	Bytes        uint64  `json:"bytes"`
	Frames       uint64  `json:"frames"`
	Dropped      uint64  `json:"dropped_frames"`
}

// Rate returns bits per second.
func (i LinkInterval) Rate() float64 {
	if i.Seconds == 0 {
		return 0
	}
	return float64(i.Bytes) * 8 / i.Seconds
}

// linkCounts are counters that start at Up.
type linkCounts struct {
	bytes, frames, dropped uint64
	wire                   *wire.Stats // of an emulated link
}

func (c linkCounts) since(before linkCounts) LinkInterval {
	return LinkInterval{Bytes: c.bytes - before.bytes, Frames: c.frames - before.frames, Dropped: c.dropped - before.dropped}
}

// counts returns the counters of link i, by direction.
func (l *Lab) counts(i int) (out [2]linkCounts, err error) {
	if w := l.wires[i]; w != nil {
		for dir, s := range w.Stats() {
			out[dir] = linkCounts{s.Bytes, s.Segments, s.Drops(), &s}
		}
		return out, nil
	}
	spec, devs := l.Topology.Links[i], l.devs[i]
	for dir, p := range [2]Path{spec.Forward, spec.Back} {
		n := l.at(spec.Ends[dir])
		link, err := n.nl.LinkByName(devs[dir])
		if err != nil {
			return out, fmt.Errorf("device %s of %s: %w", devs[dir], n.Name, err)
		}
		switch {
		case l.backends[i] == Netem:
			c, err := countNetem(n.nl, link)
			if err != nil {
				return out, err
			}
			out[dir] = linkCounts{bytes: c.Bytes, frames: c.Frames, dropped: c.Full + c.Lost}
		case p.Rate > 0:
			if out[dir], err = countQdisc(n.nl, link); err != nil {
				return out, err
			}
		default:
			s := link.Attrs().Statistics
			out[dir] = linkCounts{bytes: s.TxBytes, frames: s.TxPackets, dropped: s.TxDropped}
		}
	}
	return out, nil
}

// countQdisc reads the counters of HTB on a limited device; HTB counts segments.
func countQdisc(h *netlink.Handle, link netlink.Link) (c linkCounts, err error) {
	qdiscs, err := h.QdiscList(link)
	if err != nil {
		return c, fmt.Errorf("list the qdiscs of %s: %w", link.Attrs().Name, err)
	}
	for _, q := range qdiscs {
		a := q.Attrs()
		if a.Handle == shapeRoot && a.Statistics != nil && a.Statistics.Basic != nil && a.Statistics.Queue != nil {
			return linkCounts{a.Statistics.Basic.Bytes, uint64(a.Statistics.Basic.Packets), uint64(a.Statistics.Queue.Drops), nil}, nil
		}
	}
	return c, fmt.Errorf("device %s lost the HTB qdisc of the lab", link.Attrs().Name)
}

// distrust returns the reason why the results of an emulated direction between two counts are
// unusable, or "".
func distrust(before, after wire.Stats) string {
	bound := after.LateBound
	writes, late := after.Writes-before.Writes, after.Late-before.Late
	lost := after.Dropped + after.Missed + after.Failed - before.Dropped - before.Missed - before.Failed
	switch {
	case after.WorstLate > before.WorstLate && after.VeryLate > before.VeryLate:
		return fmt.Sprintf("a write was late by %v, more than the limit of %v", after.WorstLate.Round(time.Microsecond), wire.VeryLate*bound)
	case after.VeryLate > before.VeryLate: // the latest write was before
		return fmt.Sprintf("a write was late by more than %v", wire.VeryLate*bound)
	case float64(late) > latePart*float64(writes):
		return fmt.Sprintf("%[2]d of %[3]d writes were late by more than %[1]v, more than the limit of %[4]g %%", bound, late, writes, 100*latePart)
	case lost > 0:
		return fmt.Sprintf("the emulator itself lost %d frames", lost)
	case after.Untraced > before.Untraced:
		return fmt.Sprintf("its release log lacks %d records", after.Untraced-before.Untraced)
	}
	return ""
}
