package collective

import (
	"math"
	"time"

	"headgate.dev/headgate/bench"
)

// figures reports whether the paper draws the case beside its rates: router losses (figures 4, 10 and 17), round trips (8, 14 and 20), and what it says of FTP and of
// the utilisation.
func (c seedCase) figures() bool {
	return c.control == "reno" && c.queue != "double" && c.marks != "af11-af31" && c.marks != "af31"
}

// figureClaim is a value of a run that the paper draws or states.
type figureClaim struct {
	name, what string
	aim        bench.Target
	value      func(*seedRun) float64
}

var figureClaims = []figureClaim{
	{"drops", "packets that router 1 drops in the whole run", bench.Target{Op: bench.Measured, Unit: "packets"}, func(s *seedRun) float64 { return float64(s.drops) }},
	{"rtt", "mean round trip of DB1 in the congested minute", bench.Target{Op: bench.Measured, Unit: "ms"}, func(s *seedRun) float64 { mean, _ := s.rtt(); return mean }},
	{"rtt-varies", "standard deviation of that round trip, of its mean", measuredPercent, func(s *seedRun) float64 { mean, deviation := s.rtt(); return 100 * deviation / mean }},
	{"ftp-varies", "standard deviation of FTP's rate over half-seconds, of its mean", measuredPercent, func(s *seedRun) float64 { return 100 * math.Sqrt(variance(s.halves("ftp"))) }},
	{"drain", "ratio DB1:DB2 in the 5 s after the congestion, in which what waited is sent, deviation from the offered ratio", measuredPercent, func(s *seedRun) float64 { return 100 * math.Abs(s.drain()/s.offeredRatio()-1) }},
	{"utilisation", "what all flows carry from the servers, of the link's rate; the paper has near 100 %", measuredPercent, (*seedRun).utilisation},
}

// halves returns the rates of a flow in the half-seconds of the congested minute, without its first 5 s.
func (s *seedRun) halves(flow string) (out []float64) {
	for _, iv := range s.Flow(flow).Intervals {
		if iv.StartSeconds >= s.times.ftp.Seconds()+5 && iv.StartSeconds < s.times.quiet.Seconds()-0.1 {
			out = append(out, iv.DeliveredRate())
		}
	}
	return out
}

// rtt returns the mean and the standard deviation of DB1's smoothed round trip in the congested minute, in ms.
func (s *seedRun) rtt() (mean, deviation float64) {
	var all []float64
	for _, iv := range s.Flow("db1").Intervals {
		if iv.StartSeconds >= s.times.ftp.Seconds() && iv.StartSeconds < s.times.quiet.Seconds()-0.1 {
			all = append(all, float64(iv.SRTTus)/1e3)
			mean += float64(iv.SRTTus) / 1e3
		}
	}
	mean /= float64(len(all))
	return mean, mean * math.Sqrt(max(variance(all), 0))
}

// drain returns the ratio of the databases' rates while they send what waited for the end of the congestion.
func (s *seedRun) drain() float64 {
	rate := func(f string) float64 {
		return s.Flow(f).Between(s.times.quiet, s.times.quiet+5*time.Second).DeliveredRate()
	}
	return rate("db1") / rate("db2")
}

// utilisation returns what all flows carried from the servers in the congested minute, in percent of the link's rate.
func (s *seedRun) utilisation() float64 {
	return 100 * (s.carried("db1") + s.carried("db2") + s.carried("ftp")) / float64(seedRate)
}
