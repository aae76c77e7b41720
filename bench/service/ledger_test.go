package service

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"headgate.dev/headgate/unit"
)

// Non-linearizable histories are detected, and linearizable ones are accepted.
func TestModel(t *testing.T) {
	op := func(client int, a asked, call int64, out answer, back int64) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: a, Call: call, Output: out, Return: back}
	}
	const never = math.MaxInt64
	for name, c := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"one after the other": {[]porcupine.Operation{
			op(0, asked{0, 60}, 0, granted, 1), op(0, asked{1, 60}, 2, refused, 3), op(0, asked{0, 0}, 4, granted, 5), op(0, asked{1, 60}, 6, granted, 7)}, true},
		"both at once":                          {[]porcupine.Operation{op(0, asked{0, 60}, 0, granted, 9), op(1, asked{1, 60}, 0, granted, 9)}, false},
		"one of both":                           {[]porcupine.Operation{op(0, asked{0, 60}, 0, refused, 9), op(1, asked{1, 60}, 0, granted, 9)}, true},
		"refused though it fits":                {[]porcupine.Operation{op(0, asked{0, 60}, 0, refused, 1)}, false},
		"refused for one that came later":       {[]porcupine.Operation{op(0, asked{0, 60}, 0, refused, 1), op(1, asked{1, 60}, 2, granted, 3)}, false},
		"refused for one that was not answered": {[]porcupine.Operation{op(0, asked{1, 60}, 0, unknown, never), op(1, asked{0, 60}, 1, refused, 2)}, true},
		"granted beside one that never was":     {[]porcupine.Operation{op(0, asked{1, 60}, 0, unknown, never), op(1, asked{0, 60}, 1, granted, 2)}, true},
		"the same again, less":                  {[]porcupine.Operation{op(0, asked{0, 80}, 0, granted, 1), op(0, asked{0, 30}, 2, granted, 3), op(1, asked{1, 70}, 4, granted, 5)}, true},
		"what is read":                          {[]porcupine.Operation{op(0, asked{0, 80}, 0, granted, 1), {ClientId: 1, Input: asked{}, Call: 2, Output: reading{0: 80}, Return: 3}}, true},
		"what was read before": {[]porcupine.Operation{op(0, asked{0, 80}, 0, granted, 1), op(0, asked{0, 0}, 2, granted, 3),
			{ClientId: 1, Input: asked{}, Call: 4, Output: reading{0: 80}, Return: 5}}, false},
	} {
		got := porcupine.CheckOperationsTimeout(model(100), c.history, time.Minute)
		if (got == porcupine.Ok) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A thousand concurrent requests are decided within seconds.
func TestModelOfMany(t *testing.T) {
	var history []porcupine.Operation
	for i := range 1000 {
		out := granted
		if i >= 100 {
			out = refused
		}
		history = append(history, porcupine.Operation{ClientId: i, Input: asked{i, unit.Mbit}, Call: 0, Output: out, Return: 10})
	}
	if got := porcupine.CheckOperationsTimeout(model(100*unit.Mbit), history, time.Minute); got != porcupine.Ok {
		t.Error(got)
	}
}
