package lab

import (
	"math"
	"time"
)

// pftk returns the rate of a long Reno connection, in segments a second: Padhye, Firoiu, Towsley and
// Kurose, "Modeling TCP Throughput: A Simple Model and its Empirical Validation" (1998), section 2,
// the full model without a window limit. p is the probability that a segment starts a loss event, rto
// the first timeout, and b the number of segments per window increase.
func pftk(p float64, rtt, rto time.Duration, b float64) float64 {
	// E[W], equation 13.
	part := (2 + b) / (3 * b)
	w := part + math.Sqrt(8*(1-p)/(3*b*p)+part*part)
	// Q(w), the probability that a loss event is a timeout, equation 24.
	q := min(1, (1-math.Pow(1-p, 3))*(1+math.Pow(1-p, 3)*(1-math.Pow(1-p, w-3)))/(1-math.Pow(1-p, w)))
	// f(p), equation 28.
	f := 1 + p + 2*p*p + 4*math.Pow(p, 3) + 8*math.Pow(p, 4) + 16*math.Pow(p, 5) + 32*math.Pow(p, 6)
	segments := (1-p)/p + w + q/(1-p)
	seconds := rtt.Seconds()*(b/2*w+1) + q*rto.Seconds()*f/(1-p)
	return segments / seconds
}
