package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"headgate/api/agents"
	"headgate/probe/schedule"
	"headgate/store"
	"headgate/unit"
)

// Ours.
const (
	// mostResult is more than what a measurement says of both directions.
	mostResult = 64 << 10
	// endTries are for a store that does not answer.
	endTries, endPause = 5, time.Second
)

// outcome is what became of a measurement.
type outcome struct {
	rtt time.Duration
	// answers are by direction, seen from the host that measured: path.Answer, as its agent says it.
	answers map[string]json.RawMessage
	end     store.ProbeEnd // of that host
	brought unit.Bytes
	trouble string // why there is not all of it
}

// failed is one that sent nothing.
func failed(err error) outcome { return outcome{trouble: err.Error()} }

// lost is one of which nothing was heard: it counts for all that it may have sent.
func lost(r store.ProbeRun, err error) outcome {
	return outcome{brought: r.Reserved, trouble: err.Error()}
}

// told is what an agent says. Of one that failed, the direction that came last is not whole.
func told(r store.ProbeRun, a *agents.ProbeAnswer) outcome {
	o := outcome{brought: unit.Bytes(a.GetSentBytes()), end: endOf(a.GetEnd()), trouble: a.GetError()}
	if len(a.GetResult()) == 0 {
		if o.trouble == "" {
			o.trouble = "its agent says nothing of what it found"
		}
		return o
	}
	var said struct {
		RTT        time.Duration              `json:"rtt_ns"`
		Directions map[string]json.RawMessage `json:"directions"`
	}
	if err := json.Unmarshal(a.Result, &said); err != nil || len(a.Result) > mostResult {
		return lost(r, errors.New("what its agent found cannot be read"))
	}
	o.rtt, o.answers = said.RTT, said.Directions
	if o.trouble != "" {
		if _, both := o.answers["in"]; !both {
			delete(o.answers, "out")
		}
		delete(o.answers, "in")
	}
	return o
}

// end ends a measurement, and keeps what became of it: once, whoever does.
func (p *prober) end(ctx context.Context, r store.ProbeRun, o outcome) {
	ctx = context.WithoutCancel(ctx) // what was measured is not lost because this controller ends
	for try := 1; ; try++ {
		err := endRun(ctx, p.hub.store, r.ID, func(store.ProbeRun) bool { return true }, o)
		if err == nil {
			break
		}
		if try == endTries {
			slog.Warn("what was measured cannot be kept", "from", r.From, "to", r.To, "error", err)
			return
		}
		time.Sleep(endPause)
	}
	slog.Debug("a measurement is over", "from", r.From, "to", r.To, "measure", r.Measure, "trouble", o.trouble)
}

// endRun takes a measurement away that is under way, if it is still so, and counts and keeps what
// became of it, in one transaction. If it was taken away already nothing is done.
func endRun(ctx context.Context, s *store.Store, id string, still func(store.ProbeRun) bool, o outcome) error {
	_, err := s.Do(ctx, store.RunKey(id), func(tx *store.Tx) error {
		var r store.ProbeRun
		if _, ok, err := tx.Get(store.RunKey(id), &r); err != nil || !ok || !still(r) {
			return err
		}
		tx.Delete(store.RunKey(id))
		now := time.Now().UTC()
		for _, host := range []string{r.From, r.To} {
			if err := change(tx, store.SpentKey(host), func(l *schedule.Ledger) {
				*l = l.Settle(r.Run, (&schedule.Schedule{Zone: r.Zone}).Day(now), o.brought)
			}); err != nil {
				return err
			}
		}
		if err := change(tx, store.LastKey(r.Task), func(l *schedule.Last) {
			if l.At = now; o.trouble == "" {
				l.Failed = 0
			} else {
				l.Failed++
			}
		}); err != nil {
			return err
		}
		return o.keep(tx, r, now)
	})
	if err != nil {
		return fmt.Errorf("the measurement %s: %w", id, err)
	}
	return nil
}

// change changes a document, or makes it.
func change[T any](tx *store.Tx, key string, do func(*T)) error {
	var v T
	if _, _, err := tx.Get(key, &v); err != nil {
		return err
	}
	do(&v)
	return tx.Put(key, v)
}

// keep keeps a result for each direction of which there is one, in place of the oldest, and what
// was in vain with the newest.
func (o outcome) keep(tx *store.Tx, r store.ProbeRun, now time.Time) error {
	back := schedule.Task{From: r.To, To: r.From, Measure: r.Measure}
	for _, d := range []struct {
		task     schedule.Task
		answer   json.RawMessage
		from, to store.ProbeEnd
	}{
		{r.Task, o.answers["out"], o.end, r.ServerEnd},
		{back, o.answers["in"], r.ServerEnd, o.end},
	} {
		newest := store.ProbeResult{Task: d.task}
		if _, _, err := tx.Get(store.NewestKey(d.task), &newest); err != nil {
			return err
		}
		newest.Tried, newest.Trouble = now, o.trouble
		if d.answer != nil {
			newest = store.ProbeResult{
				ID: r.ID, Task: d.task, By: r.From, At: now, Tried: now, RTT: o.rtt, Answer: d.answer,
				FromDevices: d.from.Devices, ToDevices: d.to.Devices, Own: lower(d.from.Out, d.to.In),
			}
			if err := tx.Put(store.ProbeKey(d.task, now), newest); err != nil {
				return err
			}
			if err := older(tx, d.task, r.Keep); err != nil {
				return err
			}
		}
		if err := tx.Put(store.NewestKey(d.task), newest); err != nil {
			return err
		}
	}
	return nil
}

// older takes away results of a task but for some, with one that is new.
func older(tx *store.Tx, t schedule.Task, keep int) error {
	keys, err := tx.Keys(store.ProbesBelow(t))
	if err != nil {
		return err
	}
	n := 1
	for _, key := range keys { // the newest first
		_, name := store.Name(key)
		if _, measure, ok := store.ProbeOf(name[len(name)-1]); !ok || measure != t.Measure {
			continue
		}
		if n++; n > keep {
			tx.Delete(key)
		}
	}
	return nil
}

// lower is the lower of two limits, of which 0 is none.
func lower(a, b unit.Rate) unit.Rate {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
