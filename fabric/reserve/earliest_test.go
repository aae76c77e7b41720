package reserve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/unit"
)

// Two links of the one path are free by turns of a second. A start after a few hundred turns is found, and one after
// thousands is not looked for: the refusal says up to where there is none.
func TestEarliestIsBounded(t *testing.T) {
	for _, c := range []struct {
		turns int
		found bool
	}{{2 * rounds / 3, true}, {6 * rounds, false}} {
		b, err := NewBook(network(rand.New(rand.NewPCG(3, 3)), 3, 2, 100*unit.Mbit), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		path := b.ledger.find(newAsk(between("x", 2, 3, 1, zero, 1)), moment(zero), moment(zero)+1)[0]
		if len(path) != 2 {
			t.Fatalf("the path has %d links, want 2", len(path))
		}
		for i := range c.turns {
			id := path[i%2]
			r := between(fmt.Sprint(i), int(id.From.Switch), int(id.To.Switch), 60*unit.Mbit, zero.Add(time.Duration(i)*time.Second), time.Second)
			if _, err := b.Admit(r, zero); err != nil {
				t.Fatal(err)
			}
		}
		var e *Refusal
		if _, err := b.WhatIf(between("x", 2, 3, 60*unit.Mbit, zero, time.Second), zero); !errors.As(err, &e) {
			t.Fatalf("got %v, want a refusal", err)
		}
		end := zero.Add(time.Duration(c.turns) * time.Second)
		switch {
		case c.found && (e.Earliest == nil || !e.Earliest.Start.Equal(end) || !e.Searched.IsZero()):
			t.Errorf("%d turns: %v, want a start at %v", c.turns, e, end)
		case !c.found && (e.Earliest != nil || e.Window != nil || !e.Searched.After(zero.Add(rounds/2*time.Second)) || e.Searched.After(end)):
			t.Errorf("%d turns: %v was searched until %v", c.turns, e, e.Searched)
		case !c.found && !strings.Contains(e.Error(), "no start before "+stamp(e.Searched)):
			t.Errorf("the refusal does not say what was searched: %v", e)
		}
	}
}
