package tokenrate

import "math"

// sums are the sums of a linear regression of time on bytes.
type sums struct{ n, x, y, xx, xy, yy float64 }

func (s sums) add(x, y float64) sums {
	return sums{s.n + 1, s.x + x, s.y + y, s.xx + x*x, s.xy + x*y, s.yy + y*y}
}

func (s sums) less(o sums) sums {
	return sums{s.n - o.n, s.x - o.x, s.y - o.y, s.xx - o.xx, s.xy - o.xy, s.yy - o.yy}
}

// line returns the least-squares line y = base + slope * x, and the residual sum of
// squares.
func (s sums) line() (base, slope, rest float64) {
	vx, vy, cov := s.xx-s.x*s.x/s.n, s.yy-s.y*s.y/s.n, s.xy-s.x*s.y/s.n
	if vx > 0 {
		slope = cov / vx
	}
	return (s.y - slope*s.x) / s.n, slope, max(vy-slope*cov, 0)
}

// minTail is the minimum number of packets on either side of a knee.
const minTail = 10

// knee returns the packet at which the curve is best split into two lines: the split with
// the least sum of squares. It returns 0 if one line fits as well.
func (c curve) knee() int {
	n := len(c.at)
	if n < 2*minTail {
		return 0
	}
	prefix := make([]sums, n+1)
	for i := range n {
		prefix[i+1] = prefix[i].add(c.bytes[i], c.at[i])
	}
	all := prefix[n]
	_, _, one := all.line()
	best, at := math.Inf(1), 0
	for k := minTail; k <= n-minTail; k++ {
		_, _, before := prefix[k].line()
		_, _, after := all.less(prefix[k]).line()
		if before+after < best {
			best, at = before+after, k
		}
	}
	// Two lines always fit a little better. For a straight, noisy curve the F statistic
	// stays far below 1/2 of the residual.
	if best > one/4 {
		return 0
	}
	return at
}
