package host

import (
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"headgate.dev/headgate/internal/cgroup2"
	"headgate.dev/headgate/relay"
)

// takeRules finds out what the rules of a policy take now.
type takeRules struct {
	policy  relay.Policy
	dialers []carrier
	log     *slog.Logger
	// missing are the cgroups that could not be found, each of which was logged.
	missing map[string]bool
	// far are the exits, by rule, whose round-trip time is long enough.
	far map[[2]int]bool
	// found are the destinations of each rule, by what they depend on.
	found []foundDestinations
}

// foundDestinations are the destinations of a rule.
type foundDestinations struct {
	in   []bool // the exits
	of   [][]netip.Prefix
	then []netip.Prefix
}

// leaveRTT is the part of min_rtt below which a rule no longer takes connections to an exit that it has taken them to, so
// that a time near min_rtt does not change the rules all the time.
const leaveRTT = 0.8

func newTakeRules(p relay.Policy, dialers []carrier, log *slog.Logger) *takeRules {
	return &takeRules{policy: p, dialers: dialers, log: log, missing: map[string]bool{}, far: map[[2]int]bool{}, found: make([]foundDestinations, len(p.Take))}
}

// now returns the rules, each with what it takes now.
func (t *takeRules) now() (all []takeRule) {
	open, times := make([]bool, len(t.dialers)), make([]time.Duration, len(t.dialers))
	measured := slices.ContainsFunc(t.policy.Take, func(r relay.Rule) bool { return r.MinRTT > 0 })
	for n, d := range t.dialers {
		if open[n] = d.Streams() > 0; open[n] && measured {
			times[n] = d.RTT()
		}
	}
	p := exits{t.policy, t.dialers}.present()
	for rule, r := range p.Take {
		one := takeRule{Rule: r, foreign: p.HasAnnounced()}
		if r.Cgroup != "" {
			one.cgroup = t.cgroup(r.Cgroup)
		}
		in, of := make([]bool, len(p.Exits)), make([][]netip.Prefix, len(p.Exits))
		for exit, e := range p.Exits {
			in[exit] = (r.MinRTT == 0 || t.isFar([2]int{rule, exit}, times[exit], r.MinRTT)) && open[exit]
			of[exit] = e.Destinations
		}
		// A thousand destinations need milliseconds, several times a second.
		was := &t.found[rule]
		if was.in == nil || !slices.Equal(in, was.in) || !slices.EqualFunc(of, was.of, slices.Equal) {
			*was = foundDestinations{in, of, p.DestinationsOf(func(exit int) bool { return in[exit] })}
		}
		one.destinations = was.then
		all = append(all, one)
	}
	return all
}

// isFar reports whether the round-trip time to an exit is long enough for a rule.
func (t *takeRules) isFar(of [2]int, rtt, least time.Duration) bool {
	if t.far[of] {
		least = time.Duration(leaveRTT * float64(least))
	}
	t.far[of] = rtt >= least
	return t.far[of]
}

// cgroup returns a cgroup, nil if there is none: a service that does not run has none.
func (t *takeRules) cgroup(path string) *cgroup {
	c, err := findCgroup(path)
	switch {
	case err != nil && !t.missing[path]:
		t.log.Warn("rule of take is left out until its cgroup exists", "cgroup", path, "error", err)
		t.missing[path] = true
	case err == nil && t.missing[path]:
		t.log.Info("rule of take is in use: its cgroup exists", "cgroup", path)
		delete(t.missing, path)
	}
	if err != nil {
		return nil
	}
	return &c
}

// cgroup is a cgroup v2 as nftables finds it. One that was removed and created again has another id.
type cgroup struct {
	path  string
	level uint32
	id    uint64
}

// nftCgroups is the directory below which nft looks for cgroups, wherever cgroup v2 is mounted.
const nftCgroups = "/sys/fs/cgroup"

func findCgroup(path string) (c cgroup, err error) {
	if c.id, err = cgroup2.ID(path); err != nil {
		return c, err
	}
	if c.level, err = cgroup2.Level(path); err != nil {
		return c, err
	}
	mount, err := cgroup2.Mount()
	if err != nil {
		return c, err
	}
	c.path, err = filepath.Rel(nftCgroups, filepath.Join(mount, path))
	return c, err
}

// match matches connections of processes in the cgroup or below it.
func (c cgroup) match() string { return fmt.Sprintf("socket cgroupv2 level %d %q ", c.level, c.path) }
