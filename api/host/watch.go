package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Timing of top for a host of a service, chosen by Headgate.
const (
	// reportTimeout is the time to wait for a newer report: an agent reports every second, and ten
	// times per second while a client watches. Rates without a newer report are out of date.
	reportTimeout = 4 * time.Second
	// reportPollInterval is the interval between polls for a newer report.
	reportPollInterval = 100 * time.Millisecond
	// configMaxAge is the maximum age of limits and ceilings, which reports do not have.
	configMaxAge = 5 * time.Second
)

// watchedHost is a host of a service whose groups are shown.
type watchedHost struct {
	Host
	dev     string
	last    time.Time // time of the newest report that was shown, by the host's clock
	groups  string    // names and guarantees when configs was read, to detect changes
	configs map[string]interfaceConfig
	read    time.Time // when configs was read
}

// interfaceConfig is the configuration of an interface that reports do not have: limits by direction,
// ceilings and origins by direction and path ("out/web").
type interfaceConfig struct {
	engine   group.Engine
	limit    map[string]unit.Rate
	spare    map[string]group.Spare
	ceilings map[string]unit.Rate
	origins  map[string]group.Origin
}

// Watch returns a function that reads the states of a device of a host of a service, or of all devices. Each read
// waits for states newer than the last. States have bytes, drops, marks, backlog and queue delay of
// groups, as the agent reports them.
func (h Host) Watch(ctx context.Context, dev string) func() ([]shaper.State, error) {
	w := &watchedHost{Host: h, dev: dev}
	return func() ([]shaper.State, error) {
		states, err := w.states(ctx)
		if err == nil && dev != "all" && len(states) == 0 && w.last.IsZero() {
			err = fmt.Errorf("%s of %s %w", dev, h.Name, shaper.ErrNotShaped)
		}
		return states, err
	}
}

func (w *watchedHost) states(ctx context.Context) ([]shaper.State, error) {
	for began := time.Now(); ; time.Sleep(reportPollInterval) {
		got, err := api.Decode[api.RateList](w.Client.GetRates(ctx, w.Name, ratesOf(w.dev)))
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
		if !at.After(w.last) && len(rates) > 0 && !at.IsZero() {
			if ctx.Err() == nil && time.Since(began) < reportTimeout {
				continue
			}
			return nil, fmt.Errorf("the agent of %s has not reported for %v: what is shown may be out of date", w.Name, reportTimeout)
		}
		w.last = at
		if err := w.loadConfig(ctx, got); err != nil {
			return nil, err
		}
		return w.assemble(rates), nil
	}
}

// loadConfig reads the configuration of the devices, if groups have changed or the last read is too old.
func (w *watchedHost) loadConfig(ctx context.Context, rates api.RateList) error {
	var b strings.Builder
	for _, g := range rates.Items {
		fmt.Fprintln(&b, g.Dev, g.Direction, g.Group, g.GuaranteedBps)
	}
	if w.groups == b.String() && time.Since(w.read) < configMaxAge {
		return nil
	}
	names, err := w.Interfaces(ctx)
	if err != nil {
		return err
	}
	wanted, read, of := map[string]interfaceConfig{}, map[string]interfaceConfig{}, altNamesIn(rates)
	for _, g := range rates.Items {
		n := of.Of(g.Dev, names)
		if _, known := wanted[g.Dev]; known || n < 0 { // a local file owns the device
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
	w.configs, w.groups, w.read = wanted, b.String(), time.Now()
	return nil
}

func (w *watchedHost) interfaceOf(ctx context.Context, name string) (out interfaceConfig, err error) {
	out = interfaceConfig{limit: map[string]unit.Rate{}, spare: map[string]group.Spare{}, ceilings: map[string]unit.Rate{}, origins: map[string]group.Origin{}}
	i, err := api.Decode[api.Interface](w.Client.GetInterface(ctx, w.Name, name, nil))
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
		groups, err := api.ListAll(func(after *string) ([]api.GroupState, *string, error) {
			page, err := api.Decode[api.GroupList](w.Client.ListGroups(ctx, w.Name, name, api.PathDirection(d.name), &api.ListGroupsParams{After: after}))
			return page.Items, page.Next, err
		})
		if err != nil {
			return out, err
		}
		for _, g := range groups {
			if g.Origin != nil && *g.Origin != api.GroupStateOriginFile { // a service of an earlier version sends none
				out.origins[d.name+"/"+g.Path] = group.Origin(*g.Origin)
			}
			if g.CeilingBps != nil {
				out.ceilings[d.name+"/"+g.Path] = unit.Rate(*g.CeilingBps)
			}
		}
	}
	return out, nil
}

// assemble builds a state of each device from rates and configuration.
func (w *watchedHost) assemble(rates []api.GroupRates) []shaper.State {
	states := []shaper.State{}
	places := map[string]int{} // indices of the current device's groups in their trees
	for _, g := range rates {
		if n := len(states); n == 0 || states[n-1].Dev != g.Dev {
			states = append(states, shaper.State{Dev: g.Dev, Engine: w.configs[g.Dev].engine, Plan: shaper.Plan{Dev: g.Dev}})
			clear(places)
		}
		s, wanted := &states[len(states)-1], w.configs[g.Dev]
		if g.At != nil {
			s.At = *g.At
		}
		tree, counters := &s.Plan.Out, &s.Out
		if g.Direction == "in" {
			tree, counters = &s.Plan.In, &s.In
		}
		if *tree == nil {
			// All counters of a direction are from one reading.
			*tree = &group.Tree{Limit: wanted.limit[g.Direction], Spare: wanted.spare[g.Direction]}
			*counters = &shaper.DirectionState{At: s.At}
		}
		n := group.Node{Path: g.Group, Parent: -1, Depth: 1, Leaf: true, Ceiling: wanted.ceilings[g.Direction+"/"+g.Group], Guarantee: unit.Rate(g.GuaranteedBps)}
		// Parents are before their children. A tenant does not see all of them.
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
			Path: g.Group, Origin: wanted.origins[g.Direction+"/"+g.Group].String(), Guarantee: n.Guarantee, Ceiling: n.Ceiling,
			Bytes: count64(g.DeliveredBytes), Drops: count64(g.Drops), Marks: count64(g.Marks), BacklogBytes: count64(g.BacklogBytes), QueueDelay: time.Duration(count64(g.QueueDelayNs)),
		})
	}
	return states
}

// ratesOf returns the parameters for the rates of a device, by any of its names, or of all devices.
func ratesOf(dev string) *api.GetRatesParams {
	if dev == "all" {
		return nil
	}
	return &api.GetRatesParams{Dev: &dev}
}

// count64 returns an optional number, or 0.
func count64(v *int64) uint64 {
	if v == nil {
		return 0
	}
	return uint64(*v)
}
