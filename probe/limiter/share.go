package limiter

import "math"

// part is the rate that one train received of a limiter with cross traffic. With FIFO
// service, got = all * p / (p + x), for a train at rate p and cross traffic at rate x. So
// 1/got is linear in 1/p, and all is the value for infinite p.
type part struct {
	p   float64 // bit/s
	got float64
	off float64 // standard deviation of got
}

// totalRate returns the total rate of the limiter and its standard deviation.
func totalRate(parts []part) (all, off float64) {
	var w, x, y, xx, xy float64
	for _, p := range parts {
		weight := p.weight()
		w += weight
		x += weight / p.p
		y += weight / p.got
		xx += weight / (p.p * p.p)
		xy += weight / (p.p * p.got)
	}
	base, slope, variance := y/w, 0.0, 1/w
	if apart := xx - x*x/w; apart > wide*xx {
		if b := (xy - x*y/w) / apart; b > 0 && (y-b*x)/w > 0 {
			base, slope, variance = (y-b*x)/w, b, xx/(w*apart)
		}
	}
	// Cross traffic varies: the residuals of the line show by how much.
	rest := 0.0
	for _, p := range parts {
		d := 1/p.got - base - slope/p.p
		rest += d * d * p.weight()
	}
	if free := float64(len(parts) - 2); free > 0 {
		variance *= math.Max(1, rest/free)
	}
	return 1 / base, math.Sqrt(variance) / (base * base)
}

// weight returns the weight of 1/got.
func (p part) weight() float64 {
	sigma := p.off / (p.got * p.got)
	return 1 / (sigma * sigma)
}

// wide is how far apart the rates of trains must be for a line: about a quarter.
const wide = 0.01
