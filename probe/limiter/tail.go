package limiter

import "math"

// tail is how a train of full packets ended, once whatever let its head pass was
// spent.
type tail struct {
	v     *view   // all that came
	took  *view   // what was taken as it came
	knee  int     // the first arrival of the tail; 0 if the train is of one piece
	head  float64 // rate up to the knee by what arrived, in bit/s; of all if there is none
	rate  float64 // and after it, by what arrived
	q     quantum // and by the gaps
	exact bool    // there is a quantum

	onset  int     // the first packet from which on many are lost; -1 if none is
	before float64 // arrival rate just before
	after  float64 // and from there on
	excess float64 // of the delay then, over the least, in packet times at after
	loss   float64 // the part that is lost then
}

// leastPiece is how many packets either side of a knee has at least.
const leastPiece = 10

func newTail(v *view, usualLoss float64) (t tail, ok bool) {
	t = tail{v: v, took: v.prompt(), onset: -1}
	at := t.took.at
	if len(at) < 2*leastPiece {
		return t, false
	}
	t.knee = t.took.knee()
	from := t.knee
	if from == 0 {
		from = min(leastPiece, len(at)/4)
	}
	last := len(at) - 1
	t.rate = v.rate(float64(last-from), at[last]-at[from])
	t.q, t.exact = serves(at[from:])
	t.exact = t.exact && t.q.share >= leastShare
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
	// leastShare of all gaps is the quantum: with half of a link for others and
	// several hops there are still more.
	leastShare = 0.12
	// rises is by how much loss goes up where a queue or a bucket drops: a limiter at
	// 0.9 of what is sent drops a tenth.
	rises = 0.07
	// evident is by how much more likely two chances of loss are than one, as a
	// logarithm: of a thousand places to part a train at, one makes e^7 by chance.
	evident = 10
	// justBefore is how many arrivals before the first drop tell at what rate it came.
	justBefore = 40
)

// served is the rate of what serves packets: by the gaps if they agree.
func (t *tail) served() float64 {
	if t.exact {
		return math.Max(t.v.frame*8e9/t.q.gap, t.rate)
	}
	return t.rate
}

// sums are those of a regression of time on packets.
type sums struct{ n, x, y, xx, xy, yy float64 }

func (s sums) add(x, y float64) sums {
	return sums{s.n + 1, s.x + x, s.y + y, s.xx + x*x, s.xy + x*y, s.yy + y*y}
}

func (s sums) less(o sums) sums {
	return sums{s.n - o.n, s.x - o.x, s.y - o.y, s.xx - o.xx, s.xy - o.xy, s.yy - o.yy}
}

// rest is what a straight line leaves unexplained.
func (s sums) rest() float64 {
	vx, vy, cov := s.xx-s.x*s.x/s.n, s.yy-s.y*s.y/s.n, s.xy-s.x*s.y/s.n
	if vx <= 0 {
		return max(vy, 0)
	}
	return max(vy-cov*cov/vx, 0)
}

// knee is the arrival from which on the curve is best drawn as a second line; 0 if
// one says as much (F of a straight curve with noise stays far below 1/2).
func (v *view) knee() int {
	n := len(v.at)
	if n < 2*leastPiece {
		return 0
	}
	prefix := make([]sums, n+1)
	for i := range n {
		prefix[i+1] = prefix[i].add(float64(i), v.at[i]-v.at[0])
	}
	best, at := math.Inf(1), 0
	for k := leastPiece; k <= n-leastPiece; k++ {
		if both := prefix[k].rest() + prefix[n].less(prefix[k]).rest(); both < best {
			best, at = both, k
		}
	}
	if best > prefix[n].rest()/4 {
		return 0
	}
	return at
}

// losses finds the packet from which on more are lost: where two chances of loss, one
// before and one after, say most of what was.
func (t *tail) losses(usual float64) {
	v := t.v
	n := len(v.sent)
	came := make([]int, n+1) // before each packet
	for _, i := range v.n {
		came[i+1] = 1
	}
	for i := range n {
		came[i+1] += came[i]
	}
	best, at := math.Inf(-1), 0
	for i := 0; i < n-leastPiece; i++ {
		if likely := chance(came[i], i) + chance(came[n]-came[i], n-i); likely > best {
			best, at = likely, i
		}
	}
	if best-chance(came[n], n) < evident {
		at = 0
	}
	t.loss = 1 - float64(came[n]-came[at])/float64(n-at)
	if t.loss < usual+rises || t.loss*float64(n-at) < leastPiece {
		t.loss = 0
		return
	}
	t.onset = at
	t.rates()
}

// chance is the logarithm of the likelihood of k of n.
func chance(k, n int) float64 {
	if k == 0 || k == n {
		return 0
	}
	p := float64(k) / float64(n)
	return float64(k)*math.Log(p) + float64(n-k)*math.Log(1-p)
}

// rates are those around the first drop, of what was taken as it came.
func (t *tail) rates() {
	v := t.took
	first := len(v.n) // arrival after the onset
	for j, i := range v.n {
		if i >= t.onset {
			first = j
			break
		}
	}
	last := len(v.at) - 1
	if last-first < leastPiece {
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
	least := math.Inf(1)
	for j := range v.at {
		d := v.delay(j)
		least = math.Min(least, d)
		if j >= (first+last)/2 {
			delays = append(delays, d)
		}
	}
	t.excess = (median(delays) - least) * t.after / (v.frame * 8e9)
}

// limited tells whether the train came slower than it was sent.
func (t *tail) limited() bool {
	return t.served() < follows*t.v.offered() && t.took.stretch() > 1/follows
}

// follows is the part of what it was sent at that a train comes at, if nothing holds
// it up.
const follows = 0.97

// policed tells whether a bucket drops what finds no tokens: packets are lost, and
// those that are not have not waited; their rate fell as the losses began. A queue
// that overflows is full (at least some hundred packets wait), and its rate is the
// same before and after.
func (t *tail) policed() bool {
	if t.onset < 0 || t.after == 0 || t.excess > shortQueue {
		return false
	}
	if t.v.asked > 0 {
		return t.after < 0.95*t.v.offered()
	}
	return t.before > 0 && t.after < fell*t.before && len(t.v.unsent()) == 0
}

const (
	// shortQueue is what waits at most in front of a policer, in packets.
	shortQueue = 40
	fell       = 0.85
)

const (
	// A head is no accident of cross traffic if it lasts so long (ns), or if it is so
	// much faster.
	longHead   = 150e3
	muchFaster = 1.6
)

// headStands tells whether the knee is one.
func (t *tail) headStands() bool {
	return t.knee > 0 && (t.took.at[t.knee-1]-t.took.at[0] > longHead || t.head > muchFaster*t.rate)
}

// slowTail packets are enough if they come one by one, evenly, for slowTime: more of
// them would stand before everybody else's in a slow shaper's queue.
const slowTail, slowTime = 30, 6e6 // ns

// steady tells whether the tail is such.
func (t *tail) steady() bool {
	at := t.took.at[t.knee:]
	return len(at) >= slowTail && at[len(at)-1]-at[0] >= slowTime && t.exact && t.q.share >= evenly
}
