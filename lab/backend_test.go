package lab

import (
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// choice is a link and its later states, on a kernel with and without netem.
type choice struct {
	spec          LinkSpec
	becomes       []Path
	with, without Backend
}

func both(p Path, noOffload bool) LinkSpec {
	return LinkSpec{Ends: [2]string{"a", "b"}, Forward: p, Back: p, NoOffload: noOffload}
}

func TestBackends(t *testing.T) {
	had := kernelHasNetem
	defer func() { kernelHasNetem = had }()
	rate := Limited(10 * unit.Mbit)
	delay := Path{Spec: link.Spec{Delay: time.Millisecond}}
	segments, late := rate, rate
	segments.Queue.Segments, segments.Delay = 100, time.Millisecond
	late.Delay = time.Millisecond
	red, codel, exact := rate, rate, rate
	red.RED, codel.CoDel, exact.Exact = &link.RED{}, &link.CoDel{}, true
	named := both(rate, false)
	named.Backend = Emulator
	oneWay := both(rate, false)
	oneWay.Back.Loss.Probability = 0.1
	normal := delay
	normal.Jitter = link.Jitter{Amount: time.Microsecond, Normal: true}
	ordered, unordered := delay, delay
	ordered.Jitter = link.Jitter{Amount: time.Microsecond}
	unordered.Jitter = link.Jitter{Amount: time.Microsecond, Reorder: true}
	for name, c := range map[string]choice{
		"nothing":                   {both(Path{}, false), nil, Veth, Veth},
		"rate":                      {both(rate, false), nil, Veth, Veth},
		"other rate later":          {both(rate, false), []Path{Limited(unit.Mbit)}, Veth, Veth},
		"rate later":                {both(Path{}, false), []Path{rate}, Emulator, Emulator},
		"no rate later, no offload": {both(rate, true), []Path{{}}, Emulator, Emulator},
		"a delay":                   {both(delay, false), nil, Emulator, Emulator},
		"a delay, no offload":       {both(delay, true), nil, Netem, Emulator},
		"a delay later":             {both(Path{}, true), []Path{delay}, Netem, Emulator},
		"a queue in time":           {both(late, true), nil, Emulator, Emulator},
		"a queue in segments":       {both(segments, true), nil, Netem, Emulator},
		"normal jitter":             {both(normal, true), nil, Emulator, Emulator},
		"jitter":                    {both(ordered, true), nil, Emulator, Emulator},
		"jitter later":              {both(delay, true), []Path{ordered}, Emulator, Emulator},
		"jitter that reorders":      {both(unordered, true), nil, Netem, Emulator},
		"red":                       {both(red, true), nil, Emulator, Emulator},
		"codel":                     {both(codel, true), nil, Emulator, Emulator},
		"exact":                     {both(exact, true), nil, Emulator, Emulator},
		"one way":                   {oneWay, nil, Emulator, Emulator},
		"by name":                   {named, nil, Emulator, Emulator},
	} {
		top := &Topology{Name: "x", Nodes: []NodeSpec{{Name: "a"}, {Name: "b"}}, Links: []LinkSpec{c.spec}}
		for _, p := range c.becomes {
			top.Timeline = append(top.Timeline, Event{Link: "a-b", Forward: &p, Back: &p})
		}
		for has, want := range map[bool]Backend{true: c.with, false: c.without} {
			kernelHasNetem = func() bool { return has }
			if got := top.Backends()[0]; got != want {
				t.Errorf("%s, netem %v: %s, want %s", name, has, got, want)
			}
		}
	}
	kernelHasNetem = func() bool { return false }
	missing := both(delay, false)
	missing.Backend = Netem
	top := &Topology{Name: "x", Nodes: []NodeSpec{{Name: "a"}, {Name: "b"}}, Links: []LinkSpec{missing}}
	if err := top.Validate(); err == nil || !strings.Contains(err.Error(), "links[0].backend: this kernel has no netem") {
		t.Errorf("netem on a kernel without: %v", err)
	}
	kernelHasNetem = func() bool { return true }
	if err := top.Validate(); err != nil {
		t.Errorf("netem on a kernel with: %v", err)
	}
}

// Random backends have a seed: the link's own, one from the lab's seed, or a new one each time.
func TestSeedOfLink(t *testing.T) {
	for b, draws := range map[Backend]bool{Veth: false, Netem: true, Emulator: true} {
		one, other, given := b.seed(LinkSpec{}, "l", 0), b.seed(LinkSpec{}, "l", 0), b.seed(LinkSpec{Seed: 5}, "l", 3)
		if a, again, m := b.seed(LinkSpec{}, "l", 3), b.seed(LinkSpec{}, "l", 3), b.seed(LinkSpec{}, "m", 3); a != again || b != Veth && (a == 0 || a == m) {
			t.Errorf("%s: the lab's seed gives %d and %d, and %d to another link", b, a, again, m)
		}
		if draws != (one != 0 && other != 0 && one != other && given == 5) || !draws && one+given != 0 {
			t.Errorf("%s: %d, %d, and %d of 5", b, one, other, given)
		}
	}
}
