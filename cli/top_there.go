package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate/api"
	"headgate/cli/view"
	"headgate/group"
	"headgate/shaper"
	"headgate/unit"
)

// Ours.
const (
	// agentPatience is for how long a newer report is waited for: an agent reports every second, and
	// ten times a second while it is watched.
	agentPatience = 2500 * time.Millisecond
	// askAgain is between two questions whether there is one.
	askAgain = 100 * time.Millisecond
	// wantedEvery is how old limits and ceilings may be, which reports do not have.
	wantedEvery = 5 * time.Second
)

// watchedHost is a host of a service, whose groups are watched.
type watchedHost struct {
	*there
	client *api.Client
	dev    string
	last   time.Time // of the newest report that was shown, by the host's clock
	said   string    // names and guarantees when wanted was read
	wanted map[string]wantedInterface
	read   time.Time // when wanted was
}

// wantedInterface is what reports do not have of an interface: limits by direction, ceilings by
// direction and path ("out/web").
type wantedInterface struct {
	engine   group.Engine
	limit    map[string]unit.Rate
	spare    map[string]group.Spare
	ceilings map[string]unit.Rate
}

// watch reads states of a device of a host of a service, or of all, each time newer ones than
// before. They have bytes, drops, marks and backlogs of groups, as the agent counts them.
func (t *there) watch(ctx context.Context, dev string) (view.Source, error) {
	client, err := t.client()
	if err != nil {
		return nil, err
	}
	w := &watchedHost{there: t, client: client, dev: dev}
	return func() ([]shaper.State, error) {
		states, err := w.states(ctx)
		if err == nil && dev != "all" && len(states) == 0 && w.last.IsZero() {
			err = fmt.Errorf("%s of %s %w", dev, t.host, shaper.ErrNotShaped)
		}
		return states, err
	}, nil
}

func (w *watchedHost) states(ctx context.Context) ([]shaper.State, error) {
	for began := time.Now(); ; time.Sleep(askAgain) {
		got, err := asked[api.RateList](w.client.GetRates(ctx, w.host, ratesOf(w.dev)))
		if err != nil {
			return nil, err
		}
		rates := got.Items
		slices.SortStableFunc(rates, func(a, b api.GroupRates) int { return strings.Compare(a.Dev, b.Dev) })
		at := w.last
		for _, g := range rates {
			if g.At != nil && g.At.After(at) {
				at = *g.At
			}
		}
		if !at.After(w.last) && time.Since(began) < agentPatience && ctx.Err() == nil {
			continue
		}
		w.last = at
		if err := w.know(ctx, got); err != nil {
			return nil, err
		}
		return w.assemble(rates), nil
	}
}

// know reads what is wanted of devices, if it is another or was not read for long.
func (w *watchedHost) know(ctx context.Context, rates api.RateList) error {
	var b strings.Builder
	for _, g := range rates.Items {
		fmt.Fprintln(&b, g.Dev, g.Direction, g.Group, orEmpty(g.Guaranteed))
	}
	if w.said == b.String() && time.Since(w.read) < wantedEvery {
		return nil
	}
	names, err := w.interfaces(ctx, w.client)
	if err != nil {
		return err
	}
	wanted, read, of := map[string]wantedInterface{}, map[string]wantedInterface{}, namesIn(rates)
	for _, g := range rates.Items {
		n := of.Of(g.Dev, names)
		if _, known := wanted[g.Dev]; known || n < 0 { // the host's own files divide it
			continue
		}
		name := names[n]
		if _, known := read[name]; !known {
			if read[name], err = w.interfaceOf(ctx, name); err != nil {
				return err
			}
		}
		wanted[g.Dev] = read[name]
	}
	w.wanted, w.said, w.read = wanted, b.String(), time.Now()
	return nil
}

func (w *watchedHost) interfaceOf(ctx context.Context, name string) (out wantedInterface, err error) {
	out = wantedInterface{limit: map[string]unit.Rate{}, spare: map[string]group.Spare{}, ceilings: map[string]unit.Rate{}}
	i, err := asked[api.Interface](w.client.GetInterface(ctx, w.host, name, nil))
	if err != nil {
		return out, err
	}
	if i.Engine != nil {
		out.engine = group.Engine(*i.Engine)
	}
	for _, d := range []struct {
		name string
		is   *api.Direction
	}{{"out", i.Out}, {"in", i.In}} {
		if d.is == nil {
			continue
		}
		if out.limit[d.name], err = unit.ParseRate(d.is.Limit); err != nil {
			return out, err
		}
		if d.is.Spare != nil {
			out.spare[d.name] = group.Spare(*d.is.Spare)
		}
		groups, err := every(func(after *string) ([]api.GroupState, *string, error) {
			page, err := asked[api.GroupList](w.client.ListGroups(ctx, w.host, name, api.PathDirection(d.name), &api.ListGroupsParams{After: after}))
			return page.Items, page.Next, err
		})
		if err != nil {
			return out, err
		}
		for _, g := range groups {
			if g.Most != nil {
				if out.ceilings[d.name+"/"+g.Path], err = unit.ParseRate(*g.Most); err != nil {
					return out, err
				}
			}
		}
	}
	return out, nil
}

// assemble makes a state of each device.
func (w *watchedHost) assemble(rates []api.GroupRates) []shaper.State {
	states := []shaper.State{}
	places := map[string]int{} // of the newest device's groups in their trees
	for _, g := range rates {
		if n := len(states); n == 0 || states[n-1].Dev != g.Dev {
			states = append(states, shaper.State{Dev: g.Dev, Engine: w.wanted[g.Dev].engine, Plan: shaper.Plan{Dev: g.Dev}})
			clear(places)
		}
		s, wanted := &states[len(states)-1], w.wanted[g.Dev]
		if g.At != nil {
			s.At = *g.At
		}
		tree, counters := &s.Plan.Out, &s.Out
		if g.Direction == "in" {
			tree, counters = &s.Plan.In, &s.In
		}
		if *tree == nil {
			// A group's counters are of its direction's reading.
			*tree = &group.Tree{Limit: wanted.limit[g.Direction], Spare: wanted.spare[g.Direction]}
			*counters = &shaper.DirectionState{At: s.At}
		}
		n := group.Node{Path: g.Group, Parent: -1, Depth: 1, Leaf: true, Ceiling: wanted.ceilings[g.Direction+"/"+g.Group]}
		n.Guarantee, _ = unit.ParseRate(orEmpty(g.Guaranteed))
		// Parents come first; a tenant does not see all of them.
		for above, _ := group.Split(g.Group); above != ""; above, _ = group.Split(above) {
			if i, ok := places[g.Direction+"/"+above]; ok {
				(*tree).Nodes[i].Leaf = false
				n.Parent, n.Depth = i, (*tree).Nodes[i].Depth+1
				break
			}
		}
		places[g.Direction+"/"+g.Group] = len((*tree).Nodes)
		(*tree).Nodes = append((*tree).Nodes, n)
		(*counters).Groups = append((*counters).Groups, shaper.GroupState{
			Path: g.Group, Guarantee: n.Guarantee, Ceiling: n.Ceiling,
			Bytes: count64(g.Bytes), Drops: count64(g.Drops), Marks: count64(g.Marks), BacklogBytes: count64(g.Backlog), QueueDelay: time.Duration(orNone(g.QueueDelayNs)),
		})
	}
	return states
}

// count64 is a number that may be missing.
func count64(v *int64) uint64 { return uint64(orNone(v)) }
