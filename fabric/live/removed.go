package live

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/fabric"
)

// removedTime is for how long Status names what an operator has removed, chosen for Headgate: several scrapes, after which Prometheus
// remembers it. An alert for what was there and is not need not be for what was removed.
const removedTime = 10 * time.Minute

// LinkLabel names a direction of a link for people, as links are named in texts: s1/2.
type LinkLabel struct{ From, To string }

// removed is what an operator has removed, and until when it is named.
type removed struct {
	switches map[fabric.DPID]removedSwitch
	links    map[LinkLabel]time.Time
}

type removedSwitch struct {
	fabric.SwitchConfig
	until time.Time
}

// known is what the loop knew by one configuration: the switches that were listed or connected, and the links that were written or up.
type known struct {
	listed, switches map[fabric.DPID]fabric.SwitchConfig
	written          map[fabric.LinkID]fabric.Link
	links            map[fabric.LinkID]LinkLabel
}

// known returns what the loop knows. n.mu must be held.
func (n *Network) known() known {
	k := known{n.config.switches, map[fabric.DPID]fabric.SwitchConfig{}, n.config.links, map[fabric.LinkID]LinkLabel{}}
	for id := range n.switches {
		k.switches[id] = fabric.SwitchConfig{ID: id}
	}
	maps.Copy(k.switches, k.listed)
	add := func(l fabric.LinkID) { k.links[l] = LinkLabel{n.label(l.From), n.label(l.To)} }
	for _, l := range n.links.Links() {
		add(l)
	}
	for l := range n.config.links {
		add(l)
	}
	return k
}

// compare notes what was known before the configuration was replaced, and is not in the present one: switches that are no longer
// listed or may no longer connect, their links, links that are no longer written, and former names of others. n.mu must be held.
func (n *Network) compare(before known, now time.Time) {
	r := &n.removed
	if r.switches == nil {
		r.switches, r.links = map[fabric.DPID]removedSwitch{}, map[LinkLabel]time.Time{}
	}
	r.expire(now)
	until := now.Add(removedTime)
	gone := map[fabric.DPID]bool{}
	for id, s := range before.switches {
		_, was := before.listed[id]
		_, is := n.config.Switch(id)
		if gone[id] = !is && (was || n.accepts(id) != nil); gone[id] {
			r.switches[id] = removedSwitch{s, until}
		}
	}
	for l, label := range before.links {
		_, was := before.written[l]
		_, is := n.config.links[l]
		now := LinkLabel{n.label(l.From), n.label(l.To)}
		ends := was && !is || gone[l.From.Switch] || gone[l.To.Switch]
		if ends || now != label {
			r.links[label] = until
		}
		if ends { // it can be up for a time, if unknown switches are accepted
			r.links[now] = until
		}
	}
}

func (r *removed) expire(now time.Time) {
	maps.DeleteFunc(r.switches, func(_ fabric.DPID, s removedSwitch) bool { return !now.Before(s.until) })
	maps.DeleteFunc(r.links, func(_ LinkLabel, until time.Time) bool { return !now.Before(until) })
}

// list returns what is named now, in order.
func (r *removed) list(now time.Time) (switches []fabric.SwitchConfig, links []LinkLabel) {
	r.expire(now)
	for _, id := range slices.Sorted(maps.Keys(r.switches)) {
		switches = append(switches, r.switches[id].SwitchConfig)
	}
	return switches, slices.SortedFunc(maps.Keys(r.links), compareLabels)
}

func compareLabels(a, b LinkLabel) int {
	return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
}
