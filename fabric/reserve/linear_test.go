package reserve

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"
)

// verb is a method of a book.
type verb int

const (
	admit verb = iota
	whatIf
	change
	whatIfChange
	cancel
	expire
	hold
	list
)

// call is one call of a method, with its arguments.
type call struct {
	verb    verb
	now     time.Time
	request Request // of admit and whatIf; the others have the name alone
	change  Change
	grace   time.Duration
	link    fabric.LinkID
	rate    unit.Rate
	who     string
}

// outcome is what a call returned.
type outcome struct {
	one Reservation
	all []Reservation
	err error
}

func (o outcome) refused() bool { e := (*Refusal)(nil); return errors.As(o.err, &e) }

// guarded is a book with one lock, as its caller keeps it: what changes the book has it alone, and the rest shares it.
type guarded struct {
	lock sync.RWMutex
	book *Book
}

func (g *guarded) do(c call) (o outcome) {
	switch c.verb {
	case whatIf, whatIfChange, list:
		g.lock.RLock()
		defer g.lock.RUnlock()
	default:
		g.lock.Lock()
		defer g.lock.Unlock()
	}
	switch c.verb {
	case admit:
		o.one, o.err = g.book.Admit(c.request, c.now)
	case whatIf:
		o.one, o.err = g.book.WhatIf(c.request, c.now)
	case change:
		o.one, o.err = g.book.Change(c.request.ID, c.change, c.now)
	case whatIfChange:
		o.one, o.err = g.book.WhatIfChange(c.request.ID, c.change, c.now)
	case cancel:
		o.one, o.err = g.book.Cancel(c.request.ID)
	case expire:
		o.all = g.book.Expire(c.now, c.grace)
	case hold:
		o.err = g.book.Hold(c.link, c.rate, c.who, c.now)
	case list:
		o.all = g.book.All()
	}
	return o
}

// entries is the state of the model: what the book has, of which all else follows.
type entries struct {
	reservations map[ID]Reservation
	held         map[claimant]unit.Rate
}

type claimant struct {
	link fabric.LinkID
	who  string
}

func (e entries) with(r Reservation) entries {
	e.reservations = maps.Clone(e.reservations)
	e.reservations[r.Request.ID] = r
	return e
}

func (e entries) without(ids ...ID) entries {
	e.reservations = maps.Clone(e.reservations)
	for _, id := range ids {
		delete(e.reservations, id)
	}
	return e
}

// oracle is the slow oracle of what the book has.
func (e entries) oracle(empty *Book) oracle {
	o := newOracle(empty)
	for _, r := range e.reservations {
		o.granted = append(o.granted, r)
	}
	for c, rate := range e.held {
		o.held[c.link] += rate
	}
	return o
}

// verdict is a test that has failed or not.
type verdict struct{ failed bool }

func (v *verdict) Helper()               {}
func (v *verdict) Fatalf(string, ...any) { v.failed = true }

// allows reports whether a reservation that was granted is sound, and nothing is oversold with it.
func (o oracle) allows(r Reservation, now time.Time) bool {
	v := &verdict{}
	sound(v, o, r)
	o.granted = append(slices.Clone(o.granted), r)
	for _, at := range append(o.moments(), now) {
		for id := range o.touched() {
			if !at.Before(now) && o.used(id, at) > o.limit(id) {
				v.failed = true
			}
		}
	}
	return !v.failed
}

// touched are the links on which something is claimed.
func (o oracle) touched() map[fabric.LinkID]bool {
	all := map[fabric.LinkID]bool{}
	for id := range o.held {
		all[id] = true
	}
	for _, r := range o.granted {
		for _, p := range r.Paths {
			for _, id := range p.Links {
				all[id], all[id.Reverse()] = true, true
			}
		}
		for _, at := range []fabric.PortID{r.Request.Source.At, r.Request.Destination.At} {
			all[Uplink(at)], all[Downlink(at)] = true, true
		}
	}
	return all
}

