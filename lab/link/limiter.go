package link

import "math"

// limiter determines when a segment may begin. Times of calls never decrease.
type limiter interface {
	// conform returns the first time, at or later, at which there are tokens for size bytes if no
	// others are spent before.
	conform(at int64, size int) int64
	// spend spends tokens at a time.
	spend(at int64, size int)
}

// bucket is a Bucket with its state. The gift is a second bucket. It is filled at once every
// GiftEvery, and is spent when the first is empty: a backlogged sender gets the rate and all of the
// gift.
type bucket struct {
	Bucket
	zero   int64
	tokens float64 // bytes, of the rate
	gift   float64 // bytes
	at     int64   // time of the value of tokens
	gifts  int64   // number of gifts so far
	free   float64 // ns: the earliest next begin at the peak rate
}

func newBucket(b Bucket, zero, now int64) *bucket {
	n := &bucket{Bucket: b, zero: zero, tokens: float64(b.Size), at: now}
	n.gifts = n.giftsAt(now)
	return n
}

func (b *bucket) giftsAt(at int64) int64 {
	if b.GiftEvery == 0 {
		return 0
	}
	return (at - b.zero) / int64(b.GiftEvery)
}

func (b *bucket) refill(at int64) {
	if at <= b.at {
		return
	}
	b.tokens, b.at = b.tokensAt(at), at
	if given := b.giftsAt(at); given > b.gifts {
		b.gifts, b.gift = given, float64(b.Gift)
	}
}

// tokensAt returns the tokens of the rate at a time, if none are spent before.
func (b *bucket) tokensAt(at int64) float64 {
	return min(b.tokens+float64(at-b.at)*float64(b.Rate)/8e9, float64(b.Size))
}

func (b *bucket) conform(at int64, size int) int64 {
	b.refill(at)
	if b.Peak > 0 {
		at = max(at, int64(math.Ceil(b.free)))
	}
	missing := float64(size) - b.gift - b.tokensAt(at)
	if missing <= 0 {
		return at
	}
	full := at + int64(math.Ceil(missing*8e9/float64(b.Rate)))
	if b.GiftEvery == 0 {
		return full
	}
	if next := b.zero + (b.gifts+1)*int64(b.GiftEvery); float64(b.Gift) >= float64(size) {
		return min(full, max(next, at))
	}
	return full
}

func (b *bucket) spend(at int64, size int) {
	b.refill(at)
	if peak := b.peak(); peak > 0 {
		b.free = max(b.free, float64(at)) + float64(size)*8e9/peak
	}
	b.tokens -= float64(size)
	// Up to a nanosecond's tokens may be missing, because conform returns whole nanoseconds.
	if b.gift > 0 && b.tokens < 0 {
		b.gift, b.tokens = max(b.gift+b.tokens, 0), 0
	}
}

// peak returns the rate at which tokens may be spent now; 0 is unlimited.
func (b *bucket) peak() float64 {
	if b.PeakLow == 0 {
		return float64(b.Peak)
	}
	fill := min(max(b.tokens+b.gift, 0)/float64(b.Size), 1)
	return float64(b.PeakLow) + fill*float64(b.Peak-b.PeakLow)
}

// admits reports whether size bytes conform now; for a policer.
func (b *bucket) admits(at int64, size int) bool { return b.conform(at, size) <= at }

// xen is a Xen with its state.
type xen struct {
	Xen
	zero   int64
	ticks  int64 // number of intervals so far
	tokens int64 // bytes
}

func newXen(x Xen, zero, now int64) *xen {
	return &xen{Xen: x, zero: zero, ticks: (now - zero) / int64(x.Interval), tokens: int64(x.Tokens)}
}

func (x *xen) refill(at int64) {
	if ticks := (at - x.zero) / int64(x.Interval); ticks > x.ticks {
		limit := int64(x.Tokens) + LargestFrame
		// Tokens of long idle times do not accumulate.
		x.tokens = min(x.tokens+min(ticks-x.ticks, 1+limit/int64(x.Tokens))*int64(x.Tokens), limit)
		x.ticks = ticks
	}
}

func (x *xen) conform(at int64, size int) int64 {
	x.refill(at)
	missing := int64(size) - x.tokens
	if missing <= 0 {
		return at
	}
	intervals := (missing + int64(x.Tokens) - 1) / int64(x.Tokens)
	return x.zero + (x.ticks+intervals)*int64(x.Interval)
}

func (x *xen) spend(at int64, size int) {
	x.refill(at)
	x.tokens -= int64(size)
}
