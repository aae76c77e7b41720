package lab

import (
	"fmt"
	"math"
	"slices"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// A definition checks the log of all packets against what a link must have done with each. It does not
// use the model's code: it uses only the times and outcomes in the log, and checks one packet at a
// time.

// verdict counts the packets of a log that contradict the definition.
type verdict struct {
	packets, wrong int
	acted          int    // dropped, marked or delayed by what is defined
	first          string // description of the first error
}

func (v *verdict) fault(r *link.Result, format string, a ...any) {
	v.wrong++
	if v.first == "" {
		v.first = fmt.Sprintf("packet %d, arrived at %d ns: ", r.Number, r.Arrived) + fmt.Sprintf(format, a...)
	}
}

// String returns the number of packets that were checked, and the first error.
func (v verdict) String() string {
	if v.first == "" {
		return fmt.Sprintf("%d packets, of which it affected %d", v.packets, v.acted)
	}
	return fmt.Sprintf("%d packets, of which it affected %d; the first error: %s", v.packets, v.acted, v.first)
}

// tolerance is the maximum error of times, in ns: each is rounded to one.
const tolerance = 2

// carried is a log in order of arrival, with the time at which each packet began on the serialiser, or
// -1.
type carried struct {
	link.Result
	began int64
}

// prepare sorts a log. The last packets of a run may be missing, because they were in flight when it
// ended; packets after the first missing one are removed.
func prepare(s link.Spec, log []link.Result) []carried {
	sorted := slices.Clone(log)
	slices.SortFunc(sorted, func(a, b link.Result) int { return int(int64(a.Number) - int64(b.Number)) })
	out := make([]carried, 0, len(sorted))
	for i, r := range sorted {
		if r.Number != uint64(i+1) {
			break
		}
		c := carried{r, -1}
		if r.Fate == link.Delivered || r.Fate == link.Lost {
			c.began = r.Departed - transmission(s.Rate, r.Size)
		}
		out = append(out, c)
	}
	return out
}

// transmission returns size/rate in ns.
func transmission(rate unit.Rate, size int) int64 {
	if rate == 0 {
		return 0
	}
	return int64(math.Round(float64(size) * 8e9 / float64(rate)))
}

// serialiser: departure = max(arrival, previous departure) + size/rate, for links without a limiter.
func serialiser(s link.Spec, packets []carried) (v verdict) {
	busy := int64(math.MinInt64)
	for i := range packets {
		p := &packets[i]
		v.packets++
		if p.began < 0 {
			continue
		}
		if busy > p.Arrived {
			v.acted++
		}
		if want := max(p.Arrived, busy); off(p.began, want) > tolerance {
			v.fault(&p.Result, "began at %d, want %d", p.began, want)
		}
		busy = p.Departed
	}
	return v
}

func off(a, b int64) int64 { return max(a-b, b-a) }

// inQueue tracks the queue at each arrival.
type inQueue struct {
	waiting         []*carried
	bytes, segments int
}

// at removes the packets that have begun until then.
func (q *inQueue) at(now int64) {
	for len(q.waiting) > 0 && q.waiting[0].began <= now {
		q.bytes -= q.waiting[0].Size
		q.segments--
		q.waiting = q.waiting[1:]
	}
}

func (q *inQueue) add(p *carried) {
	if p.began >= 0 {
		q.waiting = append(q.waiting, p)
		q.bytes += p.Size
		q.segments++
	}
}

// close reports whether a packet begins within the tolerance of now, so that rounding determines the
// queue.
func (q *inQueue) close(now int64) bool {
	return len(q.waiting) > 0 && q.waiting[0].began-now <= tolerance
}

// droptail: an arrival is dropped if and only if it and the queue together exceed the limit.
func droptail(s link.Spec, packets []carried) (v verdict) {
	limit := float64(s.Queue.Bytes)
	if s.Queue.Time > 0 {
		limit = float64(s.Slowest()) / 8 * s.Queue.Time.Seconds()
	}
	var q inQueue
	for i := range packets {
		p := &packets[i]
		q.at(p.Arrived)
		v.packets++
		full := float64(q.bytes+p.Size) > limit
		if s.Queue.Segments > 0 {
			full = q.segments+1 > s.Queue.Segments
		}
		if full = full && q.segments > 0; full {
			v.acted++
		}
		if (p.Fate == link.Overflowed) != full && !q.close(p.Arrived) {
			v.fault(&p.Result, "dropped %v with %d bytes in %d segments queued, and %d of its own", p.Fate == link.Overflowed, q.bytes, q.segments, p.Size)
		}
		q.add(p)
	}
	return v
}

// step: a segment that can be marked is marked if and only if the queue has reached the threshold.
func step(s link.Spec, packets []carried) (v verdict) {
	var q inQueue
	for i := range packets {
		p := &packets[i]
		q.at(p.Arrived)
		if p.Fate == link.Delivered || p.Fate == link.Lost {
			v.packets++
			want := p.ECN != 0 && q.bytes >= int(s.Mark.Bytes)
			if want {
				v.acted++
			}
			if p.Marked != want && !q.close(p.Arrived) {
				v.fault(&p.Result, "marked %v with %d bytes queued", p.Marked, q.bytes)
			}
		}
		q.add(p)
	}
	return v
}

// early follows Floyd and Jacobson's figure 2 through a log. Below min nothing is marked or dropped,
// above max everything, and between them the number agrees with the probabilities. sigmas is the
// deviation of that number.
func early(s link.Spec, packets []carried) (v verdict, sigmas float64) {
	type state struct {
		link.Profile
		count int
	}
	classes := map[uint8]*state{}
	other := &state{s.RED.Profile, -1}
	for _, c := range s.RED.Classes {
		one := &state{c.Profile, -1}
		for _, d := range c.DSCP {
			classes[d] = one
		}
	}
	weight := s.RED.Weight
	if weight == 0 {
		weight = 0.002 // section 6
	}
	frame := 1514 * 8e9 / float64(s.Slowest())
	var q inQueue
	avg, empty, hits, expected, variance := 0.0, int64(0), 0.0, 0.0, 0.0
	for i := range packets {
		p := &packets[i]
		if len(q.waiting) > 0 {
			last := q.waiting[len(q.waiting)-1].began
			if q.at(p.Arrived); q.segments == 0 {
				empty = last
			}
		}
		size := float64(q.bytes)
		c := classes[p.DSCP]
		if c == nil {
			c = other
		}
		low, high := float64(c.Min.Bytes), float64(c.Max.Bytes)
		if c.Min.Segments > 0 {
			size, low, high = float64(q.segments), float64(c.Min.Segments), float64(c.Max.Segments)
		}
		if q.segments > 0 {
			avg += weight * (size - avg)
		} else {
			avg *= math.Pow(1-weight, float64(p.Arrived-empty)/frame)
			empty = p.Arrived
		}
		hit := p.Fate == link.Early || p.Marked
		if v.packets++; hit {
			v.acted++
		}
		switch {
		case avg < low:
			c.count = -1
			if hit && !nearly(avg, low) {
				v.fault(&p.Result, "hit at an average of %.1f, below min", avg)
			}
		case avg >= high:
			c.count = 0
			if !hit && !nearly(avg, high) && p.Fate != link.Overflowed {
				v.fault(&p.Result, "passed at an average of %.1f, above max", avg)
			}
		default:
			c.count++
			pb := c.Probability * (avg - low) / (high - low)
			pa := 1.0
			if left := 1 - float64(c.count)*pb; left > 0 {
				pa = min(pb/left, 1)
			}
			expected += pa
			variance += pa * (1 - pa)
			if hit {
				hits++
				c.count = 0
			}
		}
		q.add(p)
	}
	if variance == 0 { // then nothing was random, and the log proves nothing
		v.wrong++
		v.first = "the average was never between min and max"
		return v, 0
	}
	return v, math.Abs(hits-expected) / math.Sqrt(variance)
}

// nearly reports whether rounding of times may have moved avg across the threshold.
func nearly(avg, threshold float64) bool { return math.Abs(avg-threshold) < threshold*1e-3 }

// bucketed: each segment has its tokens when it begins, none waits that has them, and the peak rate is
// not exceeded.
func bucketed(s link.Spec, zero int64, packets []carried) (v verdict) {
	b := s.Bucket
	rate := float64(b.Rate) / 8e9 // bytes per ns
	tokens, gift, at, gifts := float64(b.Size), 0.0, zero, int64(0)
	busy, free := float64(zero), float64(zero)
	slack := rate*tolerance + 1e-6*float64(b.Size)
	for i := range packets {
		p := &packets[i]
		v.packets++
		now := p.began
		if b.Police {
			now = p.Arrived
		}
		if now < 0 {
			continue
		}
		before := tokens + gift
		tokens = min(tokens+float64(now-at)*rate, float64(b.Size))
		at = now
		given := false
		if b.GiftEvery > 0 {
			if n := (now - zero) / int64(b.GiftEvery); n > gifts {
				gifts, gift, given = n, float64(b.Gift), true
			}
		}
		has := tokens + gift
		if b.Police {
			if (p.Fate == link.Policed) != (has < float64(p.Size)) && math.Abs(has-float64(p.Size)) > slack {
				v.fault(&p.Result, "policed %v with %.0f tokens", p.Fate == link.Policed, has)
			}
			if p.Fate == link.Policed {
				v.acted++
				continue
			}
		} else {
			if has < float64(p.Size)-slack {
				v.fault(&p.Result, "began with %.1f tokens for %d bytes", has, p.Size)
			}
			could := max(float64(p.Arrived), busy, free)
			waited := float64(now) - could
			if waited > tolerance {
				v.acted++
			}
			if waited > tolerance && has > float64(p.Size)+slack && !given {
				v.fault(&p.Result, "waited %.0f ns with %.1f tokens for %d bytes (%.1f before)", waited, has, p.Size, before)
			}
			if float64(now) < free-tolerance {
				v.fault(&p.Result, "began %.0f ns before the peak rate allows", free-float64(now))
			}
		}
		if peak := float64(b.Peak); peak > 0 {
			if b.PeakLow > 0 {
				peak = float64(b.PeakLow) + min(max(has, 0)/float64(b.Size), 1)*float64(b.Peak-b.PeakLow)
			}
			free = max(free, float64(now)) + float64(p.Size)*8e9/peak
		}
		busy = float64(p.Departed)
		if tokens -= float64(p.Size); tokens < 0 {
			gift, tokens = max(gift+tokens, 0), min(0, gift+tokens)
		}
	}
	return v
}

// inIntervals: tokens are added only at the beginning of each interval, unused ones are kept up to one
// frame, and a segment without tokens waits for the next interval.
func inIntervals(s link.Spec, zero int64, packets []carried) (v verdict) {
	x := s.Xen
	interval, delta := int64(x.Interval), float64(x.Tokens)
	tokens, tick, busy := delta, int64(0), zero
	for i := range packets {
		p := &packets[i]
		v.packets++
		if p.began < 0 {
			continue
		}
		phase := (p.began - zero) % interval
		for n := (p.began - zero) / interval; tick < n; tick++ {
			tokens = min(tokens+delta, delta+1522)
		}
		if tokens < float64(p.Size) {
			v.fault(&p.Result, "began with %.0f tokens for %d bytes", tokens, p.Size)
		}
		waited := off(p.began, max(p.Arrived, busy)) > tolerance
		if waited {
			v.acted++
		}
		if waited && phase > tolerance {
			v.fault(&p.Result, "waited and began %v into an interval", time.Duration(phase))
		}
		tokens -= float64(p.Size)
		busy = p.Departed
	}
	return v
}
