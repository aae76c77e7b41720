package oftest

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// flow is an entry of a table.
type flow struct {
	pipeline.Flow
	flags        openflow.FlowFlags
	idle, hard   uint16 // seconds
	match        *pattern
	instructions *behaviour

	order   uint64 // of creation
	created time.Time
	used    time.Time // by a packet
	expiry  *event
	index   int // in table.all
	counter
}

// table is a flow table: a tuple space search, as in Srinivasan, Suri and Varghese, "Packet Classification using Tuple
// Space Search" (SIGCOMM 1999), which Open vSwitch uses as well. The flows of one mask are in a hash table.
type table struct {
	all              []*flow
	cookies          []uint64 // of all, so that few flows of many are found fast
	tuples           []*tuple // by their highest priority
	byMask           map[pipeline.Key]*tuple
	lookups, matched uint64

	fluid, fluidMatched counter // packets of streams that were looked up, and that matched

	version uint64 // counts flows that are added or removed, or whose counters are reset
	sum     openflow.Aggregate
	sumOf   sumKey
}

// tuple is the flows of one mask.
type tuple struct {
	mask       pipeline.Key
	words      []int              // of the mask that are not zero
	flows      map[uint64][]*flow // by hash of the value, the highest priority first
	priorities map[uint16]int     // how many flows have it
	highest    uint16
}

// hash is that of a key under the mask.
func (t *tuple) hash(k *pipeline.Key) uint64 {
	h := uint64(1)
	for _, i := range t.words {
		h = bits.RotateLeft64(h^k.Word(i)&t.mask.Word(i), 23) * 0x9e3779b97f4a7c15
	}
	return h
}

// same reports whether a key has the value of a flow.
func (t *tuple) same(k *pipeline.Key, f *flow) bool {
	for _, i := range t.words {
		if (k.Word(i)^f.Value.Word(i))&t.mask.Word(i) != 0 {
			return false
		}
	}
	return true
}

// lookup returns the flow of the highest priority that matches, or nil. Of several with one priority it is the oldest;
// the specification leaves it open.
func (t *table) lookup(k *pipeline.Key) *flow {
	var best *flow
	for _, u := range t.tuples {
		if best != nil && best.Priority > u.highest {
			break
		}
		for _, f := range u.flows[u.hash(k)] {
			if u.same(k, f) {
				if best == nil || f.before(best) {
					best = f
				}
				break
			}
		}
	}
	return best
}

// before reports whether a flow is preferred to another one.
func (f *flow) before(o *flow) bool {
	return f.Priority > o.Priority || f.Priority == o.Priority && f.order < o.order
}

// find returns the flow with a match and a priority, or nil.
func (t *table) find(m *pipeline.Matcher, priority uint16) *flow {
	u := t.byMask[m.Mask]
	if u == nil {
		return nil
	}
	for _, f := range u.flows[u.hash(&m.Value)] {
		if f.Priority == priority && f.Value == m.Value {
			return f
		}
	}
	return nil
}

func (t *table) add(f *flow) {
	u := t.byMask[f.Mask]
	if u == nil {
		u = &tuple{mask: f.Mask, flows: map[uint64][]*flow{}, priorities: map[uint16]int{}}
		for i := range pipeline.KeyWords {
			if f.Mask.Word(i) != 0 {
				u.words = append(u.words, i)
			}
		}
		if t.byMask == nil {
			t.byMask = map[pipeline.Key]*tuple{}
		}
		t.byMask[f.Mask] = u
		t.tuples = append(t.tuples, u)
	}
	h := u.hash(&f.Value)
	at, _ := slices.BinarySearchFunc(u.flows[h], f, func(a, b *flow) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.order, b.order))
	})
	u.flows[h] = slices.Insert(u.flows[h], at, f)
	u.priorities[f.Priority]++
	u.highest = max(u.highest, f.Priority)
	t.sort()
	f.index = len(t.all)
	t.all, t.cookies = append(t.all, f), append(t.cookies, f.Cookie)
	t.version++
}

func (t *table) remove(f *flow) {
	last := t.all[len(t.all)-1]
	t.all[f.index], t.cookies[f.index], last.index = last, last.Cookie, f.index
	t.all, t.cookies = t.all[:len(t.all)-1], t.cookies[:len(t.all)-1]
	t.version++

	u := t.byMask[f.Mask]
	h := u.hash(&f.Value)
	if rest := slices.DeleteFunc(u.flows[h], func(o *flow) bool { return o == f }); len(rest) > 0 {
		u.flows[h] = rest
	} else {
		delete(u.flows, h)
	}
	if u.priorities[f.Priority]--; u.priorities[f.Priority] > 0 {
		return
	}
	delete(u.priorities, f.Priority)
	if len(u.priorities) == 0 {
		delete(t.byMask, u.mask)
		t.tuples = slices.DeleteFunc(t.tuples, func(o *tuple) bool { return o == u })
		return
	}
	if f.Priority == u.highest {
		u.highest = 0
		for p := range u.priorities {
			u.highest = max(u.highest, p)
		}
		t.sort()
	}
}

// sort orders the tuples by their highest priority.
func (t *table) sort() {
	less := func(a, b *tuple) int { return cmp.Compare(b.highest, a.highest) }
	if !slices.IsSortedFunc(t.tuples, less) {
		slices.SortStableFunc(t.tuples, less)
	}
}

// sorted returns flows in the order of their creation.
func sorted(flows []*flow) []*flow {
	slices.SortFunc(flows, func(a, b *flow) int { return cmp.Compare(a.order, b.order) })
	return flows
}
