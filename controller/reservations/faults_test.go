package reservations_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// While writes fail in every way, links die, and reservations expire, the book has what the store has, no link is
// oversold, and every change that returned without an error is there.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	faults := rand.New(rand.NewPCG(5, 6))
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return faults.IntN(n)
	}
	lost, unmade := 0, 0
	fail := func(ctx context.Context, ledger string, do func(*store.Tx) error) (int64, error) {
		switch roll(8) {
		case 0: // made, and its answer is lost
			if _, err := w.term.Term.Do(ctx, ledger, do); err != nil {
				return 0, err
			}
			mu.Lock()
			lost++
			mu.Unlock()
			return 0, store.ErrUnknown
		case 1: // not made
			mu.Lock()
			unmade++
			mu.Unlock()
			return 0, store.ErrUnknown
		case 2:
			return 0, store.ErrUnavailable
		}
		return w.term.Term.Do(ctx, ledger, do)
	}
	w.term.fail.Store(&fail)
	cables := [][2]int{{1, 2}, {1, 3}, {2, 3}}
	stop := make(chan struct{})
	var network, clients sync.WaitGroup
	network.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			var dead [][2]int
			for _, c := range cables {
				if roll(3) == 0 {
					dead = append(dead, c)
				}
			}
			w.top.Store(triangle(dead...))
			_ = w.Follow(context.Background()) // it may fail
			_ = w.Expire(context.Background())
			time.Sleep(time.Millisecond)
		}
	})
	made := make([]map[string]bool, 4) // what each client knows of its own reservations
	for client := range made {
		made[client] = map[string]bool{}
		rnd := rand.New(rand.NewPCG(7, uint64(client)))
		clients.Go(func() {
			for range 60 {
				in := drawSmall(rnd)
				in.request.ID = reserve.ID{Tenant: string('a' + rune(client)), Name: in.request.Name}
				id := in.request.ID
				var err error
				switch in.kind {
				case "create":
					_, err = w.create(in.request, nil)
				case "cancel":
					err = w.cancel(id)
				default:
					_, _ = w.WhatIf(in.request, nil)
					continue
				}
				switch {
				case err == nil:
					made[client][id.Name] = in.kind == "create"
				case errors.Is(err, store.ErrUnknown): // it may be there, or not
					delete(made[client], id.Name)
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	network.Wait()
	w.term.fail.Store(nil)
	w.network()
	w.agree()
	if lost == 0 || unmade == 0 {
		t.Errorf("%d answers were lost, and %d writes were not made", lost, unmade)
	}
	has := map[reserve.ID]bool{}
	for _, r := range w.List() {
		has[r.Request.ID] = true
	}
	for client, names := range made {
		for name, there := range names {
			if id := (reserve.ID{Tenant: string('a' + rune(client)), Name: name}); has[id] != there {
				t.Errorf("reservation %v is in the book: %v, and its client knows: %v", id, has[id], there)
			}
		}
	}
	for i := range 3 {
		for j := range 3 {
			if i == j {
				continue
			}
			steps, limit, _ := w.Calendar(link(i+1, j+1), began, began.Add(24*time.Hour))
			for _, s := range steps {
				if s.Reserved > limit {
					t.Errorf("%v of %v are reserved on %v at %v", s.Reserved, limit, link(i+1, j+1), s.At)
				}
			}
		}
	}
	before := w.List()
	w.open(w.term.Term)
	if got := w.List(); !reflect.DeepEqual(got, before) {
		t.Errorf("the next owner has %v, want %v", got, before)
	}
	t.Logf("%d reservations, %d lost answers, %d writes that were not made", len(before), lost, unmade)
}

// drawSmall is draw with rates of which a link carries five to ten.
func drawSmall(rnd *rand.Rand) operation {
	in := draw(rnd)
	in.request.Forward = unit.Rate(10+rnd.IntN(10)) * unit.Mbit
	return in
}
