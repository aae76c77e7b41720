package collective

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Need is what is known of the demand of a connection, and of its path.
type Need struct {
	// Bits were offered in Seconds; older ones weigh less. Without Seconds nothing is known.
	Bits    float64 `json:"bits"`
	Seconds float64 `json:"seconds"`
	// Base is the round trip without a queue; 0 is unknown.
	Base time.Duration `json:"base_ns,omitempty"`
}

// Known reports whether the rate is known.
func (n Need) Known() bool { return n.Seconds >= minLearning.Seconds() }

// Role is what connections have in common of which one takes the place of another: those of a pool, or of a client that connects again.
type Role struct {
	// Rule is the rule of the set that matches them, without its weight.
	Rule Rule `json:"rule"`
	// Port is the remote port of connections that were opened here, the local one of connections that were accepted.
	Port     uint16 `json:"port"`
	Accepted bool   `json:"accepted,omitempty"`
	// Remote is the address of the other end. It is not valid for the clients of a service, which have a role in common.
	Remote netip.Addr `json:"remote"`
}

// Bounds of what Needs keeps, chosen by Headgate.
const (
	// leftFor is how long the need of a connection that ended waits for the one that takes its place.
	leftFor = time.Hour
	// maxLeft is the number of those in a role, maxRoles that of roles: a client may connect to many servers.
	maxLeft, maxRoles = 1024, 4096
)

// Needs keeps what was learned of connections for those that come after them. A connection takes the place of the one of its role that ended last (Inherit). Others are
// taken to need what those of their role do (Assume): together as much as its short connections carried, or each as much as one of its longer ones, or of its rule.
// The zero value is ready to use.
type Needs struct {
	roles map[Role]*roleNeeds
	rules map[Rule]*mean // of a connection of a rule
	// alive and aliveRules are the sums of the connections that there are.
	alive      map[Role]Need
	aliveRules map[Rule]Need
}

// roleNeeds is what is kept of a role.
type roleNeeds struct {
	at time.Duration // of the last change
	// long is the mean of a connection that has ended, short what all together carried that ended before their need was known.
	long, short mean
	carried     float64 // bits of the latter that are not in short yet
	base        time.Duration
	left        []left // needs without a successor, the newest last
}

// left is the need of a connection that ended at a time.
type left struct {
	Need
	At time.Duration `json:"at_ns"`
}

// Inherit returns the need of the connection of a role that ended last, for one that takes its place.
func (n *Needs) Inherit(r Role, now time.Duration) (Need, bool) {
	kept := n.roles[r]
	if kept == nil {
		return Need{}, false
	}
	kept.expire(now)
	end := len(kept.left) - 1
	if end < 0 {
		return Need{}, false
	}
	need := kept.left[end].Need
	kept.left = kept.left[:end]
	return need, true
}

// Assume returns what each of so many connections of a role is taken to need whose own need is not known yet, in bit/s, and their round trip without a queue, 0 if
// that is unknown. The rate is 0 if nothing is known.
func (n *Needs) Assume(r Role, connections int) (rate float64, base time.Duration) {
	of := n.alive[r]
	if kept := n.roles[r]; kept != nil {
		base = kept.base
		if kept.short.seconds >= minLearning.Seconds() && kept.short.bits > 0 {
			return kept.short.rate() / float64(max(connections, 1)), base
		}
		of.Bits, of.Seconds = of.Bits+kept.long.bits, of.Seconds+kept.long.seconds
	}
	if of.Seconds == 0 {
		of = n.aliveRules[r.Rule]
		if ended := n.rules[r.Rule]; ended != nil {
			of.Bits, of.Seconds = of.Bits+ended.bits, of.Seconds+ended.seconds
		}
		of.Base = 0 // another path
	}
	return mean{of.Bits, of.Seconds}.rate(), cmp.Or(base, of.Base)
}

// Pools yields the roles whose short connections need something together.
func (n *Needs) Pools(yield func(Role) bool) {
	for r, kept := range n.roles {
		if kept.short.seconds >= minLearning.Seconds() && kept.short.bits > 0 && !yield(r) {
			return
		}
	}
}

