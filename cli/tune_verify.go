package cli

import (
	"context"
	"fmt"
	"math"
	"time"

	"headgate/probe"
	"headgate/probe/path"
	"headgate/probe/tokenrate"
	"headgate/unit"
)

// Constants of the verification, ours.
const (
	// verifyBytes at a limit that is a quarter too high empty a bucket of 5 MB.
	verifyBytes unit.Bytes = 25_000_000
	// verifySeconds is how long that may take on a slow path.
	verifySeconds = 3.0
	// longEnough: an answer that was read from a train of so many bytes is no head of
	// a larger bucket's.
	longEnough unit.Bytes = 8_000_000
	// arrives is the part of what is sent that must get through.
	arrives = 0.98
)

// verifier sends a long train at the limit that would be proposed. What was read from
// short trains may be a link's rate, or what a provider gives before a larger bucket is
// empty: then less than the limit arrives, and this train says how much.
type verifier struct {
	send   sendTrain
	margin unit.Share
	budget unit.Bytes // of a direction, with what was sent before
	own    map[probe.Direction]unit.Rate
	dev    string
	// notes are what to say beside a limit, by direction.
	notes map[probe.Direction]string
}

// verify corrects an answer until the limit that follows from it gets through.
func (v verifier) verify(ctx context.Context, until time.Time, d probe.Direction, samples []probe.Sample, a *path.Answer) error {
	for i := range samples {
		if samples[i].Bytes() >= longEnough {
			return nil
		}
	}
	why, corrected := "", false
	for range 3 {
		limit := propose(a, v.dev, v.own[d], v.margin, v.budget).Limit
		if limit == 0 {
			return nil
		}
		left := v.budget - min(v.budget, a.Bytes)
		seconds := max(0, min(verifySeconds, time.Until(until).Seconds()))
		bytes := min(verifyBytes, left, unit.Bytes(float64(limit)/8*seconds))
		count := int(bytes) / (a.Packet + probe.Overhead)
		if count < 100 && corrected {
			return nil // what the last of them said is not of its head
		}
		if count < 100 {
			none := fmt.Sprintf("of --bytes %s and --time nothing is left to see whether %v gets through for long", v.budget, limit)
			if why != "" {
				none = why + "; " + none
			}
			a.TokenRate.Rate = probe.CannotTell(none)
			return nil
		}
		s, err := v.send(ctx, d, probe.Uniform("tune/verify", count, a.Packet, limit))
		if err != nil {
			return err
		}
		a.Bytes += s.Bytes()
		if tailRate(&s) >= arrives*math.Min(s.SendingRate(), float64(limit)) {
			if most := min(verifyBytes, unit.Bytes(float64(limit)/8*verifySeconds)); bytes < most/10*9 {
				v.notes[d] = fmt.Sprintf("it was tried with %s, where %s would have been: a bucket that holds more than that empties may be behind it (--bytes, --time)", sizeText(float64(bytes)), sizeText(float64(most)))
			}
			return nil
		}
		r := tokenrate.Estimate(&s, math.Inf(1))
		if !r.Rate.Known() {
			// Something stood still, or others came: once more tells.
			why = fmt.Sprintf("of %s at %v only %s arrives, though no limit can be read from it", bytes, limit, bitRate(tailRate(&s)))
			continue
		}
		if r.Bucket.Known() {
			r.Bucket = probe.Estimate{Value: r.Bucket.Value, Low: r.Bucket.Value, AtLeast: true}
		}
		a.TokenRate, corrected = &r, true
		why = "the path gave less each time it was asked for longer"
	}
	a.TokenRate.Rate = probe.CannotTell(why)
	a.TokenRate.Joint = nil
	return nil
}
