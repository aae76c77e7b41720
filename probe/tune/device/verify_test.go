package device

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/unit"
)

// On simulated paths, a sustained rate is not changed, and a rate that holds only until a larger
// bucket is empty is corrected. With too few bytes to empty the bucket there is a note, and
// without bytes or time there is no estimate.
func TestVerify(t *testing.T) {
	long := time.Now().Add(time.Hour)
	deceiving := link.Spec{Rate: unit.Gbit, Queue: link.Amount{Time: 50 * time.Millisecond}, Bucket: &link.Bucket{Rate: 100 * unit.Mbit, Size: 2_000_000, Peak: 300 * unit.Mbit}}
	for name, c := range map[string]struct {
		spec     link.Spec
		budget   unit.Bytes
		deadline time.Time
		want     float64 // 0 is no estimate
		note     string
	}{
		"it holds":        {link.Spec{Rate: unit.Gbit, Bucket: &link.Bucket{Rate: 300 * unit.Mbit, Size: 50_000}}, tune.Budget, long, 300e6, ""},
		"a larger bucket": {deceiving, tune.Budget, long, 100e6, ""},
		"few bytes":       {deceiving, 2_000_000, long, 300e6, "a larger bucket may hide"},
		"no bytes":        {deceiving, 250_000, long, 0, ""},
		"no time":         {deceiving, tune.Budget, time.Now(), 0, ""},
	} {
		n := sim.New(sim.Path{Hops: []link.Spec{c.spec}, Noise: 500 * time.Nanosecond}, 1)
		m := path.Method{Parts: path.Parts{TokenRate: true}, KnownCapacity: unit.Gbit, Budget: c.budget}
		var samples []probe.Sample
		for {
			train, ok := m.Next(samples)
			if !ok || tune.Agreed(m, samples) {
				break
			}
			samples = append(samples, n.Send(train))
		}
		a := m.Estimate(samples)
		before := a.TokenRate.Rate
		v := verifier{budget: c.budget, notes: map[probe.Direction]string{}}
		v.send = func(_ context.Context, _ probe.Direction, t probe.Train) (probe.Sample, error) { return n.Send(t), nil }
		v.propose = func(d probe.Direction, a *path.Answer) tune.Proposal {
			return Options{Margin: tune.Margin, Bytes: c.budget}.propose(NewTarget("eth0"), d, a)
		}
		if err := v.verify(t.Context(), c.deadline, probe.Out, samples, &a); err != nil {
			t.Fatal(err)
		}
		r := a.TokenRate.Rate
		t.Logf("%s: %.4g, then %.4g after %s", name, before.Value, r.Value, a.Bytes)
		if !before.Known() || before.Value < 250e6 {
			t.Errorf("%s: the estimate before verification is %+v: this test has no effect", name, before)
		}
		if r.Known() != (c.want > 0) || c.want > 0 && math.Abs(r.Value/c.want-1) > 0.01 {
			t.Errorf("%s: %+v, want %.4g", name, r, c.want)
		}
		if c.want == 0 && !strings.Contains(r.Reason, "--bytes") {
			t.Errorf("%s: %s", name, r.Reason)
		}
		if note := v.notes[probe.Out]; !strings.Contains(note, c.note) || c.note == "" && note != "" {
			t.Errorf("%s: the note is %q", name, note)
		}
		if a.Bytes > c.budget {
			t.Errorf("%s: sent %s with a budget of %s", name, a.Bytes, c.budget)
		}
	}
}
