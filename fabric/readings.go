package fabric

import (
	"slices"
	"time"
)

// readingsKept is for how long Readings keeps what it takes.
const readingsKept = 20 * time.Second

// Readings are the last readings of a PortMeter, from which it is known what passed between two moments. The zero Readings has none.
type Readings struct{ all []passedAt }

type passedAt struct {
	at     time.Time
	rx, tx Passed
}

// Passed is what passed a port in one direction.
type Passed struct{ Bytes, Frames float64 }

// take takes a reading that is later than the one before. It begins again if the counters did, or if the port does not count bytes and frames.
func (r *Readings) take(was, now PortCounters) {
	counted := now.Rx.Bytes != Uncounted && now.Rx.Frames != Uncounted && now.Tx.Bytes != Uncounted && now.Tx.Frames != Uncounted
	if !counted || now.restarted(was) {
		r.all = nil
	}
	if counted {
		r.all = append(slices.DeleteFunc(r.all, func(one passedAt) bool { return now.At.Sub(one.at) > readingsKept }), passedAt{now.At, now.Rx.passed(), now.Tx.passed()})
	}
}

func (now Counts) passed() Passed { return Passed{float64(now.Bytes), float64(now.Frames)} }

func (r Readings) clone() Readings { return Readings{slices.Clone(r.all)} }

// Between returns what passed between two moments. What passed between two readings is taken to have done so at a constant rate. It reports false
// if there are no readings before both and after both.
func (r Readings) Between(begin, end time.Time) (rx, tx Passed, ok bool) {
	from, ok1 := r.at(begin)
	to, ok2 := r.at(end)
	return to.rx.less(from.rx), to.tx.less(from.tx), ok1 && ok2
}

func (p Passed) less(q Passed) Passed { return Passed{p.Bytes - q.Bytes, p.Frames - q.Frames} }

// at returns what a reading at a moment would have.
func (r Readings) at(moment time.Time) (passedAt, bool) {
	i, exact := slices.BinarySearchFunc(r.all, moment, func(one passedAt, t time.Time) int { return one.at.Compare(t) })
	switch {
	case exact:
		return r.all[i], true
	case i == 0 || i == len(r.all):
		return passedAt{}, false
	}
	before, after := r.all[i-1], r.all[i]
	part := moment.Sub(before.at).Seconds() / after.at.Sub(before.at).Seconds()
	between := func(a, b Passed) Passed {
		return Passed{a.Bytes + part*(b.Bytes-a.Bytes), a.Frames + part*(b.Frames-a.Frames)}
	}
	return passedAt{moment, between(before.rx, after.rx), between(before.tx, after.tx)}, true
}

// LinkLosses returns the rate that was sent over a link in a part of the readings of the ports at its beginning and at its end, in bit/s, and the
// part of the frames that did not arrive. The part is so long, and ended some time before the last readings. It reports false if the readings are not of so long.
//
// The ports are read at different moments, and compared at the same. What is lost is told by frames: some switches count the frame check sequence in the bytes
// of a port, and others do not.
func LinkLosses(sends, receives Readings, length, before time.Duration) (sent, lost float64, ok bool) {
	if len(sends.all) == 0 || len(receives.all) == 0 {
		return 0, 0, false
	}
	end := sends.all[len(sends.all)-1].at
	if at := receives.all[len(receives.all)-1].at; at.Before(end) {
		end = at
	}
	end = end.Add(-before)
	_, out, ok1 := sends.Between(end.Add(-length), end)
	in, _, ok2 := receives.Between(end.Add(-length), end)
	if out.Frames > 0 {
		lost = 1 - in.Frames/out.Frames
	}
	return 8 * out.Bytes / length.Seconds(), lost, ok1 && ok2
}
