package lab

import (
	"fmt"
	"slices"
	"strings"
)

// Backend is the implementation of a link (docs/decisions/0012-emulated-links.md).
type Backend string

// The backends.
const (
	// Veth is a veth pair, with HTB and TBF if there is a rate.
	Veth Backend = "veth"
	// Netem is a veth pair with the kernel's netem, behind a TBF that segments super-packets.
	Netem Backend = "netem"
	// Emulator is package wire: two TAP devices and an emulator in this process. The link ends with
	// the process.
	Emulator Backend = "emulator"
)

// Backends returns the backend of each link, in the order of Links: the one that the link names, or
// the first that supports everything its directions require, initially and after every event of the
// timeline.
func (t *Topology) Backends() []Backend {
	out, _ := t.backends()
	return out
}

func (t *Topology) backends() (out []Backend, problems []problem) {
	states := t.states()
	for i := range t.Links {
		l, at := t.link(i), fmt.Sprintf("links[%d].backend", i)
		say := func(format string, a ...any) { problems = append(problems, problem{at, fmt.Sprintf(format, a...)}) }
		b := l.Backend
		switch b {
		case "":
			b = choose(l, states[i])
		case Veth, Netem, Emulator:
		default:
			say("%q is not a backend: write veth, netem or emulator, or leave it out", b)
			out = append(out, b)
			continue // its properties cannot be checked
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

// choose returns the backend of a link that names none. It chooses netem only for links without
// offload: netem must segment super-packets, which would cost the hosts time for each segment. The
// emulator carries super-packets whole.
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

// queuesInBytes reports whether a rate has a queue limit in bytes or time, as it has by default.
// Netem's queue limit is in segments, so it would take as many full frames instead.
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

// ordersJitter reports whether segments with different delays must keep their order. With netem this
// requires GRO (receiveInOrder), which a link without offload does not have.
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

// beyond returns the properties that a backend does not support, by their keys in the file.
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

// need is a property other than a rate and a queue in bytes or time, which every backend supports.
// netem reports whether netem implements it as package link defines it.
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
		{p.Jitter.Amount > 0, need{"jitter", p.Jitter.Amount <= netemMaxJitter}},
		// Netem has the other distributions only with tc's table files.
		{p.Jitter.Normal, need{"normal jitter", false}},
		{p.Loss.Mean() > 0 || p.Loss.TwoStates(), need{"loss", true}},
		{p.Queue.Segments > 0, need{"queue in segments", true}},
		{p.RED != nil, need{"red", false}},
		{p.CoDel != nil, need{"codel", false}},
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

// cannotBecome returns the reason why a backend cannot change a running link from one state to
// another, or "".
func cannotBecome(b Backend, from, to linkState) string {
	if missing := beyond(b, []linkState{to}); len(missing) > 0 {
		return fmt.Sprintf("the link's backend is %s, which has no %s: write backend: emulator, or leave it out", b, strings.Join(missing, ", no "))
	}
	for dir := range to.paths {
		if b == Veth && (from.paths[dir].Rate > 0) != (to.paths[dir].Rate > 0) {
			return "veth can change the rate of a running link, but cannot add or remove one: write backend: emulator, or leave it out"
		}
		if from.paths[dir].Exact != to.paths[dir].Exact {
			return "exact cannot change on a running link: set it in links"
		}
	}
	return ""
}
