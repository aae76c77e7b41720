package service

import "testing"

// Refusals that an earlier program counted are not reported, nor is every further one.
func TestRefusals(t *testing.T) {
	r := refusals{before: 10}
	for _, c := range []struct {
		all, n uint64
		news   bool
	}{{10, 0, false}, {11, 1, true}, {11, 1, false}, {13, 3, true}, {15, 5, false}, {16, 6, true}, {21, 11, false}, {22, 12, true}} {
		if n, news := r.count(c.all); n != c.n || news != c.news {
			t.Errorf("count(%d): %d, %v; want %d, %v", c.all, n, news, c.n, c.news)
		}
	}
}
