package measure

import (
	"context"
	"errors"
	"slices"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/compare"
	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/unit"
)

// Comparison is the comparison of two senders' paths to this host.
type Comparison struct {
	First  string         `json:"first"`
	Second string         `json:"second"`
	Result compare.Result `json:"result"`
	Bytes  unit.Bytes     `json:"bytes"`
	// Seconds is the duration of the comparison.
	Seconds float64 `json:"seconds,omitempty"`
}

// comparison is a method for a pair of senders: the next trains to send, and the estimate.
type comparison struct {
	next     func([]probe.JointSample) (probe.Joint, bool)
	estimate func([]probe.JointSample) compare.Result
}

// comparisonMethod returns the method of the estimation seed, or Headgate's. The seed's method assumes
// equal round trips; session.SendJoint compensates for the difference.
func comparisonMethod(seed bool, budget unit.Bytes) comparison {
	if seed {
		m := compare.PathComp{}
		return comparison{m.Next, m.Estimate}
	}
	m := compare.SmallBlocks{Budget: budget, Size: compareSize}
	return comparison{m.Next, m.Estimate}
}

// compareSize is the packet size in bytes. The method prefers 100 bytes, but hosts cannot send
// and receive enough such packets per second: paths of 200 and 500 Mbit/s had a ratio of 1.57.
const compareSize = 750

// Compare compares the paths from every pair of hosts to this host. budget bounds what each host of a
// pair sends. The result is nil if the measurement did not start. With a later error, the result has the
// pairs before it.
func Compare(ctx context.Context, hosts []Host, seed bool, budget unit.Bytes, o Options) ([]Comparison, error) {
	senders, err := dialAll(ctx, hosts, o)
	if err != nil {
		return nil, err
	}
	defer senders.close()
	log, closeLog, err := o.CreateLog("compare", hosts[0].Name, senders.clients[0])
	if err != nil {
		return nil, err
	}
	pairs, err := senders.compareAll(ctx, seed, budget, log, o)
	return pairs, errors.Join(err, closeLog())
}

// compareAll compares every pair of senders.
func (s *senders) compareAll(ctx context.Context, seed bool, budget unit.Bytes, log *probe.Log, o Options) ([]Comparison, error) {
	out := []Comparison{}
	names := s.names()
	for i := range s.clients {
		for j := i + 1; j < len(s.clients); j++ {
			clients := []*session.Client{s.clients[i], s.clients[j]}
			trips := []time.Duration{s.roundTrips[i], s.roundTrips[j]}
			pair := []string{names[i], names[j]}
			m := comparisonMethod(seed, budget)
			p := Comparison{First: pair[0], Second: pair[1]}
			begun := time.Now()
			var samples []probe.JointSample
			for {
				joint, ok := m.next(samples)
				if !ok {
					break
				}
				o.progress("%s, %s: %s, %s sent", pair[0], pair[1], joint.Purpose, p.Bytes)
				sample, err := session.SendJoint(ctx, clients, trips, joint)
				if err != nil {
					return out, err
				}
				sample.Reordered = s.reordered
				p.Bytes += sample.Bytes()
				samples = append(samples, sample)
				if log != nil {
					if err := log.AddJoint(pair, &sample); err != nil {
						return out, err
					}
				}
			}
			p.Result, p.Seconds = m.estimate(samples), time.Since(begun).Seconds()
			out = append(out, p)
		}
	}
	return out, nil
}

// Ranked is a host with its capacity relative to the fastest.
type Ranked struct {
	Host     string
	Relative probe.Estimate
}

// Rank ranks the hosts of several comparisons on one scale, the fastest first.
func Rank(pairs []Comparison) (out []Ranked) {
	var hosts []string
	indexOf := func(h string) int {
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
		return slices.Index(hosts, h)
	}
	var compared []compare.Pair
	for _, p := range pairs {
		compared = append(compared, compare.Pair{A: indexOf(p.First), B: indexOf(p.Second), Result: p.Result})
	}
	for _, r := range compare.Rank(len(hosts), compared) {
		out = append(out, Ranked{hosts[r.Sender], r.Relative})
	}
	return out
}

// replayComparisons repeats the estimates from the samples of a log.
func replayComparisons(all []probe.LoggedJoint, seed bool) (out []Comparison) {
	var samples [][]probe.JointSample
	for _, r := range all {
		last := len(out) - 1
		if last < 0 || out[last].First != r.Hosts[0] || out[last].Second != r.Hosts[1] {
			out, samples = append(out, Comparison{First: r.Hosts[0], Second: r.Hosts[1]}), append(samples, nil)
			last++
		}
		samples[last] = append(samples[last], r.Sample)
		out[last].Bytes += r.Sample.Bytes()
	}
	for i := range out {
		out[i].Result = comparisonMethod(seed, 0).estimate(samples[i])
	}
	return out
}
