package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// view implements server.Agents: agents' reports in the API's types.
type view struct{ hub *hub }

// State implements server.Agents, as do all methods of view.
func (v view) State(host string) (out api.HostState, connected bool) {
	l := v.hub.link(host)
	stored, epoch := v.hub.cache.documentsOf(host)
	if l == nil {
		states := documentStates(stored, epoch, false, nil, nil)
		out.Documents = &states
		return out, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	states := documentStates(stored, epoch, true, l.facts, l.enforced)
	if has := v.hub.aheadOf(host); has != nil {
		text := fenceText(has)
		out.Ahead = &text
		why := "the agent has a later desired state, " + text + ": run \"headgate controller take-back\""
		for n := range states {
			states[n].State, states[n].Reason = api.DocumentRefused, &why
		}
	}
	out.Documents = &states
	out.Version = &l.hello.Version
	if e := l.enforced; e != nil {
		text := fmt.Sprintf("%d/%d", e.Fence.GetEpoch(), e.Fence.GetRevision())
		out.Applied = &text
		if len(e.SetErrors) > 0 {
			out.Collectives = &e.SetErrors
		}
	}
	if l.facts == nil {
		return out, true
	}
	out.Kernel = &l.facts.Kernel
	if len(l.facts.Features) > 0 {
		features := []api.HostFeature{}
		for _, f := range l.facts.Features {
			one := api.HostFeature{Name: f.Name, State: api.HostFeatureState(f.State)}
			if f.Found != "" {
				one.Detail = &f.Found
			}
			features = append(features, one)
		}
		out.Features = &features
	}
	devices := api.HostDevices{}
	for _, d := range l.facts.Devices {
		mtu, owner := int(d.Mtu), ownerOf(d.Owner)
		one := api.HostDevice{Name: d.Name, Up: &d.Up, Mtu: &mtu, Owner: &owner}
		if d.SpeedBps > 0 {
			speed := int64(d.SpeedBps)
			one.SpeedBps = &speed
		}
		if len(d.Altnames) > 0 {
			one.Altnames = &d.Altnames
		}
		if len(d.Foreign) > 0 {
			one.Foreign = &d.Foreign
		}
		devices = append(devices, one)
	}
	// A document may be for a device pattern, or for a device that does not exist.
	names := l.names()
	for _, name := range slices.Sorted(maps.Keys(l.enforced.GetErrors())) {
		problem, kernel := l.enforced.Errors[name], names.Kernel(name)
		n := slices.IndexFunc(devices, func(d api.HostDevice) bool { return d.Name == kernel })
		switch {
		case n < 0:
			devices = append(devices, api.HostDevice{Name: name, Error: &problem})
		case devices[n].Error != nil: // by another name of the same device
			problem = *devices[n].Error + "; " + problem
			fallthrough
		default:
			devices[n].Error = &problem
		}
	}
	out.Devices = &devices
	return out, true
}

// ownerOf returns the API's name of an owner: agents of earlier versions send "nobody".
func ownerOf(name string) api.HostDeviceOwner {
	if name == "nobody" {
		return api.None
	}
	return api.HostDeviceOwner(name)
}

func (v view) Names(host string) group.AltNames {
	l := v.hub.link(host)
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names()
}

// names returns the alternative names of the host's devices.
func (l *link) names() group.AltNames {
	return altNames(l.facts)
}

func (v view) Rates(host string) (out api.RateList, ok bool) {
	out.Items = []api.GroupRates{}
	l := v.hub.link(host)
	if l == nil {
		return out, false
	}
	now := time.Now()
	l.watch(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	out.At = &now
	for dev, t := range l.tables {
		for n, name := range t.names {
			direction, path, _ := strings.Cut(name, "/")
			u := t.usage()[n]
			g := api.GroupRates{Dev: dev, Direction: direction, Group: path,
				DeliveredBps: bps(u, u.Delivered), BorrowedBps: bps(u, u.Borrowed), LentBps: bps(u, u.Lent), UnusedBps: bps(u, u.Unused())}
			if n < len(t.guarantee) {
				g.GuaranteedBps = int64(t.guarantee[n])
			}
			if t.atRisk(n) {
				risk := true
				g.AtRisk = &risk
			}
			read := t.current.counters(n).At
			g.At, g.BacklogBytes = &read, counterAt(t.current.backlog, n)
			g.QueueDelayNs = t.delay(n)
			g.DeliveredBytes, g.Drops, g.Marks = counterAt(t.current.bytes, n), counterAt(t.current.drops, n), counterAt(t.current.marks, n)
			out.Items = append(out.Items, g)
		}
	}
	return out, true
}

// bps returns bytes of the usage's interval as an integer rate.
func bps(u usage.Usage, bytes uint64) int64 { return int64(u.Rate(bytes)) }

// Loads does not mark the host as watched, so its agent keeps the normal report interval; only
// requests for the rates of one host shorten it.
func (v view) Loads(host string, sees func(dev, direction, path string) bool) (all []server.Load, risks []api.GroupAtRisk, problems int, connected bool) {
	l := v.hub.link(host)
	if l == nil {
		return nil, nil, 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.names()
	for _, dev := range slices.Sorted(maps.Keys(l.tables)) {
		t := l.tables[dev]
		for _, direction := range []string{"out", "in"} {
			load := server.Load{Dev: dev, Direction: direction, Altnames: names[dev], Limit: v.hub.cache.limit(host, dev, names, direction)}
			for _, d := range t.current.directions {
				if d.Name == direction {
					load.Control = d.ControlBytes
				}
			}
			for n, name := range t.names {
				path, of := strings.CutPrefix(name, direction+"/")
				if !of || sees != nil && !sees(dev, direction, path) {
					continue
				}
				load.Groups++
				if t.atRisk(n) {
					load.AtRisk++
					if len(risks) < server.MaxRisks {
						risks = append(risks, api.GroupAtRisk{Host: host, Dev: dev, Direction: direction, Group: path,
							GuaranteedBps: int64(t.guarantee[n]), DeliveredBps: int64(t.rate(n))})
					}
				}
				// The parent group's counters include those of its child groups.
				if parent, _ := group.Split(path); parent != "" && (sees == nil || sees(dev, direction, parent)) {
					continue
				}
				load.Delivered += t.rate(n)
				if n < len(t.guarantee) {
					load.Guaranteed += unit.Rate(t.guarantee[n])
				}
				if n < len(t.current.backlog) {
					load.Backlog += t.current.backlog[n]
				}
			}
			if load.Groups > 0 {
				all = append(all, load)
			}
		}
	}
	return all, risks, len(l.enforced.GetErrors()), true
}

// counterAt returns counter n of a report, nil if the agent does not send that counter.
func counterAt(all []uint64, n int) *int64 {
	if n >= len(all) {
		return nil
	}
	v := int64(all[n])
	return &v
}

func (v view) Usage(ctx context.Context, hosts []string, since, until time.Time) (rows []api.Usage, missing []string) {
	missing = []string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, host := range hosts {
		all.Go(func() {
			var got *agents.UsageAnswer
			if l := v.hub.link(host); l != nil {
				got, _ = l.usage(ctx, since, until)
			}
			mu.Lock()
			defer mu.Unlock()
			if got == nil {
				missing = append(missing, host)
				return
			}
			for _, u := range got.Rows {
				rows = append(rows, usageOf(host, u))
			}
		})
	}
	all.Wait()
	return rows, missing
}

func usageOf(host string, u *agents.Usage) api.Usage {
	direction, path, _ := strings.Cut(u.Group, "/")
	n := func(v uint64) *int64 { i := int64(v); return &i }
	return api.Usage{
		Host: host, Dev: u.Dev, Direction: direction, Group: path, Seconds: int64(u.Seconds),
		OfferedBytes: n(u.OfferedBytes), DeliveredBytes: n(u.DeliveredBytes), GuaranteedBytes: n(u.GuaranteedBytes),
		BorrowedBytes: n(u.BorrowedBytes), LentBytes: n(u.LentBytes), Drops: n(u.Drops), Marks: n(u.Marks), UnmetSeconds: n(u.UnmetSeconds),
	}
}
