package service

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"

	"headgate.dev/headgate/bench"
)

// history is requests and their outcomes.
type history struct {
	place *place
	began time.Time
	first reading // allocations before

	mu  sync.Mutex
	ops []porcupine.Operation
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// ask sends a request to a controller once.
func (h *history) ask(ctx context.Context, client int, c *control, want asked) {
	op := porcupine.Operation{ClientId: client, Input: want, Call: h.now()}
	op.Output, op.Metadata = h.place.shared(c).want(ctx, want, "")
	h.note(op)
}

// insist sends a request to one controller after the other until one answers. All tries have one
// Idempotency-Key, so that they are one request.
func (h *history) insist(ctx context.Context, client int, want asked) {
	op := porcupine.Operation{ClientId: client, Input: want, Call: h.now(), Output: unknown}
	for try, until := 0, time.Now().Add(insisting); op.Output == unknown && op.Metadata == nil && time.Now().Before(until); try++ {
		if try > 0 {
			time.Sleep(betweenTries)
		}
		op.Output, op.Metadata = h.place.shared(h.place.controllers[(client+try)%3]).want(ctx, want, fmt.Sprint("want-", client))
	}
	h.note(op)
}

// note records the outcome of a request.
func (h *history) note(op porcupine.Operation) {
	if op.Return = h.now(); op.Output == unknown {
		op.Return = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
}

// want requests a guarantee; strange is an unexpected response.
func (a *asking) want(ctx context.Context, want asked, key string) (became answer, strange any) {
	body := map[string]any{"guarantee": want.guarantee.String(), "match": []map[string]any{{"dport": []string{fmt.Sprint(1000 + want.group)}}}}
	status, text, err := a.once(ctx, http.MethodPut, fmt.Sprintf("%s/out/groups/g%d", eth0, want.group), body, key)
	switch {
	case err != nil || status >= 500:
		return unknown, nil
	case status < 300:
		return granted, nil
	case status == http.StatusUnprocessableEntity && bytes.Contains(text, []byte("guarantees total")):
		return refused, nil
	}
	return unknown, fmt.Sprintf("%d %s", status, text)
}

// killLeader kills the leader after a while.
func (h *history) killLeader(ctx context.Context, after time.Duration) <-chan error {
	done := make(chan error, 1)
	leader, err := h.place.leader(ctx)
	if err != nil {
		done <- err
		return done
	}
	go func() {
		time.Sleep(after)
		done <- leader.stop(syscall.SIGKILL)
	}()
	return done
}

// look reads the allocations from every running controller; they must be the same.
func (h *history) look(ctx context.Context) (reading, error) {
	var told reading
	for _, c := range h.place.controllers {
		if c.cmd == nil {
			continue
		}
		op := porcupine.Operation{ClientId: 1 << 20, Input: asked{}, Call: h.now()}
		one, err := h.place.promised(ctx, c)
		if err != nil {
			return nil, err
		}
		op.Output, op.Return = one, h.now()
		h.ops = append(h.ops, op)
		told = one
	}
	return told, nil
}

// settle determines the outcome of unanswered requests. Each of the thousand requests was for its own
// group, so that the final allocations show whether it was executed; and guarantees only grew, so that
// what fits at the end has fitted all the time.
func (h *history) settle(there reading) (happened, wrongly, gone, unsure int) {
	var ops []porcupine.Operation
	for _, op := range h.ops {
		if _, look := op.Output.(reading); look {
			ops = append(ops, op)
			continue
		}
		want := op.Input.(asked)
		is := there[want.group] == want.guarantee
		switch op.Output {
		case granted:
			happened++
			if !is {
				gone++
			}
		case refused:
			if total(there)+want.guarantee <= capacity {
				wrongly++
			}
		default:
			unsure++
			if !is {
				continue // it was never executed
			}
			op.Output, op.Return = granted, h.now()
		}
		ops = append(ops, op)
	}
	h.ops = ops
	return happened, wrongly, gone, unsure
}

// violations returns 0 for a linearizable history, and 1 otherwise.
func (h *history) violations(r *bench.Run, whose string) float64 {
	m := model(capacity)
	if h.first != nil {
		first := ledger{promised: h.first, sum: total(h.first)}
		m.Init = func() any { return first }
	}
	for _, op := range h.ops {
		if op.Metadata != nil {
			r.Say("%s: %v was answered %v", whose, op.Input, op.Metadata)
		}
	}
	began := time.Now()
	got := porcupine.CheckOperationsTimeout(m, h.ops, checking)
	r.Say("%s: %d calls are %s, which took %.1f s to find", whose, len(h.ops), got, time.Since(began).Seconds())
	if got == porcupine.Ok {
		return 0
	}
	return 1
}

// differs counts groups whose allocations have changed.
func (h *history) differs(ctx context.Context, before reading) (n int, err error) {
	for _, c := range h.place.controllers {
		now, err := h.place.promised(ctx, c)
		if err != nil {
			return 0, err
		}
		here := 0
		for group, rate := range before {
			if now[group] != rate {
				here++
			}
		}
		n = max(n, here)
	}
	return n, nil
}
