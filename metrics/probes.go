package metrics

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/unit"
)

// MaxProbes is the maximum number of results that are exported, chosen by this project: 2,000 results make a
// scrape of 4 MB.
const MaxProbes = 2000

// ProbeState is the state of the probe schedule, with its newest results.
type ProbeState struct {
	// Newest has the newest result of each direction and measure; Truncated reports whether there are more
	// than MaxProbes.
	Newest    []Probe
	Truncated bool
	// Running is the number of running measurements.
	Running int
	// Spent is the number of bytes that measurements have sent through each host today.
	Spent map[string]unit.Bytes
}

// Probe is the newest result of one direction and measure.
type Probe struct {
	From, To, Measure string
	// At is the time of the measurement, LastAttempt that of the last attempt. At is zero, and Answer nil, if every
	// attempt has failed.
	At, LastAttempt time.Time
	// Failed reports whether the last attempt failed, or measured only a part.
	Failed bool
	RTT    time.Duration
	// OwnLimit is the lowest limit that Headgate had at either end during the measurement, 0 if there was none.
	OwnLimit unit.Rate
	Answer   *path.Answer
}

// NewProbes returns the collector of the newest results of the probe schedule. Only the leader exports the
// results, so that each exists once: read returns nil, without an error, on the other controllers.
func NewProbes(read func() (*ProbeState, error)) prometheus.Collector { return probes{read} }

type probes struct{ read func() (*ProbeState, error) }

// probeLabels are the labels of a measurement.
var probeLabels = []string{"from", "to", "measure"}

// ofEstimate has the metrics of an estimate and of the ends of its interval. Their names are those of
// "headgate probe mesh".
type ofEstimate struct {
	of               func(*path.Answer) *probe.Estimate
	value, low, high *prometheus.Desc
}

// estimate returns the metrics of an estimate.
func estimate(name, unit, help string, of func(*path.Answer) *probe.Estimate) ofEstimate {
	desc := func(part, help string) *prometheus.Desc {
		return prometheus.NewDesc("headgate_probe_"+name+part+"_"+unit, help, probeLabels, nil)
	}
	return ofEstimate{of, desc("", help), desc("_low", "Lower end of the 90 % interval of the estimate."), desc("_high", "Upper end of the 90 % interval of the estimate.")}
}

var (
	probeSuccess     = prometheus.NewDesc("headgate_probe_success", "1 if the last attempt of the measurement was complete.", probeLabels, nil)
	probeAt          = prometheus.NewDesc("headgate_probe_last_completed_timestamp_seconds", "Time of the last completed measurement.", probeLabels, nil)
	probeLastAttempt = prometheus.NewDesc("headgate_probe_last_attempt_timestamp_seconds", "Time of the last attempt.", probeLabels, nil)
	probeRTT         = prometheus.NewDesc("headgate_probe_round_trip_seconds", "Minimum round-trip time of the handshake.", probeLabels, nil)
	probeLoss        = prometheus.NewDesc("headgate_probe_loss_ratio", "Fraction of the probe packets that were lost.", probeLabels, nil)
	probeOwnLimit    = prometheus.NewDesc("headgate_probe_own_limit_bits_per_second", "Lowest limit that Headgate had at either end during the measurement, if there was one.", probeLabels, nil)
	probeRunning     = prometheus.NewDesc("headgate_probe_running", "Number of running measurements.", nil, nil)
	probeSpent       = prometheus.NewDesc("headgate_probe_budget_spent_bytes", "Bytes that measurements have sent through the host today, of its daily budget.", []string{"host"}, nil)
	probesTruncated  = prometheus.NewDesc("headgate_probe_results_truncated", "1 if there are more results than the 2000 that are exported.", nil, nil)

	estimates = []ofEstimate{
		estimate("capacity", "bits_per_second", "Capacity of the path, in layer 2.", func(a *path.Answer) *probe.Estimate { return a.Capacity }),
		estimate("token_rate", "bits_per_second", "Token rate of the path, in layer 2.", func(a *path.Answer) *probe.Estimate {
			switch {
			case a.TokenRate != nil && !a.TokenRate.Rate.Carried(): // a bound for some bytes is no rate of the path
				return &a.TokenRate.Rate
			case a.Limiter != nil && a.Limiter.Bucket != nil:
				return &a.Limiter.Bucket.Rate
			}
			return nil
		}),
		estimate("bucket", "bytes", "Bucket size of the path's limiter, in layer 2.", func(a *path.Answer) *probe.Estimate {
			switch {
			case a.Limiter != nil && a.Limiter.Bucket != nil:
				return &a.Limiter.Bucket.Size
			case a.TokenRate != nil:
				return &a.TokenRate.Bucket
			}
			return nil
		}),
		estimate("available", "bits_per_second", "Available bandwidth of the path, in layer 2.", func(a *path.Answer) *probe.Estimate {
			if a.Available == nil {
				return nil
			}
			return &a.Available.Available
		}),
	}
)

// Describe implements prometheus.Collector.
func (p probes) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{probeSuccess, probeAt, probeLastAttempt, probeRTT, probeLoss, probeOwnLimit} {
		to <- d
	}
	for _, e := range estimates {
		for _, d := range []*prometheus.Desc{e.value, e.low, e.high} {
			to <- d
		}
	}
	for _, d := range []*prometheus.Desc{probeRunning, probeSpent, probesTruncated} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p probes) Collect(to chan<- prometheus.Metric) {
	now, err := p.read()
	if err != nil {
		// The other metrics are still exported: they show why, if the store is unavailable.
		slog.Warn("cannot read measurement results for metrics", "error", err)
		return
	}
	if now == nil {
		return
	}
	for _, p := range now.Newest {
		p.collect(to)
	}
	gauge(to, probeRunning, float64(now.Running))
	for host, spent := range now.Spent {
		gauge(to, probeSpent, float64(spent), host)
	}
	gauge(to, probesTruncated, boolValue(now.Truncated))
}

// collect sends the metrics of one result.
func (p *Probe) collect(to chan<- prometheus.Metric) {
	of := []string{p.From, p.To, p.Measure}
	gauge(to, probeSuccess, boolValue(!p.Failed), of...)
	gauge(to, probeLastAttempt, seconds(p.LastAttempt), of...)
	if p.At.IsZero() || p.Answer == nil {
		return
	}
	gauge(to, probeAt, seconds(p.At), of...)
	gauge(to, probeLoss, p.Answer.Lost, of...)
	if p.RTT > 0 {
		gauge(to, probeRTT, p.RTT.Seconds(), of...)
	}
	if p.OwnLimit > 0 {
		gauge(to, probeOwnLimit, float64(p.OwnLimit), of...)
	}
	for _, e := range estimates {
		is := e.of(p.Answer)
		switch {
		case is == nil || !is.Known():
		case is.AtLeast:
			gauge(to, e.low, is.Value, of...)
		default:
			gauge(to, e.value, is.Value, of...)
			if is.High > 0 {
				gauge(to, e.low, is.Low, of...)
				gauge(to, e.high, is.High, of...)
			}
		}
	}
}

// seconds returns a Unix time in seconds.
func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1e3 }