// Leave keeps the need of a connection of a role that has ended.
func (n *Needs) Leave(r Role, need Need, now time.Duration) {
	if !need.Known() {
		return
	}
	kept := n.role(r)
	kept.at = now
	if r.Remote.IsValid() {
		kept.base = cmp.Or(need.Base, kept.base)
	}
	kept.long.add(need.Bits, need.Seconds)
	n.rule(r.Rule).add(need.Bits, need.Seconds)
	kept.expire(now)
	if len(kept.left) == maxLeft {
		kept.left = slices.Delete(kept.left, 0, 1)
	}
	kept.left = append(kept.left, left{need, now})
}

// Short counts what a connection of a role carried that ended before its need was known.
func (n *Needs) Short(r Role, bits float64, now time.Duration) {
	kept := n.role(r)
	kept.at = now
	kept.carried += bits
}

// Pass makes a rate of what short connections carried since the last call. What they carry while their set is controlled is not what they need.
func (n *Needs) Pass(took time.Duration, controlled func(Role) bool) {
	for r, kept := range n.roles {
		if (kept.carried > 0 || kept.short.seconds > 0) && !controlled(r) {
			kept.short.add(kept.carried, took.Seconds())
		}
		kept.carried = 0
	}
}

// SetAlive sets the needs of the connections that there are.
func (n *Needs) SetAlive(each func(yield func(Role, Need))) {
	n.alive, n.aliveRules = map[Role]Need{}, map[Rule]Need{}
	each(func(r Role, need Need) {
		of, all := n.alive[r], n.aliveRules[r.Rule]
		of = Need{Bits: of.Bits + need.Bits, Seconds: of.Seconds + need.Seconds}
		if r.Remote.IsValid() {
			of.Base = need.Base
		}
		n.alive[r] = of
		n.aliveRules[r.Rule] = Need{Bits: all.Bits + need.Bits, Seconds: all.Seconds + need.Seconds}
	})
}

// rule returns the mean of a connection of a rule.
func (n *Needs) rule(r Rule) *mean {
	if n.rules == nil {
		n.rules = map[Rule]*mean{}
	}
	if n.rules[r] == nil {
		n.rules[r] = &mean{}
	}
	return n.rules[r]
}

// role returns what is kept of a role. Of too many the oldest is forgotten.
func (n *Needs) role(r Role) *roleNeeds {
	if kept := n.roles[r]; kept != nil {
		return kept
	}
	if n.roles == nil {
		n.roles = map[Role]*roleNeeds{}
	}
	if len(n.roles) == maxRoles {
		var oldest *Role
		for r, kept := range n.roles {
			if oldest == nil || kept.at < n.roles[*oldest].at {
				oldest = &r
			}
		}
		delete(n.roles, *oldest)
	}
	kept := &roleNeeds{}
	n.roles[r] = kept
	return kept
}

// expire forgets needs that have waited for too long.
func (r *roleNeeds) expire(now time.Duration) {
	r.left = slices.DeleteFunc(r.left, func(l left) bool { return now-l.At > leftFor })
}

// KeptRole is a role of a Needs in a form that can be stored.
type KeptRole struct {
	Role
	// Long is the need of a connection that has ended, Short that of all together whose own need was not known.
	Long  Need          `json:"long"`
	Short Need          `json:"short"`
	Left  []left        `json:"left,omitempty"`
	At    time.Duration `json:"at_ns"`
}

// Kept returns what is known of connections that have ended, to be stored. Its times are of the clock of Inherit and Leave.
func (n *Needs) Kept() (all []KeptRole) {
	for r, kept := range n.roles {
		all = append(all, KeptRole{
			Role: r, Long: Need{Bits: kept.long.bits, Seconds: kept.long.seconds, Base: kept.base}, Short: Need{Bits: kept.short.bits, Seconds: kept.short.seconds},
			Left: slices.Clone(kept.left), At: kept.at,
		})
	}
	return all
}

// NewNeeds returns a Needs with what Kept of another one has returned.
func NewNeeds(all []KeptRole) *Needs {
	n := &Needs{}
	for _, k := range all {
		kept := n.role(k.Role)
		*kept = roleNeeds{at: k.At, long: mean{k.Long.Bits, k.Long.Seconds}, short: mean{k.Short.Bits, k.Short.Seconds}, base: k.Long.Base, left: k.Left}
		of := n.rule(k.Rule)
		of.bits, of.seconds = of.bits+k.Long.Bits, of.seconds+k.Long.Seconds
	}
	return n
}
