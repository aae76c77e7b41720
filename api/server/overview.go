package server

import (
	"cmp"
	"net/http"
	"slices"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Sizes of the overview's lists, chosen by this project.
const (
	// MaxRisks is the maximum number of groups at risk that the overview lists.
	MaxRisks = 100
	// MaxBusiest is the number of hosts in the list of the busiest hosts.
	MaxBusiest = 10
)

// Load is the traffic of one direction of a device.
type Load struct {
	Dev, Direction               string
	Limit, Delivered, Guaranteed unit.Rate // Limit is 0 if there is none
	Backlog, Control             uint64    // bytes; those of control traffic since the direction was created
	Groups, AtRisk               int
	Altnames                     []string
}

// Utilization is the delivered rate as a fraction of the limit, from 0 to about 1; 0 without a limit.
func (l Load) Utilization() float64 {
	if l.Limit == 0 {
		return 0
	}
	return float64(l.Delivered) / float64(l.Limit)
}

// shown returns the API form of the load.
func (l Load) shown() api.DirectionRates {
	out := api.DirectionRates{Dev: l.Dev, Direction: l.Direction, DeliveredBps: int64(l.Delivered), GuaranteedBps: int64(l.Guaranteed),
		BacklogBytes: int64(l.Backlog), Groups: l.Groups, AtRisk: l.AtRisk}
	if l.Control > 0 {
		control := int64(l.Control)
		out.ControlBytes = &control
	}
	if len(l.Altnames) > 0 {
		out.Altnames = &l.Altnames
	}
	if l.Limit > 0 {
		limit := int64(l.Limit)
		out.LimitBps = &limit
	}
	return out
}

// shownLoads returns the API form of loads.
func shownLoads(all []Load) []api.DirectionRates {
	out := []api.DirectionRates{}
	for _, l := range all {
		out = append(out, l.shown())
	}
	return out
}

// GetOverview shows the load of the hosts and the groups that are at risk.
func (s *Server) GetOverview(w http.ResponseWriter, r *http.Request, p api.GetOverviewParams) {
	hosts, _, err := s.Store.All(r.Context(), store.Prefix(store.Hosts), 0)
	if err != nil {
		problem(w, r, err)
		return
	}
	out := api.Overview{Hosts: len(hosts), Risks: []api.GroupAtRisk{}, Items: []api.HostRates{}, Busiest: []api.HostRates{}}
	uses := map[string]float64{}
	for _, d := range hosts {
		_, name := store.Name(d.Key)
		host := name[0]
		loads, risks, problems, connected := s.Agents.Loads(host, nil)
		of := api.HostRates{Host: host, Connected: connected, Directions: shownLoads(loads)}
		if problems > 0 {
			of.Errors = &problems
		}
		if connected {
			out.Connected++
			uses[host] = 0
		}
		for _, l := range loads {
			out.Groups += l.Groups
			out.AtRisk += l.AtRisk
			uses[host] = max(uses[host], l.Utilization())
		}
		if room := MaxRisks - len(out.Risks); room > 0 {
			out.Risks = append(out.Risks, risks[:min(room, len(risks))]...)
		}
		if connected {
			out.Busiest = append(out.Busiest, of)
		}
		if p.Host != nil && slices.Contains(*p.Host, host) {
			out.Items = append(out.Items, of)
		}
		if valueOr(p.Names, false) {
			all := append(valueOr(out.Names, nil), host)
			out.Names = &all
		}
	}
	slices.SortStableFunc(out.Busiest, func(a, b api.HostRates) int { return cmp.Compare(uses[b.Host], uses[a.Host]) })
	out.Busiest = out.Busiest[:min(MaxBusiest, len(out.Busiest))]
	writeResource(w, r, out, nil)
}

// GetRates shows the current rates of a host's groups.
func (s *Server) GetRates(w http.ResponseWriter, r *http.Request, host string, p api.GetRatesParams) {
	out, ok := s.Agents.Rates(host)
	names := s.Agents.Names(host)
	var sees func(dev, direction, path string) bool
	if by := principalOf(r); ok && by.Tenant != "" {
		hosts, err := s.readHostInterfaces(r, host)
		if err != nil {
			problem(w, r, err)
			return
		}
		all := hosts[host]
		sees = func(dev, direction, path string) bool {
			i := all.of(dev, names)
			return i != nil && i.Owner(direction, path) == by.Tenant
		}
		ok = all.has(by.Tenant)
	}
	if !ok {
		problem(w, r, notFound("connected host", host))
		return
	}
	asked := func(dev, direction string) bool {
		return (p.Dev == nil || names.Kernel(*p.Dev) == dev) && (p.Direction == nil || string(*p.Direction) == direction)
	}
	named := map[string]bool{}
	for _, path := range valueOr(p.Group, nil) {
		named[path] = true
	}
	out.Items = slices.DeleteFunc(slices.Clone(out.Items), func(g api.GroupRates) bool {
		return !asked(g.Dev, g.Direction) || p.Group != nil && !named[g.Group] || sees != nil && !sees(g.Dev, g.Direction, g.Group)
	})
	loads, _, _, _ := s.Agents.Loads(host, sees)
	if sees != nil { // a tenant may not see the limit and control traffic of the device
		for n := range loads {
			loads[n].Limit, loads[n].Control = 0, 0
		}
	}
	totals := shownLoads(slices.DeleteFunc(loads, func(l Load) bool { return !asked(l.Dev, l.Direction) }))
	out.Totals = &totals
	writeResource(w, r, out, nil)
}
