package api

import (
	"cmp"
	"net/http"
	"slices"

	"headgate/store"
	"headgate/unit"
)

// Ours: what one looks at first.
const (
	// MostRisks are named.
	MostRisks = 100
	// MostBusy hosts are.
	MostBusy = 10
)

// Load is what a direction of a device carries.
type Load struct {
	Dev, Direction               string
	Limit, Delivered, Guaranteed unit.Rate // no limit is 0
	Backlog                      uint64    // bytes
	Groups, AtRisk               int
	Altnames                     []string
}

// Use is how much of its limit it has, from 0 to about 1.
func (l Load) Use() float64 {
	if l.Limit == 0 {
		return 0
	}
	return float64(l.Delivered) / float64(l.Limit)
}

func (l Load) shown() DirectionRates {
	out := DirectionRates{Dev: l.Dev, Direction: l.Direction, Delivered: l.Delivered.String(), Guaranteed: l.Guaranteed.String(),
		Backlog: int64(l.Backlog), Groups: l.Groups, AtRisk: l.AtRisk}
	if len(l.Altnames) > 0 {
		out.Altnames = &l.Altnames
	}
	if l.Limit > 0 {
		out.Limit = given(l.Limit.String())
	}
	return out
}

func shownLoads(all []Load) []DirectionRates {
	out := []DirectionRates{}
	for _, l := range all {
		out = append(out, l.shown())
	}
	return out
}

// GetOverview shows how busy hosts are.
func (s *Server) GetOverview(w http.ResponseWriter, r *http.Request, p GetOverviewParams) {
	hosts, _, err := s.Store.All(r.Context(), store.Prefix(store.Hosts), 0)
	if err != nil {
		problem(w, r, err)
		return
	}
	out := Overview{Hosts: len(hosts), Risks: []GroupAtRisk{}, Items: []HostRates{}, Busiest: []HostRates{}}
	uses := map[string]float64{}
	for _, d := range hosts {
		_, name := store.Name(d.Key)
		host := name[0]
		loads, risks, troubles, connected := s.Agents.Loads(host, nil)
		of := HostRates{Host: host, Connected: connected, Directions: shownLoads(loads)}
		if troubles > 0 {
			of.Troubles = &troubles
		}
		if connected {
			out.Connected++
			uses[host] = 0
		}
		for _, l := range loads {
			out.Groups += l.Groups
			out.AtRisk += l.AtRisk
			uses[host] = max(uses[host], l.Use())
		}
		if room := MostRisks - len(out.Risks); room > 0 {
			out.Risks = append(out.Risks, risks[:min(room, len(risks))]...)
		}
		if connected {
			out.Busiest = append(out.Busiest, of)
		}
		if p.Host != nil && slices.Contains(*p.Host, host) {
			out.Items = append(out.Items, of)
		}
		if or(p.Names, false) {
			all := append(or(out.Names, nil), host)
			out.Names = &all
		}
	}
	slices.SortStableFunc(out.Busiest, func(a, b HostRates) int { return cmp.Compare(uses[b.Host], uses[a.Host]) })
	out.Busiest = out.Busiest[:min(MostBusy, len(out.Busiest))]
	show(w, r, out, nil)
}

// GetRates shows what groups carry.
func (s *Server) GetRates(w http.ResponseWriter, r *http.Request, host string, p GetRatesParams) {
	out, ok := s.Agents.Rates(host)
	names := s.Agents.Names(host)
	var sees func(dev, direction, path string) bool
	if by := principalOf(r); ok && by.Tenant != "" {
		hosts, err := s.dividedOf(r, host)
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
	for _, path := range or(p.Group, nil) {
		named[path] = true
	}
	out.Items = slices.DeleteFunc(slices.Clone(out.Items), func(g GroupRates) bool {
		return !asked(g.Dev, g.Direction) || p.Group != nil && !named[g.Group] || sees != nil && !sees(g.Dev, g.Direction, g.Group)
	})
	loads, _, _, _ := s.Agents.Loads(host, sees)
	if sees != nil { // the device's is no tenant's to know
		for n := range loads {
			loads[n].Limit = 0
		}
	}
	totals := shownLoads(slices.DeleteFunc(loads, func(l Load) bool { return !asked(l.Dev, l.Direction) }))
	out.Totals = &totals
	show(w, r, out, nil)
}
