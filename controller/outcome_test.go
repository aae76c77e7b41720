package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/probe/schedule"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/store/storetest"
)

// A fixed number of results is kept of each direction and measure, however often and by whichever
// controller a measurement is ended. A failed measurement deletes no result. The sweep deletes results
// that are old or of removed hosts.
func TestResultsKept(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Start(t))
	task, back := schedule.Task{From: "a", To: "b", Measure: "path"}, schedule.Task{From: "b", To: "a", Measure: "path"}
	always := func(store.ProbeRun) bool { return true }
	answers := map[string]json.RawMessage{"out": json.RawMessage(`{"lost":1}`), "in": json.RawMessage(`{"lost":2}`)}
	put := func(key string, v any) {
		t.Helper()
		if _, err := s.Do(t.Context(), key, func(tx *store.Tx) error { return tx.Put(key, v) }); err != nil {
			t.Fatal(err)
		}
	}
	read := func(key string, v any) {
		t.Helper()
		doc, ok, err := s.Get(t.Context(), key, 0)
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", key, ok, err)
		}
		if err := doc.Into(v); err != nil {
			t.Fatal(err)
		}
	}
	count := func(below string) int {
		t.Helper()
		keys, err := s.Keys(t.Context(), below)
		if err != nil {
			t.Fatal(err)
		}
		return len(keys)
	}
	other := task
	other.Measure = "limiter"
	put(store.ProbeKey(other, time.Now()), store.ProbeResult{Task: other})
	end := func(id string, o outcome) {
		t.Helper()
		day := time.Now().UTC().Format(time.DateOnly)
		for _, host := range []string{"a", "b"} {
			var l schedule.Ledger
			if doc, ok, err := s.Get(t.Context(), store.LedgerKey(host), 0); err != nil || ok && doc.Into(&l) != nil {
				t.Fatal(err)
			}
			put(store.LedgerKey(host), l.Reserve(day, 100))
		}
		put(store.RunKey(id), store.ProbeRun{ID: id, Run: schedule.Run{Task: task, Day: day, Reserved: 100}, Zone: "UTC", Keep: 3})
		for range 2 { // the second call finds the measurement ended
			if err := endRun(t.Context(), s, id, always, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 5 {
		end(fmt.Sprint(n), outcome{answers: answers, transferred: 10})
	}
	if n := count(store.ResultsPrefix(task)); n != 4 || count(store.ResultsPrefix(back)) != 3 || count(store.Prefix(store.Probing, "runs")) != 0 {
		t.Errorf("%d results are kept, want 4, one of them of another measure", n)
	}
	docs, _, err := s.All(t.Context(), store.ResultsPrefix(back), 0)
	var first store.ProbeResult
	if err != nil || docs[0].Into(&first) != nil || first.ID != "4" || string(first.Answer) != `{"lost":2}` {
		t.Errorf("the newest result is %+v, %v", first, err)
	}
	end("5", failedOutcome(errors.New("an error")))
	var newest store.ProbeResult
	var last schedule.Last
	var spent schedule.Ledger
	read(store.NewestKey(task), &newest)
	read(store.LastKey(task), &last)
	read(store.LedgerKey("b"), &spent)
	if newest.ID != "4" || newest.Error != "an error" || !newest.Attempted.After(newest.At) || last.Failed != 1 || spent.Bytes != 50 || count(store.ResultsPrefix(back)) != 3 {
		t.Errorf("after a failed measurement: %+v, %+v, %+v", newest, last, spent)
	}
	end("6", unansweredOutcome(store.ProbeRun{Run: schedule.Run{Reserved: 100}}, errors.New("gone")))
	read(store.LedgerKey("b"), &spent)
	if spent.Bytes != 150 {
		t.Errorf("after a measurement without an answer: %v", spent)
	}

	put(store.ProbeKey(task, time.Now().Add(-resultRetention-time.Hour)), store.ProbeResult{Task: task})
	gone := schedule.Task{From: "a", To: "c", Measure: "path"}
	put(store.ProbeKey(gone, time.Now()), store.ProbeResult{Task: gone})
	put(store.NewestKey(gone), store.ProbeResult{Task: gone, Attempted: time.Now()})
	put(store.LedgerKey("a"), schedule.Ledger{Day: "2026-01-01", Bytes: 7})
	there := map[string]*desiredHost{"a": {host: &store.Host{}}, "b": {host: &store.Host{}}}
	c := &Controller{cache: &cache{contents: contents{hosts: there, probing: newProbing()}, currentAt: time.Now()}}
	ctx, cancel := context.WithCancel(t.Context())
	err = s.Lead(ctx, store.Candidate{Name: "test"}, func(ctx context.Context, term store.Term) error {
		defer cancel()
		if err := c.sweepProbes(ctx, term, time.Now()); err != nil {
			t.Error(err)
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := count(store.Prefix(store.Probes)); n != 7 || count(store.Prefix(store.Newest)) != 2 || count(store.Prefix(store.Probing, "spent")) != 1 {
		t.Errorf("after the sweep %d results are kept, want 7", n)
	}
}

// The outcome of a failed measurement contains no incomplete direction.
func TestReportedOutcome(t *testing.T) {
	r := store.ProbeRun{Run: schedule.Run{Reserved: 100}}
	for _, c := range []struct {
		error, result, out, in, problem string
		brought                         uint64
	}{
		{"", `{"directions": {"out": {"a":1}, "in": {"b":2}}}`, `{"a":1}`, `{"b":2}`, "", 7},
		{"x", `{"directions": {"out": {"a":1}, "in": {"b":2}}}`, `{"a":1}`, "", "x", 7},
		{"x", `{"directions": {"out": {"a":1}}}`, "", "", "x", 7},
		{"x", "", "", "", "x", 7},
		{"", "", "", "", "the agent sent no result", 7},
		{"", `[]`, "", "", "cannot parse the agent's result", 100},
	} {
		o := reportedOutcome(r, &agents.ProbeAnswer{Error: c.error, Result: []byte(c.result), SentBytes: 7})
		if string(o.answers["out"]) != c.out || string(o.answers["in"]) != c.in || o.err != c.problem || uint64(o.transferred) != c.brought {
			t.Errorf("%q, %s: %+v", c.error, c.result, o)
		}
	}
}
