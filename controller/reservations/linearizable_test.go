package reservations_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"headgate.dev/headgate/controller/reservations"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// operation is one call of an owner.
type operation struct {
	kind    string // create, what-if, change or cancel
	request reserve.Request
}

// outcome is what a call returned: a reservation, or the text of the error.
type outcome struct {
	granted reserve.Reservation
	err     string
}

func outcomeOf(r reserve.Reservation, err error) outcome {
	if err != nil {
		return outcome{err: err.Error()}
	}
	return outcome{granted: r}
}

// model is the specification: one book, in which the calls have an effect one after the other.
var model = porcupine.Model{
	Init: func() any {
		b, err := reserve.NewBook(triangle(), reserve.Limits{})
		if err != nil {
			panic(err)
		}
		return b
	},
	Step: func(state, input, output any) (bool, any) {
		b, in := state.(*reserve.Book).Clone(), input.(operation)
		var want outcome
		switch in.kind {
		case "create":
			want = outcomeOf(b.Admit(in.request, began))
		case "what-if":
			want = outcomeOf(b.WhatIf(in.request, began))
		case "change":
			rate := in.request.Forward
			if was, ok := b.Get(in.request.ID); !ok {
				want = outcome{err: reservations.ErrNotFound.Error()}
			} else if was.Request.Forward == rate {
				want = outcome{granted: was}
			} else {
				want = outcomeOf(b.Change(in.request.ID, reserve.Change{Forward: &rate}, began))
			}
		case "cancel":
			r, err := b.Cancel(in.request.ID)
			if want = outcomeOf(r, nil); err != nil {
				want = outcome{err: reservations.ErrNotFound.Error()}
			}
		}
		return reflect.DeepEqual(want, output), b
	},
	Equal: func(a, b any) bool {
		return reflect.DeepEqual(a.(*reserve.Book).All(), b.(*reserve.Book).All())
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// Concurrent calls have effects as if they were made one after the other on a reserve.Book, each between its call and its
// return.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const clients, calls = 6, 25
	var mu sync.Mutex
	var history []porcupine.Operation
	var running sync.WaitGroup
	zero := time.Now()
	for client := range clients {
		rnd := rand.New(rand.NewPCG(1, uint64(client)))
		running.Go(func() {
			for range calls {
				in := draw(rnd)
				call := time.Since(zero).Nanoseconds()
				out := w.call(in)
				one := porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: time.Since(zero).Nanoseconds()}
				mu.Lock()
				history = append(history, one)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	w.agree()
	refused, overlapping := 0, 0
	for i, one := range history {
		if one.Output.(outcome).err != "" {
			refused++
		}
		for _, other := range history[:i] {
			if one.Call < other.Return && other.Call < one.Return {
				overlapping++
			}
		}
	}
	t.Logf("%d calls, of which %d were refused, and %d pairs overlap", len(history), refused, overlapping)
	if refused < 10 || len(history)-refused < 20 || overlapping < len(history) {
		t.Error("the calls do not compete")
	}
	if result := porcupine.CheckOperationsTimeout(model, history, 2*time.Minute); result != porcupine.Ok {
		t.Fatalf("the history is %v", result)
	}
	// One outcome that is another makes the history impossible.
	for i, one := range history {
		if got := one.Output.(outcome); one.Input.(operation).kind == "create" && got.err == "" {
			history[i].Output = outcome{err: "refused"}
			break
		}
	}
	if result := porcupine.CheckOperationsTimeout(model, history, time.Minute); result != porcupine.Illegal {
		t.Errorf("a history with a wrong outcome is %v", result)
	}
}

// draw draws a call about one of a few names, of a rate of which a link carries two or three.
func draw(rnd *rand.Rand) operation {
	hosts := rnd.Perm(3)[:2]
	end := func(i int) reserve.Endpoint {
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})
		return reserve.Endpoint{Name: a.String(), Prefix: netip.PrefixFrom(a, 32), At: fabric.PortID{Switch: fabric.DPID(i + 1), Port: 9}}
	}
	return operation{
		kind: []string{"create", "create", "what-if", "change", "cancel"}[rnd.IntN(5)],
		request: reserve.Request{
			ID: reserve.ID{Name: fmt.Sprint("r", rnd.IntN(8))}, Source: end(hosts[0]), Destination: end(hosts[1]), Class: 4, Forward: unit.Rate(30+rnd.IntN(40)) * unit.Mbit, Duration: time.Hour,
		},
	}
}

// call makes a call. A change asks for another rate of what there is.
func (w *world) call(in operation) outcome {
	var doc store.Reservation
	decide := func(f func(*reservations.Decision) (store.Reservation, error)) error {
		return w.Do(w.t.Context(), func(d *reservations.Decision) (err error) {
			doc, err = f(d)
			return err
		})
	}
	var err error
	switch in.kind {
	case "create":
		err = decide(func(d *reservations.Decision) (store.Reservation, error) { return d.Create(in.request, nil) })
	case "what-if":
		doc, err = w.WhatIf(in.request, nil)
	case "change":
		err = decide(func(d *reservations.Decision) (store.Reservation, error) {
			now, ok := d.Get(in.request.ID)
			if !ok {
				return now, reservations.ErrNotFound
			}
			r, err := now.Granted()
			if err != nil {
				return now, err
			}
			r.Request.Forward = in.request.Forward
			return d.Change(r.Request, false, nil)
		})
	case "cancel":
		err = decide(func(d *reservations.Decision) (store.Reservation, error) { return d.Cancel(in.request.ID) })
	}
	if err != nil {
		return outcome{err: err.Error()}
	}
	r, err := doc.Granted()
	if err != nil {
		err = errors.Join(errors.New("the document cannot be read"), err)
	}
	return outcomeOf(r, err)
}
