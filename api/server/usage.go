package server

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/store"
)

// hostInterfaces lists the configured interfaces of one host, sorted by name.
type hostInterfaces []*store.Interface

// readHostInterfaces reads the configured interfaces of one host or of all hosts, by host.
func (s *Server) readHostInterfaces(r *http.Request, host ...string) (map[string]hostInterfaces, error) {
	docs, _, err := s.Store.All(r.Context(), store.Prefix(store.Interfaces, host...), 0)
	if err != nil {
		return nil, err
	}
	out := map[string]hostInterfaces{}
	for _, d := range docs {
		var i store.Interface
		if err := d.Into(&i); err != nil {
			return nil, err
		}
		_, name := store.Name(d.Key)
		out[name[0]] = append(out[name[0]], &i)
	}
	for _, all := range out {
		slices.SortFunc(all, func(a, b *store.Interface) int { return cmp.Compare(a.Dev, b.Dev) })
	}
	return out, nil
}

// of returns the interface document that applies to a device, by the same rule as in the agent; nil if there
// is none.
func (all hostInterfaces) of(dev string, names group.AltNames) *store.Interface {
	documents := make([]string, len(all))
	for n, i := range all {
		documents[n] = i.Dev
	}
	if n := names.Of(dev, documents); n >= 0 {
		return all[n]
	}
	return nil
}

// owner returns the tenant of a device's group, "" for the operator, and the start of its ownership within a
// period that began at began.
func (all hostInterfaces) owner(dev string, names group.AltNames, direction, path string, began time.Time) (tenant string, since time.Time) {
	i := all.of(dev, names)
	if i == nil {
		return "", began
	}
	return i.Owner(direction, path), firstFullMinute(i.OwnedSince(direction, path), began)
}

// firstFullMinute returns the start of the first full minute of an ownership that began at since, or began if the
// ownership began before that.
func firstFullMinute(since, began time.Time) time.Time {
	if !since.After(began) {
		return began
	}
	return since.Add(time.Minute - 1).Truncate(time.Minute)
}

// has reports whether a tenant owns groups on one of the interfaces.
func (all hostInterfaces) has(tenant string) bool {
	return slices.ContainsFunc(all, func(i *store.Interface) bool { return i.HasTenant(tenant) })
}

// usageKept is at least the retention of the agents' usage records.
const usageKept = 8 * 24 * time.Hour

// GetUsage shows the usage records of groups. A tenant gets those of its own groups, from the start of its
// ownership on.
func (s *Server) GetUsage(w http.ResponseWriter, r *http.Request, p api.GetUsageParams) {
	by := principalOf(r)
	tenant, err := askedTenant(p.Tenant, by)
	if err != nil {
		problem(w, r, err)
		return
	}
	hosts, err := s.readHostInterfaces(r)
	if err != nil {
		problem(w, r, err)
		return
	}
	maps.DeleteFunc(hosts, func(host string, all hostInterfaces) bool {
		return p.Host != nil && *p.Host != host || tenant != "" && !all.has(tenant)
	})
	now := time.Now()
	since, until := p.Since, valueOr(p.Until, now)
	if oldest := now.Add(-usageKept); since.Before(oldest) {
		since = oldest
	}
	if until.After(now) {
		until = now
	}
	// Groups that changed their owner within the period are queried from that time on.
	asked := map[time.Time][]string{since: slices.Collect(maps.Keys(hosts))}
	if tenant != "" {
		for host, all := range hosts {
			for from := range all.ownershipStarts(tenant, since) {
				asked[from] = append(asked[from], host)
			}
		}
	}
	out := api.UsageList{Items: []api.Usage{}}
	missing := map[string]bool{}
	var mu sync.Mutex
	var answers sync.WaitGroup
	for from, of := range asked {
		if from.After(until) {
			continue
		}
		answers.Go(func() {
			slices.Sort(of)
			rows, silent := s.Agents.Usage(r.Context(), of, from, until)
			mu.Lock()
			defer mu.Unlock()
			for _, host := range silent {
				missing[host] = true
			}
			for _, u := range rows {
				whose, had := hosts[u.Host].owner(u.Dev, s.Agents.Names(u.Host), u.Direction, u.Group, since)
				if whose != "" && had.Equal(from) {
					u.Tenant = &whose
				}
				if tenant == "" || u.Tenant != nil && *u.Tenant == tenant {
					out.Items = append(out.Items, u)
				}
			}
		})
	}
	answers.Wait()
	out.Items = slices.DeleteFunc(out.Items, func(u api.Usage) bool { return missing[u.Host] })
	names := slices.AppendSeq([]string{}, maps.Keys(missing))
	slices.Sort(names)
	out.Missing = &names
	slices.SortFunc(out.Items, func(a, b api.Usage) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Dev, b.Dev), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Group, b.Group))
	})
	writeResource(w, r, out, nil)
}

// ownershipStarts returns the times, after began, at which groups came to the tenant.
func (all hostInterfaces) ownershipStarts(tenant string, began time.Time) map[time.Time]bool {
	out := map[time.Time]bool{}
	for _, i := range all {
		for at, since := range i.OwnerChanged {
			direction, path, _ := strings.Cut(at, "/")
			if i.Owner(direction, path) == tenant && since.After(began) {
				out[firstFullMinute(since, began)] = true
			}
		}
	}
	return out
}
