package measure

import (
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/available"
	"headgate.dev/headgate/probe/limiter"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/unit"
)

// Replayed is the result of a log. Depending on the logged command, one of the fields is set.
type Replayed struct {
	Report      *path.Report
	Watch       *WatchReport
	Comparisons []Comparison
}

// Replay repeats the estimates from the samples of a log, with a known capacity of the path unless it is
// 0, and with the methods of the estimation seed if seed is set. done, if not nil, is called after each
// direction of a path.
func Replay(log *probe.LogContents, capacity unit.Rate, seed bool, done func(probe.Direction, []probe.Sample, *path.Answer) error) (Replayed, error) {
	switch {
	case log.Head.Command == ticksCommand:
		samples := make([]probe.JointSample, len(log.Joint))
		for i := range log.Joint {
			samples[i] = log.Joint[i].Sample
		}
		return Replayed{Report: ticksReport(log.Head.Host, log.Head.RTT, available.PacketTick{Highest: float64(capacity)}, samples)}, nil
	case log.Head.Command == watchCommand:
		out := &WatchReport{Host: log.Head.Host, Directions: map[probe.Direction]*limiter.WatchResult{}}
		for d, samples := range log.Samples {
			r := limiter.Watch{}.Estimate(samples)
			out.Directions[d] = &r
		}
		return Replayed{Watch: out}, nil
	case len(log.Joint) > 0:
		return Replayed{Comparisons: replayComparisons(log.Joint, seed)}, nil
	}
	parts, ok := path.PartsOf(log.Head.Command)
	if !ok {
		parts = path.AllParts
	}
	m := path.Method{Parts: parts, KnownCapacity: capacity, Seed: seed}
	out := &path.Report{Host: log.Head.Host, RTT: log.Head.RTT, Directions: map[probe.Direction]*path.Answer{}}
	for d, samples := range log.Samples {
		answer := m.Estimate(samples)
		out.Directions[d] = &answer
		if done != nil {
			if err := done(d, samples, &answer); err != nil {
				return Replayed{}, err
			}
		}
	}
	return Replayed{Report: out}, nil
}
