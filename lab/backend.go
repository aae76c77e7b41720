package lab

import (
	"fmt"
	"slices"
	"strings"
)

// Backend is what makes a link (docs/decisions/0012-emulated-links.md).
type Backend string

// The backends.
const (
	// Veth is a veth pair, with HTB and TBF where a rate is asked.
	Veth Backend = "veth"
	// Netem is a veth pair with the kernel's netem, behind a TBF that cuts
	// super-packets.
	Netem Backend = "netem"
	// Emulator is package wire: two TAP devices and a process of ours, which ends
	// the link when it ends.
	Emulator Backend = "emulator"
)

// Backends are what makes each link, by its place in Links: the one it names, or
// the first that does exactly what its directions ask, now and at every time of
// the timeline.
func (t *Topology) Backends() []Backend {
	out, _ := t.backends()
	return out
}

func (t *Topology) backends() (out []Backend, problems []problem) {
	states := t.states()
	for i, l := range t.Links {
		at := fmt.Sprintf("links[%d].backend", i)
		say := func(format string, a ...any) { problems = append(problems, problem{at, fmt.Sprintf(format, a...)}) }
		b := l.Backend
		switch b {
		case "":
			b = choose(l, states[i])
		case Veth, Netem, Emulator:
		default:
			say("%q is not a backend: write veth, netem or emulator, or leave it out", b)
			out = append(out, b)
			continue // what it cannot do says nothing
		}
		out = append(out, b)
		if missing := beyond(b, states[i][:1]); len(missing) > 0 {
			say("%s has no %s: write emulator, or leave backend out", b, strings.Join(missing, ", no "))
		}
		if l.Backend == Netem && !kernelHasNetem() {
			say("this kernel has no netem (module sch_netem): write emulator, or leave backend out")
		}
		for n, s := range states[i][1:] {
			if what := cannotBecome(b, states[i][n], s); what != "" {
				problems = append(problems, problem{fmt.Sprintf("timeline[%d].set", s.event), what})
			}
		}
	}
	return out, problems
}

// choose is the backend of a link that names none. Netem is only chosen where
// there are no super-packets: it needs them cut, and hosts would then pay for every
// segment, where the emulator carries them whole.
func choose(l LinkSpec, states []linkState) Backend {
	can := func(b Backend) bool {
		return len(beyond(b, states)) == 0 && !slices.ContainsFunc(states[1:], func(s linkState) bool {
			return cannotBecome(b, states[0], s) != ""
		})
	}
	switch {
	case can(Veth):
		return Veth
	case l.NoOffload && can(Netem) && !queuesInBytes(states) && !ordersJitter(states) && kernelHasNetem():
		return Netem
	}
	return Emulator
}

// queuesInBytes tells whether a rate has a queue in bytes or time, as it has where
// it names none. Netem counts segments, and takes so many full frames for them.
func queuesInBytes(states []linkState) bool {
	for _, s := range states {
		for _, p := range s.paths {
			if p.Rate > 0 && p.Queue.Segments == 0 {
				return true
			}
		}
	}
	return false
}

// ordersJitter tells whether segments of different delays are to keep their order.
// Behind netem that takes GRO (receiveInOrder), which a link without offload has not.
func ordersJitter(states []linkState) bool {
	for _, s := range states {
		for _, p := range s.paths {
			if p.Jitter.Amount > 0 && !p.Jitter.Reorder {
				return true
			}
		}
	}
	return false
}

// beyond is what a backend cannot do of what is asked, in the words of the file.
func beyond(b Backend, states []linkState) (missing []string) {
	if b == Emulator {
		return nil
	}
	for _, s := range states {
		for _, p := range s.paths {
			for _, n := range needs(p) {
				if !(b == Netem && n.netem) && !slices.Contains(missing, n.what) {
					missing = append(missing, n.what)
				}
			}
		}
	}
	return missing
}

// need is something beyond a rate and a queue of bytes or time, which every
// backend has; netem tells whether that does it as defined in package link.
type need struct {
	what  string
	netem bool
}

func needs(p Path) (out []need) {
	for _, n := range []struct {
		asked bool
		need
	}{
		{p.Delay > 0, need{"delay", true}},
		{p.Jitter.Amount > 0, need{"jitter", p.Jitter.Amount <= netemMostJitter}},
		// Netem's other distributions are tables that tc has.
		{p.Jitter.Normal, need{"normal jitter", false}},
		{p.Loss.Mean() > 0 || p.Loss.TwoStates(), need{"loss", true}},
		{p.Queue.Segments > 0, need{"queue in segments", true}},
		{p.RED != nil, need{"red", false}},
		{p.Mark.Bytes > 0 || p.Mark.Segments > 0 || p.Mark.Time > 0, need{"mark", false}},
		{p.Bucket != nil, need{"bucket", false}},
		{p.Xen != nil, need{"xen", false}},
		{p.Active != nil, need{"active", false}},
		{p.Suspension != nil, need{"suspension", false}},
		{len(p.Cross) > 0, need{"cross", false}},
		{p.Exact, need{"exact", false}},
	} {
		if n.asked {
			out = append(out, n.need)
		}
	}
	return out
}

// cannotBecome says why a backend cannot change a link that is up from one state
// to another; "" if it can.
func cannotBecome(b Backend, from, to linkState) string {
	if missing := beyond(b, []linkState{to}); len(missing) > 0 {
		return fmt.Sprintf("the link's backend is %s, which has no %s: write backend: emulator, or leave it out", b, strings.Join(missing, ", no "))
	}
	for dir := range to.paths {
		if b == Veth && (from.paths[dir].Rate > 0) != (to.paths[dir].Rate > 0) {
			return "veth can change a rate while the link is up, but not add one or take it away: write backend: emulator, or leave it out"
		}
		if from.paths[dir].Exact != to.paths[dir].Exact {
			return "exact cannot change while the link is up: set it at the link"
		}
	}
	return ""
}
