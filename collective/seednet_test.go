package collective_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"
)

// seedResult has means over the minute with FTP traffic: Mbit/s of both databases, the
// relative error of their ratio, retransmitted segments, and the variation of the first
// one's rate over half-seconds, relative to its mean and beyond that of its offered rate.
// It also has the fraction of the old rate from 5 to 15 s after that minute, and whether
// the set was controlled until 20 s after it.
type seedResult struct{ carried, off, resent, segments, rough, recovered, controlled float64 }

func (s *sim) both(of func(*tcp) float64) (sum float64) {
	for _, t := range s.set {
		sum += of(t)
	}
	return sum
}

func resent(t *tcp) float64 { return float64(t.resent) }

func (n seedNet) run(seed uint64, controlled bool) (r seedResult) {
	s := n.sim(seed, controlled)
	db1, db2 := s.set[0], s.set[1]
	s.run(30 * time.Second)
	offered := [2]float64{db1.offered, db2.offered}
	s.files(n.ftp, n.offered*1.1e6, 90*time.Second)
	a, b, again := db1.acked, db2.acked, s.both(resent)
	var rates, asked []float64
	for at := 30 * time.Second; at < 90*time.Second; {
		had, was := db1.acked, db1.offered
		at += 500 * time.Millisecond
		s.run(at)
		if at > 35*time.Second { // in the first seconds both still fill the path
			rates, asked = append(rates, db1.acked-had), append(asked, db1.offered-was)
		}
	}
	r.rough = math.Sqrt(max(variance(rates)-variance(asked), 0))
	a, b = db1.acked-a, db2.acked-b
	r.carried, r.segments, r.resent = (a+b)*8/60e6, (a+b)/carries, s.both(resent)-again
	r.off = math.Abs(a/b/(offered[0]/offered[1]) - 1)
	s.run(95 * time.Second)
	a, b = db1.acked, db2.acked
	s.run(105 * time.Second)
	r.recovered = 2.5 * min((db1.acked-a)/offered[0], (db2.acked-b)/offered[1])
	r.controlled = 1
	for free := time.Duration(0); s.now < 110*time.Second && free < time.Second; {
		s.run(s.now + 100*time.Millisecond)
		if free += 100 * time.Millisecond; s.control.Controlling() {
			free = 0
		} else if free == time.Second {
			r.controlled = 0
		}
	}
	return r
}

// mean returns the mean of some runs.
func (n seedNet) mean(runs uint64, controlled bool) (r seedResult) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for seed := range runs {
		all.Go(func() {
			x := n.run(seed, controlled)
			mu.Lock()
			defer mu.Unlock()
			f := 1 / float64(runs)
			r.carried, r.off, r.resent, r.segments = r.carried+f*x.carried, r.off+f*x.off, r.resent+f*x.resent, r.segments+f*x.segments
			r.rough += f * x.rough
			r.recovered, r.controlled = r.recovered+f*x.recovered, r.controlled+f*x.controlled
		})
	}
	all.Wait()
	return r
}

// The seed's network in virtual time, six runs of each case. The ratio is kept where
// plain TCP divides equally, the set carries about as much as with plain TCP, the old rate
// is back within 5 s, and control has ended within 20 s in some runs.
//
// The bounds allow for only six runs; bench collective has the real ones, on real TCP.
func TestControlSeedNetwork(t *testing.T) {
	for _, maxQueue := range []float64{120, 60, 240} {
		for _, class := range [][2]int{{high, low}, {low, low}, {high, high}, {low, high}} {
			for _, offered := range []float64{8, 4, 2} {
				if class[0] < class[1] && offered < 8 {
					continue // as with one class
				}
				n := seedNet{maxQueue: maxQueue, ftp: class[0], db: class[1], offered: offered}
				t.Run(fmt.Sprintf("%v-%v-%v", maxQueue, class, offered), func(t *testing.T) {
					plain, ours := n.mean(6, false), n.mean(6, true)
					t.Logf("carried %.2f of %.2f Mbit/s, ratio off %.1f %% of %.1f, retransmitted %.0f of %.0f, varies by %.2f of %.2f, recovered %.2f, controlled %.1f",
						ours.carried, plain.carried, 100*ours.off, 100*plain.off, ours.resent, plain.resent, ours.rough, plain.rough, ours.recovered, ours.controlled)
					if ours.off > 0.1 && ours.carried > 0.45 {
						t.Errorf("error of the ratio is %.1f %%, of plain TCP %.1f", 100*ours.off, 100*plain.off)
					}
					if ours.resent > 1.25*plain.resent {
						t.Errorf("%.0f segments are retransmitted, by plain TCP %.0f", ours.resent, plain.resent)
					}
					// Six runs of 60 s vary by a tenth, and at less than 1 Mbit/s by a quarter.
					least := 0.85
					if offered == 8 {
						least = 0.7
					}
					if ours.carried < least*plain.carried {
						t.Errorf("total rate is %.2f Mbit/s, of plain TCP %.2f", ours.carried, plain.carried)
					}
					if ours.recovered < 0.9 {
						t.Errorf("the rate recovered to %.0f %% of the old one", 100*ours.recovered)
					}
					if ours.controlled > 0.9 {
						t.Errorf("%.0f %% of the runs are controlled 20 s after", 100*ours.controlled)
					}
				})
			}
		}
	}
}

// variance returns the variance of the values relative to their mean squared.
func variance(v []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range v {
		sum, squares = sum+x, squares+x*x
	}
	n := float64(len(v))
	mean := sum / n
	return squares/n/(mean*mean) - 1
}

// Messages that use 79 % of a link sometimes queue behind each other. That is not
// congestion, and the offered rates are learned.
func TestControlMessages(t *testing.T) {
	controlled, off := 0.0, 0.0
	const runs, calm = 10, 25 * time.Second
	for seed := range uint64(runs) {
		s := seedNet{maxQueue: 120, ftp: high, db: low}.sim(seed, true)
		for s.now < 5*time.Second+calm {
			s.run(s.now + 100*time.Millisecond)
			if s.control.Controlling() {
				controlled += 0.1 / calm.Seconds() / runs
			}
		}
		a, _ := s.control.LearnedRate(1)
		b, _ := s.control.LearnedRate(2)
		off += math.Abs(float64(a)/float64(b)/(s.set[0].offered/s.set[1].offered)-1) / runs
	}
	t.Logf("controlled %.0f %% of the time, error of the learned ratio %.1f %%", 100*controlled, 100*off)
	if controlled > 0.6 {
		t.Errorf("controlled %.0f %% of the time", 100*controlled)
	}
	if off > 0.02 {
		t.Errorf("error of the ratio of learned rates is %.1f %% of the offered one", 100*off)
	}
}