// specification is a book as seen from outside: its calls are executed one after the other, each between its call and its
// return. What is granted is sound and oversells nothing, and begins as early as possible; what is refused does not fit.
func specification(empty *Book) porcupine.Model {
	invalid := func(r Request, now time.Time) bool {
		var e *Invalid
		_, err := empty.WhatIf(r, now)
		return errors.As(err, &e)
	}
	return porcupine.Model{
		Init: func() any { return entries{map[ID]Reservation{}, map[claimant]unit.Rate{}} },
		Step: func(state, input, output any) (bool, any) {
			e, c, got := state.(entries), input.(call), output.(outcome)
			id := c.request.ID
			was, exists := e.reservations[id]
			switch c.verb {
			case admit, whatIf:
				o := e.oracle(empty)
				start, ever := o.earliest(c.request, c.request.begin(c.now))
				latest := c.request.begin(c.now)
				if !c.request.Until.IsZero() {
					latest = c.request.Until.Add(-c.request.Duration)
				}
				fits := ever && !start.After(latest)
				switch {
				case exists || invalid(c.request, c.now):
					return got.err != nil && !got.refused(), e
				case got.err != nil:
					return got.refused() && !fits, e
				case !fits || !got.one.Start.Equal(start) || !reflect.DeepEqual(got.one.Request, c.request) || !o.allows(got.one, c.now):
					return false, e
				case c.verb == whatIf:
					return true, e
				}
				return true, e.with(got.one)
			case change, whatIfChange:
				want := was
				if c.change.Forward != nil {
					want.Forward, want.Request.Forward = *c.change.Forward, *c.change.Forward
				}
				if !c.change.End.IsZero() {
					want.End = c.change.End
				}
				want.Since, want.Degraded, want.Generation = was.remains(c.now), "", was.Generation+1
				o := e.without(id).oracle(empty)
				switch {
				case !exists || !want.End.After(want.Since) || invalid(want.rest(), c.now):
					return got.err != nil && !got.refused(), e
				case got.err != nil:
					return got.refused() && !o.fits(want.rest(), want.Since, want.End), e
				}
				want.Paths = got.one.Paths
				if !reflect.DeepEqual(got.one, want) || !o.allows(got.one, c.now) {
					return false, e
				}
				if c.verb == whatIfChange {
					return true, e
				}
				return true, e.with(got.one)
			case cancel:
				if !exists {
					return got.err != nil, e
				}
				return got.err == nil && reflect.DeepEqual(got.one, was), e.without(id)
			case expire:
				want := map[ID]Reservation{}
				for id, r := range e.reservations {
					if !c.now.Before(r.End.Add(c.grace)) {
						want[id] = r
					}
				}
				return reflect.DeepEqual(named(got.all), want), e.without(slices.Collect(maps.Keys(want))...)
			case hold:
				mine := claimant{c.link, c.who}
				o := e.oracle(empty)
				more := c.rate > e.held[mine]
				o.held[c.link] += c.rate - e.held[mine]
				if more && !o.enough(c.link, 0, c.now, last) {
					return got.refused(), e
				}
				held := maps.Clone(e.held)
				if held[mine] = c.rate; c.rate == 0 {
					delete(held, mine)
				}
				return got.err == nil, entries{e.reservations, held}
			}
			return reflect.DeepEqual(named(got.all), e.reservations), e
		},
		Equal: func(a, b any) bool { return reflect.DeepEqual(a, b) },
	}
}

func named(all []Reservation) map[ID]Reservation {
	m := map[ID]Reservation{}
	for _, r := range all {
		m[r.Request.ID] = r
	}
	return m
}

// script is what several callers do with a book.
type script struct {
	book  *Book
	calls [][]call
}

func drawScript(t *rapid.T) script {
	s := script{book: smallNetwork(t)}
	for range rapid.IntRange(2, 4).Draw(t, "callers") {
		var calls []call
		for i := range rapid.IntRange(3, 7).Draw(t, "calls") {
			c := call{verb: rapid.SampledFrom([]verb{admit, admit, admit, whatIf, change, change, whatIfChange, cancel, expire, hold, list}).Draw(t, "verb")}
			c.now = zero.Add(time.Duration(2*i) * time.Second)
			c.request = drawRequest(t, s.book, c.now)
			c.request.Name = fmt.Sprint("r", rapid.IntRange(0, 5).Draw(t, "name"))
			rate := unit.Rate(rapid.IntRange(1, 7).Draw(t, "new rate"))
			c.change = Change{Forward: &rate, End: c.now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "new end")) * time.Second), Move: rapid.Bool().Draw(t, "move")}
			c.grace = time.Duration(rapid.IntRange(0, 3).Draw(t, "grace")) * time.Second
			ids := s.book.ledger.ids
			c.link, c.rate, c.who = rapid.SampledFrom(ids).Draw(t, "link"), unit.Rate(rapid.IntRange(0, 3).Draw(t, "held")), fmt.Sprint("who", rapid.IntRange(0, 1).Draw(t, "who"))
			calls = append(calls, c)
		}
		s.calls = append(s.calls, calls)
	}
	return s
}

