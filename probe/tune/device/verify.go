package device

import (
	"context"
	"fmt"
	"math"
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/tokenrate"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/unit"
)

// Constants of the verification, chosen by Headgate.
const (
	// verifyBytes empty a bucket of 5 MB at a limit that is a quarter too high.
	verifyBytes unit.Bytes = 25_000_000
	// verifySeconds is the maximum duration of the train on a slow path.
	verifySeconds = 3.0
	// minVerifiedTrain is the size of a train whose rate needs no verification, because it would have
	// emptied a larger bucket.
	minVerifiedTrain unit.Bytes = 8_000_000
	// minReceivedShare is the share of the sent rate that must be received.
	minReceivedShare = 0.98
)

// verifier sends a long train at the proposed limit. Short trains may have measured the rate
// of a link, or the provider's rate before a larger bucket is empty. Then the received rate is
// below the limit, and the long train measures the actual token rate.
type verifier struct {
	send    measure.SendTrain
	propose func(probe.Direction, *path.Answer) tune.Proposal
	budget  unit.Bytes // of a direction, including bytes sent before
	// notes are remarks on a limit, by direction.
	notes map[probe.Direction]string
}

// verify corrects an answer until a train at the resulting limit is received.
func (v verifier) verify(ctx context.Context, deadline time.Time, d probe.Direction, samples []probe.Sample, a *path.Answer) error {
	for i := range samples {
		if samples[i].Bytes() >= minVerifiedTrain {
			return nil
		}
	}
	why, corrected := "", false
	for range 3 {
		limit := v.propose(d, a).Limit
		if limit == 0 {
			return nil
		}
		left := v.budget - min(v.budget, a.Bytes)
		seconds := max(0, min(verifySeconds, time.Until(deadline).Seconds()))
		bytes := min(verifyBytes, left, unit.Bytes(float64(limit)/8*seconds))
		count := int(bytes) / (a.Packet + probe.Overhead)
		if count < 100 && corrected {
			return nil // the last train was long enough
		}
		if count < 100 {
			reason := fmt.Sprintf("the budget (--bytes %s, --time) is used up, and %v is not verified", v.budget, limit)
			if why != "" {
				reason = why + "; " + reason
			}
			a.TokenRate.Rate = probe.NoEstimate(reason)
			return nil
		}
		s, err := v.send(ctx, d, probe.Uniform("tune/verify", count, a.Packet, limit))
		if err != nil {
			return err
		}
		a.Bytes += s.Bytes()
		if s.TailRate() >= minReceivedShare*math.Min(s.SendingRate(), float64(limit)) {
			if maxBytes := min(verifyBytes, unit.Bytes(float64(limit)/8*verifySeconds)); bytes < maxBytes/10*9 {
				v.notes[d] = fmt.Sprintf("verified with %s instead of %s: a larger bucket may hide a lower rate (raise --bytes or --time)", probe.FormatBytes(float64(bytes)), probe.FormatBytes(float64(maxBytes)))
			}
			return nil
		}
		r := tokenrate.Estimate(&s, math.Inf(1))
		if !r.Rate.Known() {
			// A stalled host or cross traffic: try again.
			why = fmt.Sprintf("of %s sent at %v only %s is received, but the train shows no limiter", bytes, limit, probe.FormatRate(s.TailRate()))
			continue
		}
		if r.Bucket.Known() {
			r.Bucket = probe.Estimate{Value: r.Bucket.Value, Low: r.Bucket.Value, AtLeast: true}
		}
		a.TokenRate, corrected = &r, true
		why = "the measured rate decreased with each longer train"
	}
	a.TokenRate.Rate = probe.NoEstimate(why)
	a.TokenRate.Joint = nil
	return nil
}
