package limiter

import (
	"math"
	"slices"
)

// tail is the end of a train of full-size packets, after the tokens that passed its head
// were used.
type tail struct {
	v     *trainView // all arrivals
	took  *trainView // arrivals without those that the receiver took late
	knee  int        // the first arrival of the tail; 0 if there is no knee
	head  float64    // arrival rate up to the knee, in bit/s; of all if there is no knee
	rate  float64    // arrival rate after the knee
	q     quantum    // quantum of the gaps after the knee
	exact bool       // there is a quantum

	onset  int     // the first packet from which on many are lost; -1 if there is none
	before float64 // arrival rate just before onset
	after  float64 // arrival rate from onset on
	excess float64 // delay from onset on above the minimum, in packet times at after
	loss   float64 // fraction of packets lost from onset on
}

// minPiece is the minimum number of packets on either side of a knee.
const minPiece = 10

func newTail(v *trainView, usualLoss float64) (t tail, ok bool) {
	t = tail{v: v, took: v.withoutLate(), onset: -1}
	at := t.took.at
	if len(at) < 2*minPiece {
		return t, false
	}
	t.knee = t.took.knee()
	from := t.knee
	if from == 0 {
		from = min(minPiece, len(at)/4)
	}
	last := len(at) - 1
	t.rate = v.rate(float64(last-from), at[last]-at[from])
	t.q, t.exact = serves(at[from:])
	t.exact = t.exact && t.q.share >= minShare
	t.head = t.rate
	if t.knee > 0 {
		t.head = v.rate(float64(t.knee-1), at[t.knee-1]-at[0])
	}
	if !v.overflow && !v.stepped {
		t.losses(usualLoss)
	}
	return t, true
}

const (
	// minShare is the minimum fraction of the gaps that agree: with cross traffic of
	// half of a link and several hops there are still more.
	minShare = 0.12
	// rises is the increase of the loss that a queue or a policer causes: a limiter at
	// 0.9 of the sending rate drops a tenth.
	rises = 0.07
	// evident is the minimum gain in log likelihood of two loss rates over one: the best
	// of a thousand positions to split a train gains 7 by chance.
	evident = 10
	// justBefore is the number of arrivals before the first drop that give the rate
	// before.
	justBefore = 40
)

// served returns the rate at which packets are served: from the gaps if they agree.
func (t *tail) served() float64 {
	if t.exact {
		return math.Max(t.v.frame*8e9/t.q.gap, t.rate)
	}
	return t.rate
}

// sums are the sums of a linear regression of time on packets.
type sums struct{ n, x, y, xx, xy, yy float64 }

func (s sums) add(x, y float64) sums {
	return sums{s.n + 1, s.x + x, s.y + y, s.xx + x*x, s.xy + x*y, s.yy + y*y}
}

func (s sums) less(o sums) sums {
	return sums{s.n - o.n, s.x - o.x, s.y - o.y, s.xx - o.xx, s.xy - o.xy, s.yy - o.yy}
}

// rest returns the residual sum of squares of a straight line.
func (s sums) rest() float64 {
	vx, vy, cov := s.xx-s.x*s.x/s.n, s.yy-s.y*s.y/s.n, s.xy-s.x*s.y/s.n
	if vx <= 0 {
		return max(vy, 0)
	}
	return max(vy-cov*cov/vx, 0)
}

// knee returns the arrival at which the curve is best split into two lines; 0 if one line
// fits as well (F of a straight curve with noise stays far below 1/2).
func (v *trainView) knee() int {
	n := len(v.at)
	if n < 2*minPiece {
		return 0
	}
	prefix := make([]sums, n+1)
	for i := range n {
		prefix[i+1] = prefix[i].add(float64(i), v.at[i]-v.at[0])
	}
	best, at := math.Inf(1), 0
	for k := minPiece; k <= n-minPiece; k++ {
		if both := prefix[k].rest() + prefix[n].less(prefix[k]).rest(); both < best {
			best, at = both, k
		}
	}
	if best > prefix[n].rest()/4 {
		return 0
	}
	return at
}

// losses finds the packet from which on more are lost: the position for which two loss
// rates, one before and one after, have the highest likelihood.
func (t *tail) losses(usual float64) {
	v := t.v
	n := len(v.sent)
	came := make([]int, n+1) // arrivals before each packet
	for _, i := range v.n {
		came[i+1] = 1
	}
	for i := range n {
		came[i+1] += came[i]
	}
	best, at := math.Inf(-1), 0
	for i := 0; i < n-minPiece; i++ {
		if likely := chance(came[i], i) + chance(came[n]-came[i], n-i); likely > best {
			best, at = likely, i
		}
	}
	if best-chance(came[n], n) < evident {
		at = 0
	}
	t.loss = 1 - float64(came[n]-came[at])/float64(n-at)
	if t.loss < usual+rises || t.loss*float64(n-at) < minPiece {
		t.loss = 0
		return
	}
	t.onset = at
	t.rates()
}

