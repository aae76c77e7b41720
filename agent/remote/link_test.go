package remote

import (
	"sync/atomic"
	"testing"
	"time"

	"headgate/api/agents"
)

// While the record is read for one question, what is wanted is obeyed, and no second one is read for.
func TestUsageHoldsNothingUp(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.join(t, dir, time.Hour)
	c.heard = make(chan *agents.FromAgent)
	began, on := make(chan struct{}, 10), make(chan struct{})
	var reading, most atomic.Int32
	a := start(t, dir, func(l *Link) {
		l.Report = func() *agents.Report { return nil }
		l.Usage = func(q *agents.UsageQuestion) *agents.UsageAnswer {
			most.Store(max(most.Load(), reading.Add(1)))
			defer reading.Add(-1)
			began <- struct{}{}
			<-on
			return &agents.UsageAnswer{Id: q.Id}
		}
	})
	within(t, "it comes", 10*time.Second, c.hello)
	within(t, "its facts", 5*time.Second, c.heard)
	for id := range uint64(3) {
		c.say <- &agents.ToAgent{Message: &agents.ToAgent_Usage{Usage: &agents.UsageQuestion{Id: id}}}
	}
	within(t, "it reads the record", 5*time.Second, began)
	c.say <- desired(1, 1, eth0(1, limited("10Mbit")))
	within(t, "it obeys meanwhile", 5*time.Second, a.changed)
	close(on)
	for range 3 {
		if m := within(t, "it answers", 5*time.Second, c.heard); m.GetUsage() == nil {
			t.Errorf("it says %v", m)
		}
	}
	if most.Load() != 1 {
		t.Errorf("the record is read for %d questions at a time", most.Load())
	}
}
