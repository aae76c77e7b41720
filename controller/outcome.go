package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Values chosen for Headgate.
const (
	// maxResult is above the size in bytes of a result for both directions.
	maxResult = 64 << 10
	// endRetries and endPause are the retries while the store does not answer.
	endRetries, endPause = 5, time.Second
)

// outcome is the result of a measurement, or the reason that there is none.
type outcome struct {
	rtt time.Duration
	// answers holds path.Answer as the agent sent it, by direction as seen from the measuring host.
	answers     map[string]json.RawMessage
	end         store.ProbeEnd // the measuring host's end of the path
	transferred unit.Bytes
	err         string // why the result is missing or incomplete
}

// failedOutcome is the outcome of a measurement that sent no packets.
func failedOutcome(err error) outcome { return outcome{err: err.Error()} }

// unansweredOutcome is the outcome of a measurement without an answer. Its whole reservation counts as used,
// because the agent may have sent that much.
func unansweredOutcome(r store.ProbeRun, err error) outcome {
	return outcome{transferred: r.Reserved, err: err.Error()}
}

// reportedOutcome is the outcome that an agent reported. If the measurement failed, the direction that was
// measured last is incomplete and left out.
func reportedOutcome(r store.ProbeRun, a *agents.ProbeAnswer) outcome {
	o := outcome{transferred: unit.Bytes(a.GetSentBytes()), end: endOf(a.GetEnd()), err: a.GetError()}
	if len(a.GetResult()) == 0 {
		if o.err == "" {
			o.err = "the agent sent no result"
		}
		return o
	}
	var said struct {
		RTT        time.Duration              `json:"rtt_ns"`
		Directions map[string]json.RawMessage `json:"directions"`
	}
	if err := json.Unmarshal(a.Result, &said); err != nil || len(a.Result) > maxResult {
		return unansweredOutcome(r, errors.New("cannot parse the agent's result"))
	}
	o.rtt, o.answers = said.RTT, said.Directions
	if o.err != "" {
		if _, both := o.answers["in"]; !both {
			delete(o.answers, "out")
		}
		delete(o.answers, "in")
	}
	return o
}

// withCredits joins the burst credits of an answer with those that earlier measurements found.
func withCredits(answer, before json.RawMessage, at time.Time) json.RawMessage {
	var is, was path.Answer
	if json.Unmarshal(answer, &is) != nil || is.Credits == nil {
		return answer
	}
	if json.Unmarshal(before, &was) != nil {
		was = path.Answer{} // there is none
	}
	is.AddCredits(was, at)
	joined, err := json.Marshal(is)
	if err != nil {
		return answer
	}
	return joined
}

// end finishes a measurement and stores its outcome, once, even if several controllers do so.
func (p *prober) end(ctx context.Context, r store.ProbeRun, o outcome) {
	ctx = context.WithoutCancel(ctx) // the result is stored even if this controller stops
	for try := 1; ; try++ {
		err := endRun(ctx, p.hub.store, r.ID, func(store.ProbeRun) bool { return true }, o)
		if err == nil {
			break
		}
		if try == endRetries {
			slog.Warn("cannot store measurement result", "from", r.From, "to", r.To, "error", err)
			return
		}
		time.Sleep(endPause)
	}
	slog.Debug("measurement finished", "from", r.From, "to", r.To, "measure", r.Measure, "error", o.err)
}

// endRun deletes a running measurement, charges its bytes and stores its outcome in one transaction.
// It does nothing if the measurement was deleted already or still returns false.
func endRun(ctx context.Context, s *store.Store, id string, still func(store.ProbeRun) bool, o outcome) error {
	_, err := s.Do(ctx, store.RunKey(id), func(tx *store.Tx) error {
		var r store.ProbeRun
		if _, ok, err := tx.Get(store.RunKey(id), &r); err != nil || !ok || !still(r) {
			return err
		}
		tx.Delete(store.RunKey(id))
		now := time.Now().UTC()
		for _, host := range []string{r.From, r.To} {
			if err := updateDocument(tx, store.LedgerKey(host), func(l *schedule.Ledger) {
				*l = l.Settle(r.Run, (&schedule.Schedule{Zone: r.Zone}).Day(now), o.transferred)
			}); err != nil {
				return err
			}
		}
		if err := updateDocument(tx, store.LastKey(r.Task), func(l *schedule.Last) {
			if l.At = now; o.err == "" {
				l.Failed = 0
			} else {
				l.Failed++
			}
		}); err != nil {
			return err
		}
		return o.store(tx, r, now)
	})
	if err != nil {
		return fmt.Errorf("cannot store the outcome of measurement %s: %w", id, err)
	}
	return nil
}

// updateDocument updates a document, or creates it.
func updateDocument[T any](tx *store.Tx, key string, do func(*T)) error {
	var v T
	if _, _, err := tx.Get(key, &v); err != nil {
		return err
	}
	do(&v)
	return tx.Put(key, v)
}

// store stores a result for each direction that has one, deletes the oldest results above the
// retention count, and records a failed attempt in the newest result.
func (o outcome) store(tx *store.Tx, r store.ProbeRun, now time.Time) error {
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
		newest.Attempted, newest.Error = now, o.err
		if d.answer != nil {
			d.answer = withCredits(d.answer, newest.Answer, now)
			newest = store.ProbeResult{
				ID: r.ID, Task: d.task, By: r.From, At: now, Attempted: now, RTT: o.rtt, Answer: d.answer,
				FromDevices: d.from.Devices, ToDevices: d.to.Devices, OwnLimit: lower(d.from.Out, d.to.In),
			}
			if err := tx.Put(store.ProbeKey(d.task, now), newest); err != nil {
				return err
			}
			if err := trimResults(tx, d.task, r.Keep); err != nil {
				return err
			}
		}
		if err := tx.Put(store.NewestKey(d.task), newest); err != nil {
			return err
		}
	}
	return nil
}

// trimResults deletes the oldest results of a task so that keep remain, counting one new result.
func trimResults(tx *store.Tx, t schedule.Task, keep int) error {
	keys, err := tx.Keys(store.ResultsPrefix(t))
	if err != nil {
		return err
	}
	n := 1
	for _, key := range keys { // newest first
		_, name := store.Name(key)
		if _, measure, ok := store.ParseProbeName(name[len(name)-1]); !ok || measure != t.Measure {
			continue
		}
		if n++; n > keep {
			tx.Delete(key)
		}
	}
	return nil
}

// lower returns the lower of two limits, where 0 means no limit.
func lower(a, b unit.Rate) unit.Rate {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
