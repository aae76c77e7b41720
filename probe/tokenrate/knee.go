package tokenrate

import (
	"math"

	"headgate/probe"
)

// curve is a train's arrival curve: how many bytes of layer 2 had come by when, the
// first packet at time 0.
type curve struct {
	at    []float64 // ns
	bytes []float64
	sent  []float64 // ns of the sender's clock, from its first packet on
	gone  []float64 // how many bytes had been sent by then, with those that were lost
}

func newCurve(s *probe.Sample) (c curve) {
	frames := make([]float64, 0, s.Count())
	for _, p := range s.Parts {
		for range p.Count {
			frames = append(frames, float64(p.Frame()))
		}
	}
	gone := make([]float64, len(frames))
	sum := 0.0
	for i, f := range frames {
		sum += f
		gone[i] = sum
	}
	total := 0.0
	for _, a := range s.Arrived {
		total += frames[a.Number]
		c.at = append(c.at, float64(a.At-s.Arrived[0].At))
		c.bytes = append(c.bytes, total)
		c.sent = append(c.sent, float64(s.Sent[a.Number]-s.Sent[0]))
		c.gone = append(c.gone, gone[a.Number])
	}
	return c
}

// sums are those of a regression of time on bytes.
type sums struct{ n, x, y, xx, xy, yy float64 }

func (s sums) add(x, y float64) sums {
	return sums{s.n + 1, s.x + x, s.y + y, s.xx + x*x, s.xy + x*y, s.yy + y*y}
}

func (s sums) less(o sums) sums {
	return sums{s.n - o.n, s.x - o.x, s.y - o.y, s.xx - o.xx, s.xy - o.xy, s.yy - o.yy}
}

// line is y = base + slope * x with least squares, and what it leaves unexplained.
func (s sums) line() (base, slope, rest float64) {
	vx, vy, cov := s.xx-s.x*s.x/s.n, s.yy-s.y*s.y/s.n, s.xy-s.x*s.y/s.n
	if vx > 0 {
		slope = cov / vx
	}
	return (s.y - slope*s.x) / s.n, slope, max(vy-slope*cov, 0)
}

// leastTail is how many packets either side of a knee has at least.
const leastTail = 10

// knee is the packet from which on the curve is best drawn as a second line: the
// least sum of squares of both. It is 0 if one line says as much.
func (c curve) knee() int {
	n := len(c.at)
	if n < 2*leastTail {
		return 0
	}
	prefix := make([]sums, n+1)
	for i := range n {
		prefix[i+1] = prefix[i].add(c.bytes[i], c.at[i])
	}
	all := prefix[n]
	_, _, one := all.line()
	best, at := math.Inf(1), 0
	for k := leastTail; k <= n-leastTail; k++ {
		_, _, before := prefix[k].line()
		_, _, after := all.less(prefix[k]).line()
		if before+after < best {
			best, at = before+after, k
		}
	}
	// Two lines always fit a little better. F of a straight, noisy curve stays far
	// below 1/2 of what is left.
	if best > one/4 {
		return 0
	}
	return at
}

// rate of the packets from i on, by a straight line through them, in bit/s.
func (c curve) rate(i int) float64 {
	var s sums
	for ; i < len(c.at); i++ {
		s = s.add(c.bytes[i], c.at[i])
	}
	if _, slope, _ := s.line(); slope > 0 {
		return 8e9 / slope
	}
	return math.Inf(1)
}

// offered is the same at the sender, who also offered what was lost.
func (c curve) offered(i int) float64 {
	n := len(c.sent) - 1
	if took := c.sent[n] - c.sent[i]; took > 0 {
		return (c.gone[n] - c.gone[i]) * 8e9 / took
	}
	return math.Inf(1)
}
