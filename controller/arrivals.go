package controller

import (
	"context"
	"log/slog"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Values chosen for Headgate.
const (
	// arrivalsInterval is how often the counters at both ends of weak links are compared: as often as they are read.
	arrivalsInterval = time.Second
	// fullyUsed is the part of its capacity from which on a link shows what it gives.
	fullyUsed = 0.95
	// corrected is by what part at most a measured rate is lowered for losses of less than randomLoss: a link that loses frames at random must not lose its
	// capacity step by step.
	corrected, randomLoss = 0.1, 0.05
)

// losses are the parts of the frames that show that a link gives less, each over some time: the counters of two switches are not read at the same moment, and
// 10 ms are 0.3 % of 3 s.
var losses = []struct {
	over time.Duration
	part float64
}{{2 * time.Second, 0.05}, {3 * time.Second, 0.02}, {10 * time.Second, 0.005}}

// seeArrivals lowers what is in force of a weak link to what arrives at its end while more is sent: a measurement has an error, and what is let through beyond
// the truth is lost, whoever reserved it. Counters have none.
func (c *Controller) seeArrivals(ctx context.Context, t store.Term, now time.Time) error {
	c.cache.mu.Lock()
	network, weak := c.cache.network, c.cache.weak
	c.cache.mu.Unlock()
	live := c.switches.Live()
	if network == nil || live == nil {
		return nil
	}
	arrived := map[store.ReservationLink]unit.Rate{}
	for _, w := range weak {
		if !inForce(network, w) {
			continue
		}
		id := w.Links[0].ID()
		least := (w.Capacity*unit.Rate(network.ApplyMeasured) + 99) / 100 // or it would not be in force
		if rate := max(arrivedOf(w, live.Readings(id.From), live.Readings(id.To), now.Sub(c.lowered[id])), least); rate < w.Gives() {
			arrived[w.Links[0]], c.lowered[id] = rate, now
			slog.Info("lower the measured capacity of a link to what arrives", "link", id, "from", w.Gives(), "to", rate)
		}
	}
	if len(arrived) == 0 {
		return nil
	}
	_, err := t.Do(ctx, store.WeakLinksKey, func(tx *store.Tx) error {
		var stored store.WeakLinks
		if _, _, err := tx.Get(store.WeakLinksKey, &stored); err != nil {
			return err
		}
		for i, w := range stored.Links {
			if rate := arrived[w.Links[0]]; len(w.Links) == 1 && rate > 0 && rate < w.Gives() {
				stored.Links[i].Arrived = rate
			}
		}
		return tx.Put(store.WeakLinksKey, stored)
	})
	return err
}

// arrivedIn returns the rate that arrived over a link in a part of the readings of its ends.
func arrivedIn(sends, receives fabric.Readings, length, before time.Duration) unit.Rate {
	sent, lost, _ := fabric.LinkLosses(sends, receives, length, before)
	return unit.Rate(sent * (1 - lost))
}

// arrivedOf returns what a link gives by the counters of its ends, the rate that is known if they show no less. What was sent before its rate was lowered last
// does not count, nor what was in the second after that. The better half of the time counts: a link that passed nothing for some 100 ms, as a switch or an emulated
// link on a busy machine does, lost 6 % of two seconds, and its capacity remained 9 % too low (bench loop, whole).
func arrivedOf(w store.WeakLink, sends, receives fabric.Readings, since time.Duration) unit.Rate {
	for _, l := range losses {
		sent, lost, ok := fabric.LinkLosses(sends, receives, l.over, 0)
		if !ok || since < l.over+time.Second || lost < l.part || sent < fullyUsed*float64(w.Gives()) {
			continue
		}
		rate := max(arrivedIn(sends, receives, l.over/2, 0), arrivedIn(sends, receives, l.over/2, l.over/2))
		if lost < randomLoss {
			rate = max(rate, unit.Rate((1-corrected)*float64(w.Rate)))
		}
		return min(fourDigits(rate), w.Gives())
	}
	return w.Gives()
}