// chance returns the log likelihood of k successes of n.
func chance(k, n int) float64 {
	if k == 0 || k == n {
		return 0
	}
	p := float64(k) / float64(n)
	return float64(k)*math.Log(p) + float64(n-k)*math.Log(1-p)
}

// rates computes the rates before and after the first drop, without late arrivals.
func (t *tail) rates() {
	v := t.took
	first, last := firstFrom(v, t.onset), len(v.at)-1
	if last-first < minPiece {
		return
	}
	took := v.at[last] - v.at[first]
	for _, s := range v.silences() {
		if s.after >= first {
			took -= s.length()
		}
	}
	for _, s := range t.v.unsent() {
		if s.after >= t.onset {
			took -= s.length()
		}
	}
	t.after = v.rate(float64(last-first), took)
	if from := max(0, first-justBefore); first-from > 4 {
		t.before = v.rate(float64(first-1-from), v.at[first-1]-v.at[from])
	}
	var delays []float64
	lowest := math.Inf(1)
	for j := range v.at {
		d := v.delay(j)
		lowest = math.Min(lowest, d)
		if j >= (first+last)/2 {
			delays = append(delays, d)
		}
	}
	t.excess = (median(delays) - lowest) * t.after / (v.frame * 8e9)
}

// passed returns the rate from the first drop on at which a policer passes packets. Its bucket fills while nothing arrives at it: a time in which hosts or the path
// were silent counts, with what arrived late, except what the bucket could not hold. Without those times a policer of 30 Mbit/s over switches in user space, which
// are silent for a tenth of the time, was 5 to 19 % too fast.
func (t *tail) passed() float64 {
	v := t.v
	first, last := firstFrom(v, t.onset), len(v.at)-1
	took := v.at[last] - v.at[first]
	rate := v.rate(float64(last-first), took)
	held := float64(t.onset)*v.frame*8e9/rate - (v.sent[max(t.onset-1, 0)] - v.sent[0]) // ns that the bucket lasts
	for _, s := range v.unsent() {
		if s.after >= t.onset {
			took -= math.Max(s.length()-math.Max(held, 0), 0)
		}
	}
	return v.rate(float64(last-first), took)
}

// firstFrom returns the first arrival of a packet from n on, the number of arrivals if there is none.
func firstFrom(v *trainView, n int) int {
	if j := slices.IndexFunc(v.n, func(i int) bool { return i >= n }); j >= 0 {
		return j
	}
	return len(v.n)
}

// limited reports whether the train arrived slower than it was sent.
func (t *tail) limited() bool {
	return t.served() < follows*t.v.offered() && t.took.stretch() > 1/follows
}

// follows is the minimum fraction of its sending rate at which a train arrives without a
// limiter.
const follows = 0.97

// policed reports whether a policer drops packets that find no tokens: packets are lost,
// the others were not queued, and their rate fell when the losses began. A queue that
// overflows is full (at least some hundred packets), and its rate is the same before and
// after.
func (t *tail) policed() bool {
	if t.onset < 0 || t.after == 0 || t.excess > shortQueue || t.v.asked > 0 && t.excess > leastQueue && t.exact && t.q.share >= evenly {
		return false
	}
	if t.v.asked > 0 {
		return t.after < 0.95*t.v.offered()
	}
	return t.before > 0 && t.after < fell*t.before && len(t.v.unsent()) == 0
}

const (
	// shortQueue is the maximum queue before a policer, in packets.
	shortQueue = 40
	fell       = 0.85
	// leastQueue is the shortest queue of a shaper from which a paced train leaves evenly. What passes a policer waits nowhere.
	leastQueue = 6
)

const (
	// A head is not from cross traffic if it lasts this long (ns), or if it is this much
	// faster.
	longHead   = 150e3
	muchFaster = 1.6
)

// headStands reports whether the knee is from a limiter.
func (t *tail) headStands() bool {
	return t.knee > 0 && (t.took.at[t.knee-1]-t.took.at[0] > longHead || t.head > muchFaster*t.rate)
}

// slowTail packets suffice if they arrive singly and evenly for slowTime: more of them
// would delay all other traffic in the queue of a slow shaper.
const slowTail, slowTime = 30, 6e6 // ns

// steady reports whether the tail is long enough in that sense.
func (t *tail) steady() bool {
	at := t.took.at[t.knee:]
	return len(at) >= slowTail && at[len(at)-1]-at[0] >= slowTime && t.exact && t.q.share >= evenly
}
