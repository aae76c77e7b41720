package service

import (
	"maps"

	"github.com/anishathalye/porcupine"

	"headgate.dev/headgate/unit"
)

// asked is one request: a guarantee for a group, 0 to release it.
type asked struct {
	group     int
	guarantee unit.Rate
}

// answer is the outcome of a request.
type answer int

const (
	granted answer = iota
	refused
	// unknown: there was no response, and the request may be executed at any later time, or never.
	unknown
)

// reading is what a reader sees: all allocations.
type reading map[int]unit.Rate

// ledger has the allocations of all groups.
type ledger struct {
	promised map[int]unit.Rate
	sum      unit.Rate
}

// give returns the ledger after a request, and whether the request fits.
func (l ledger) give(a asked, capacity unit.Rate) (ledger, bool) {
	sum := l.sum - l.promised[a.group] + a.guarantee
	if sum > capacity {
		return l, false
	}
	promised := maps.Clone(l.promised)
	if promised[a.group] = a.guarantee; a.guarantee == 0 {
		delete(promised, a.group)
	}
	return ledger{promised, sum}, true
}

// model is the specification of one interface as seen from outside: requests are executed one after
// the other, each between its call and its response; what fits is granted, and nothing else.
func model(capacity unit.Rate) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return ledger{promised: map[int]unit.Rate{}} },
		Step: func(state, input, output any) (bool, any) {
			l := state.(ledger)
			if told, look := output.(reading); look {
				return maps.Equal(told, l.promised), l
			}
			next, fits := l.give(input.(asked), capacity)
			switch output.(answer) {
			case granted:
				return fits, next
			case refused:
				return !fits, l
			}
			return true, next // l itself, if it does not fit
		},
		Equal: func(a, b any) bool { return maps.Equal(a.(ledger).promised, b.(ledger).promised) },
		Hash: func(state any) (h uint64) {
			for group, rate := range state.(ledger).promised {
				// The iteration order of a map varies: hash each element separately and add the
				// hashes.
				x := uint64(group+1)*0x9e3779b97f4a7c15 ^ uint64(rate)*0xff51afd7ed558ccd
				h += x ^ x>>29
			}
			return h
		},
	}
}
