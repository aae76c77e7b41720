package remote

import (
	"errors"
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

// A host that joins another service obeys that one, whose numbers are lower or by chance the same,
// whether its agent runs meanwhile or is started again; until then it has what it had.
func TestAnotherService(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		first, second, dir := newController(t), newController(t), t.TempDir()
		first.join(t, dir, time.Hour)
		a := start(t, dir, nil)
		within(t, "it comes", 10*time.Second, first.hello)
		first.say <- desired(7, 500, eth0(5, limited("10Mbit")))
		within(t, "it obeys", 5*time.Second, a.changed)
		second.join(t, dir, time.Hour)
		if restarted {
			a.stop()
			a = start(t, dir, nil)
		} else {
			first.stop()
		}
		h := within(t, "it comes to the other service", 20*time.Second, second.hello)
		if h.Fence.Epoch != 0 || h.Fence.Revision != 0 || len(h.Interfaces) != 0 {
			t.Errorf("restarted %v: it has %v of the other service", restarted, h)
		}
		limit := func() string {
			all, _ := a.Intent.Interfaces()
			if len(all) != 1 {
				t.Fatalf("restarted %v: it has %+v", restarted, all)
			}
			return all[0].OutTree.Limit.String()
		}
		if limit() != "10Mbit" {
			t.Errorf("restarted %v: at first it has %s", restarted, limit())
		}
		second.say <- desired(1, 6, eth0(5, limited("20Mbit")))
		within(t, "it obeys the other service", 5*time.Second, a.changed)
		if limit() != "20Mbit" {
			t.Errorf("restarted %v: then it has %s", restarted, limit())
		}
		// Of the same service what is behind is refused as ever.
		again, err := OpenIntent(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Obey(desired(1, 5).GetDesired()); !errors.Is(err, ErrOld) {
			t.Errorf("restarted %v: what is behind: %v", restarted, err)
		}
		a.stop()
	}
}

// Somebody watches, and the stream is lost: it is metered as if nobody did, also before another
// controller is there.
func TestALostStreamWatchesNoMore(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.join(t, dir, time.Hour)
	every := make(chan time.Duration, 10)
	start(t, dir, func(l *Link) { l.Closely = func(d time.Duration) { every <- d } })
	within(t, "it comes", 10*time.Second, c.hello)
	c.say <- &agents.ToAgent{Message: &agents.ToAgent_Watch{Watch: &agents.Watch{Closely: true}}}
	if d := within(t, "it looks closely", 5*time.Second, every); d != reportClosely {
		t.Errorf("it looks every %v", d)
	}
	c.stop()
	if d := within(t, "it does so no more", 10*time.Second, every); d != reportEvery {
		t.Errorf("then it looks every %v", d)
	}
}
