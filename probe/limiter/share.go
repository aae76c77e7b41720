package limiter

import "math"

// part is what one train got of a limiter that others use, too: first come, first
// served, got = all * p / (p + x), where it came at p and the others at x. So 1/got
// is a straight line over 1/p, and all is where p is endless.
type part struct {
	p   float64 // bit/s
	got float64
	off float64 // standard deviation of got
}

// everything is what the limiter gives to all, and its standard deviation.
func everything(parts []part) (all, off float64) {
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
	// Others are not there evenly: what the line leaves says how much.
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

// weight is that of 1/got.
func (p part) weight() float64 {
	sigma := p.off / (p.got * p.got)
	return 1 / (sigma * sigma)
}

// wide is how far apart trains' rates must be for a line: about by a quarter.
const wide = 0.01