// run executes a script, all callers at the same time, and returns the history.
func (s script) run(do func(call) outcome) (history []porcupine.Operation) {
	began := time.Now()
	var lock sync.Mutex
	var callers, ready sync.WaitGroup
	ready.Add(len(s.calls))
	for who, calls := range s.calls {
		callers.Go(func() {
			ready.Done()
			ready.Wait()
			for _, c := range calls {
				op := porcupine.Operation{ClientId: who, Input: c, Call: int64(time.Since(began))}
				op.Output = do(c)
				op.Return = int64(time.Since(began))
				lock.Lock()
				history = append(history, op)
				lock.Unlock()
				runtime.Gosched()
			}
		})
	}
	callers.Wait()
	return history
}

// Whatever callers do at the same time, a book with one lock is linearizable.
func TestBookIsLinearizable(t *testing.T) {
	scripts := rapid.Custom(drawScript)
	overlaps := 0
	granted, refused := map[verb]int{}, map[verb]int{}
	for seed := range 400 {
		s := scripts.Example(seed)
		g := &guarded{book: s.book}
		empty := s.book.Clone()
		empty.held = map[fabric.LinkID]map[string]unit.Rate{}
		history := s.run(g.do)
		for i, a := range history {
			if a.Output.(outcome).err == nil {
				granted[a.Input.(call).verb]++
			} else {
				refused[a.Input.(call).verb]++
			}
			for _, b := range history[:i] {
				if a.Call < b.Return && b.Call < a.Return {
					overlaps++
				}
			}
		}
		if got := porcupine.CheckOperationsTimeout(specification(empty), history, time.Minute); got != porcupine.Ok {
			t.Errorf("script %d: the history is %v", seed, got)
		}
		oversold(t, s.book, zero.Add(12*time.Second))
	}
	t.Logf("%d pairs of calls at the same time; granted %v, refused %v", overlaps, granted, refused)
	if overlaps == 0 {
		t.Error("no two calls were at the same time")
	}
	for v := admit; v <= list; v++ {
		if !testing.Short() && (granted[v] == 0 || v <= cancel && refused[v] == 0) { // which makes few draws
			t.Errorf("verb %d: %d granted and %d refused test too little", v, granted[v], refused[v])
		}
	}
}

// The specification tells what is not a book: one that oversells, refuses what fits, or shows what was before.
func TestSpecification(t *testing.T) {
	b := lineBook(t)
	empty := b.Clone()
	request := func(name string, rate unit.Rate) call {
		return call{verb: admit, now: zero, request: between(name, 1, 2, rate, zero, time.Hour)}
	}
	grant := func(c call) outcome {
		r, err := empty.WhatIf(c.request, c.now)
		return outcome{one: r, err: err}
	}
	a, c := request("a", 60*unit.Mbit), request("c", 60*unit.Mbit)
	late := grant(a)
	late.one.Start, late.one.Since, late.one.End = late.one.Start.Add(1), late.one.Since.Add(1), late.one.End.Add(1)
	refusal := outcome{err: &Refusal{}}
	cancelled := call{verb: cancel, now: zero, request: a.request}
	op := func(client int, c call, from int64, o outcome, to int64) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: c, Call: from, Output: o, Return: to}
	}
	for name, test := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"one after the other":            {[]porcupine.Operation{op(0, a, 0, grant(a), 1), op(0, c, 2, refusal, 3), op(0, cancelled, 4, grant(a), 5), op(0, c, 6, grant(c), 7)}, true},
		"both at once":                   {[]porcupine.Operation{op(0, a, 0, grant(a), 9), op(1, c, 0, grant(c), 9)}, false},
		"one of both":                    {[]porcupine.Operation{op(0, a, 0, refusal, 9), op(1, c, 0, grant(c), 9)}, true},
		"refused though it fits":         {[]porcupine.Operation{op(0, a, 0, refusal, 1)}, false},
		"refused for one that was later": {[]porcupine.Operation{op(0, a, 0, refusal, 1), op(1, c, 2, grant(c), 3)}, false},
		"later than it could be":         {[]porcupine.Operation{op(0, a, 0, late, 1)}, false},
		"what is listed":                 {[]porcupine.Operation{op(0, a, 0, grant(a), 1), op(1, call{verb: list}, 2, outcome{all: []Reservation{grant(a).one}}, 3)}, true},
		"what was listed before":         {[]porcupine.Operation{op(0, a, 0, grant(a), 1), op(1, call{verb: list}, 2, outcome{}, 3)}, false},
		"a what-if with effect":          {[]porcupine.Operation{op(0, call{verb: whatIf, now: zero, request: a.request}, 0, grant(a), 1), op(0, c, 2, refusal, 3)}, false},
		"cancelled twice":                {[]porcupine.Operation{op(0, a, 0, grant(a), 1), op(0, cancelled, 2, grant(a), 3), op(1, cancelled, 2, grant(a), 3)}, false},
	} {
		if got := porcupine.CheckOperationsTimeout(specification(empty), test.history, time.Minute); (got == porcupine.Ok) != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
