package metrics

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"headgate/probe"
	"headgate/probe/path"
	"headgate/unit"
)

// MostProbes are told of. Ours: 2,000 give a scrape of 4 MB.
const MostProbes = 2000

// Probing is what the schedule of measurements has brought.
type Probing struct {
	// Newest are those of each direction and measure; LeftOut is whether there are more than are told of.
	Newest  []Probe
	LeftOut bool
	Running int
	// Spent is what they have brought through hosts today.
	Spent map[string]unit.Bytes
}

// Probe is what was measured last of a direction.
type Probe struct {
	From, To, Measure string
	// At is when that was; zero is that it was only tried, and there is no Answer.
	At, Tried time.Time
	// Failed: it was tried in vain since, or not all was measured.
	Failed bool
	RTT    time.Duration
	Own    unit.Rate
	Answer *path.Answer
}

// Probes are the newest results of the schedule. They are told of by the controller that leads, so that each
// is there once: read is nil, without an error, at the others.
func Probes(read func() (*Probing, error)) prometheus.Collector { return probes{read} }

type probes struct{ read func() (*Probing, error) }

// ofProbe are a measurement's labels.
var ofProbe = []string{"from", "to", "measure"}

// ofEstimate is an estimate with its ends. They are of the names of "headgate probe mesh".
type ofEstimate struct {
	of               func(*path.Answer) *probe.Estimate
	value, low, high *prometheus.Desc
}

func estimate(name, unit, help string, of func(*path.Answer) *probe.Estimate) ofEstimate {
	desc := func(part, help string) *prometheus.Desc {
		return prometheus.NewDesc("headgate_probe_"+name+part+"_"+unit, help, ofProbe, nil)
	}
	return ofEstimate{of, desc("", help), desc("_low", "Lower end of that, of 90 % of measurements."), desc("_high", "Upper end of that.")}
}

var (
	probeSuccess  = prometheus.NewDesc("headgate_probe_success", "Whether it was measured to the end when it was tried last.", ofProbe, nil)
	probeAt       = prometheus.NewDesc("headgate_probe_measured_timestamp_seconds", "When it was measured.", ofProbe, nil)
	probeTried    = prometheus.NewDesc("headgate_probe_tried_timestamp_seconds", "When it was tried last.", ofProbe, nil)
	probeTrip     = prometheus.NewDesc("headgate_probe_round_trip_seconds", "Least round trip of the handshake.", ofProbe, nil)
	probeLoss     = prometheus.NewDesc("headgate_probe_loss_ratio", "Part of its packets that did not arrive.", ofProbe, nil)
	probeOwn      = prometheus.NewDesc("headgate_probe_own_limit_bits_per_second", "The least that Headgate let through at either end meanwhile, if it set a limit.", ofProbe, nil)
	probeRunning  = prometheus.NewDesc("headgate_probe_running", "Measurements that are under way.", nil, nil)
	probeSpent    = prometheus.NewDesc("headgate_probe_spent_bytes", "What measurements have brought through the host today.", []string{"host"}, nil)
	probesLeftOut = prometheus.NewDesc("headgate_probes_left_out", "Whether there are more than the 2000 that are told of.", nil, nil)

	estimates = []ofEstimate{
		estimate("capacity", "bits_per_second", "Rate of the narrow link, of layer 2.", func(a *path.Answer) *probe.Estimate { return a.Capacity }),
		estimate("token_rate", "bits_per_second", "Rate that a long transfer gets, of layer 2.", func(a *path.Answer) *probe.Estimate {
			switch {
			case a.TokenRate != nil:
				return &a.TokenRate.Rate
			case a.Limiter != nil && a.Limiter.Bucket != nil:
				return &a.Limiter.Bucket.Rate
			}
			return nil
		}),
		estimate("bucket", "bytes", "What passes before the token rate holds, of layer 2.", func(a *path.Answer) *probe.Estimate {
			switch {
			case a.Limiter != nil && a.Limiter.Bucket != nil:
				return &a.Limiter.Bucket.Size
			case a.TokenRate != nil:
				return &a.TokenRate.Bucket
			}
			return nil
		}),
		estimate("available", "bits_per_second", "What others leave, of layer 2.", func(a *path.Answer) *probe.Estimate {
			if a.Available == nil {
				return nil
			}
			return &a.Available.Available
		}),
	}
)

// Describe is part of prometheus.Collector.
func (p probes) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{probeSuccess, probeAt, probeTried, probeTrip, probeLoss, probeOwn} {
		to <- d
	}
	for _, e := range estimates {
		for _, d := range []*prometheus.Desc{e.value, e.low, e.high} {
			to <- d
		}
	}
	for _, d := range []*prometheus.Desc{probeRunning, probeSpent, probesLeftOut} {
		to <- d
	}
}

// Collect is part of prometheus.Collector.
func (p probes) Collect(to chan<- prometheus.Metric) {
	now, err := p.read()
	if err != nil {
		// The others are told all the same: they say why, when the store is away.
		slog.Warn("results of measurements are not among the metrics", "error", err)
		return
	}
	if now == nil {
		return
	}
	for _, p := range now.Newest {
		p.tell(to)
	}
	gauge(to, probeRunning, float64(now.Running))
	for host, spent := range now.Spent {
		gauge(to, probeSpent, float64(spent), host)
	}
	gauge(to, probesLeftOut, one(now.LeftOut))
}

func (p *Probe) tell(to chan<- prometheus.Metric) {
	of := []string{p.From, p.To, p.Measure}
	gauge(to, probeSuccess, one(!p.Failed), of...)
	gauge(to, probeTried, seconds(p.Tried), of...)
	if p.At.IsZero() || p.Answer == nil {
		return
	}
	gauge(to, probeAt, seconds(p.At), of...)
	gauge(to, probeLoss, p.Answer.Lost, of...)
	if p.RTT > 0 {
		gauge(to, probeTrip, p.RTT.Seconds(), of...)
	}
	if p.Own > 0 {
		gauge(to, probeOwn, float64(p.Own), of...)
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

func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1e3 }
