package stripe

import "testing"

// observe feeds a choice with goodputs by alternative until it settles, and returns what it has tried.
func observe(c *Choice, goodput func(name string, epoch int) float64) (tried []string) {
	for epoch := 0; !c.Settled(); epoch++ {
		tried = append(tried, c.Name())
		c.Observe(Measured{goodput(c.Name(), epoch), true, false})
	}
	return tried
}

func TestChoice(t *testing.T) {
	for _, c := range []struct {
		name       string
		cubic, bbr float64
		want       string
	}{
		{"loss", 10, 100, "bbr"}, {"both fill the path", 100, 101, "cubic"}, {"bbr is worse", 100, 60, "cubic"},
	} {
		t.Run(c.name, func(t *testing.T) {
			choice := NewChoice("cubic", "bbr")
			tried := observe(choice, func(name string, _ int) float64 { return map[string]float64{"cubic": c.cubic, "bbr": c.bbr}[name] })
			if choice.Name() != c.want || len(tried) != 3 {
				t.Errorf("chose %s after %v, want %s", choice.Name(), tried, c.want)
			}
		})
	}
}

// A goodput that grows with time, as a window does, does not favour the alternative that is measured later.
func TestChoiceWhileItGrows(t *testing.T) {
	choice := NewChoice("cubic", "bbr")
	observe(choice, func(_ string, epoch int) float64 { return float64(10 + 10*epoch) })
	if choice.Name() != "cubic" {
		t.Errorf("chose %s", choice.Name())
	}
}

// After the goodput has fallen, the alternatives are compared again.
func TestChoiceAgain(t *testing.T) {
	choice := NewChoice("cubic", "bbr")
	observe(choice, func(string, int) float64 { return 100 })
	for range minHold {
		choice.Observe(Measured{100, true, false})
		choice.Observe(Measured{5, false, false}) // says nothing
	}
	if !choice.Settled() {
		t.Fatal("it is compared again though nothing has changed")
	}
	choice.Observe(Measured{10, true, false})
	observe(choice, func(name string, _ int) float64 { return map[string]float64{"cubic": 10, "bbr": 90}[name] })
	if choice.Name() != "bbr" {
		t.Errorf("chose %s", choice.Name())
	}
}

func TestChoiceRemove(t *testing.T) {
	choice := NewChoice("cubic", "bbr")
	choice.Observe(Measured{10, true, false})
	choice.Remove("bbr")
	if !choice.Settled() || choice.Name() != "cubic" {
		t.Errorf("settled %v, %s", choice.Settled(), choice.Name())
	}
	if c := NewChoice(); !c.Settled() || c.Name() != "" {
		t.Error("a choice without alternatives")
	}
}

// Where the first alternative fills the path, no other is tried.
func TestChoiceFull(t *testing.T) {
	choice := NewChoice("cubic", "bbr")
	for range 2 * maxHold {
		choice.Observe(Measured{100, true, true})
		if choice.Name() != "cubic" || !choice.Settled() {
			t.Fatalf("tries %s on a full path", choice.Name())
		}
	}
	until := func(m Measured) {
		for n := 0; choice.Settled(); n++ {
			if choice.Observe(m); n > maxHold {
				t.Fatalf("it does not compare again after %+v", m)
			}
		}
	}
	until(Measured{100, true, false}) // it is full no longer
	observe(choice, func(name string, _ int) float64 { return map[string]float64{"cubic": 10, "bbr": 90}[name] })
	if choice.Name() != "bbr" {
		t.Errorf("chose %s", choice.Name())
	}
	until(Measured{90, true, true}) // that the second fills the path says nothing of the first
}

// The first fills the path at the beginning, with what slow start has left, and then falls: it is compared at once.
func TestChoiceFallsBehind(t *testing.T) {
	choice := NewChoice("cubic", "bbr")
	for range 3 {
		choice.Observe(Measured{95, true, true})
	}
	choice.Observe(Measured{64, true, false})
	if choice.Settled() {
		t.Fatal("it keeps what delivers a third less than before")
	}
	observe(choice, func(name string, _ int) float64 { return map[string]float64{"cubic": 33, "bbr": 95}[name] })
	if choice.Name() != "bbr" {
		t.Errorf("chose %s", choice.Name())
	}
}

// An alternative that began with the window of another falls behind what that one has delivered.
func TestChoiceFlattered(t *testing.T) {
	choice := NewChoice("cubic", "bbr")
	goodputs := map[string][]float64{"cubic": {90, 86, 84, 40}, "bbr": {95}}
	observe(choice, func(name string, _ int) float64 {
		g := goodputs[name][0]
		if len(goodputs[name]) > 1 {
			goodputs[name] = goodputs[name][1:]
		}
		return g
	})
	if choice.Name() != "cubic" {
		t.Fatalf("chose %s, want what shares a link best, of two that deliver nearly the same", choice.Name())
	}
	for range behind {
		choice.Observe(Measured{70, true, false})
	}
	if choice.Name() != "bbr" || !choice.Settled() {
		t.Fatalf("%s is in use, settled %v", choice.Name(), choice.Settled())
	}
	// The path becomes slower for both: it changes once more, and then stays.
	changes, before := 0, choice.Name()
	for range minHold - 1 {
		choice.Observe(Measured{10, true, false})
		if choice.Name() != before {
			changes, before = changes+1, choice.Name()
		}
	}
	if changes > 1 {
		t.Errorf("it changes %d times on a path that has become slower", changes)
	}
}
