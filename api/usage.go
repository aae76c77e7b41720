package api

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/group"
	"headgate/store"
)

// divided are a host's interfaces as they are meant, by name.
type divided []*store.Interface

// dividedOf reads them, of one host or, by host, of all.
func (s *Server) dividedOf(r *http.Request, host ...string) (map[string]divided, error) {
	docs, _, err := s.Store.All(r.Context(), store.Prefix(store.Interfaces, host...), 0)
	if err != nil {
		return nil, err
	}
	out := map[string]divided{}
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

// of is what a device is divided by, as its agent finds it. Nil is none.
func (all divided) of(dev string, names group.Names) *store.Interface {
	documents := make([]string, len(all))
	for n, i := range all {
		documents[n] = i.Dev
	}
	if n := names.Of(dev, documents); n >= 0 {
		return all[n]
	}
	return nil
}

// owner is the tenant of a group of a device, and since when it was in a time that began so; "" is the
// operator.
func (all divided) owner(dev string, names group.Names, direction, path string, began time.Time) (tenant string, since time.Time) {
	i := all.of(dev, names)
	if i == nil {
		return "", began
	}
	return i.Owner(direction, path), whole(i.OwnedSince(direction, path), began)
}

// whole is when the first minute begins in which nobody had a group but who has had it since then. What
// is before the time that is asked for is of no matter.
func whole(since, began time.Time) time.Time {
	if !since.After(began) {
		return began
	}
	return since.Add(time.Minute - 1).Truncate(time.Minute)
}

func (all divided) has(tenant string) bool {
	return slices.ContainsFunc(all, func(i *store.Interface) bool { return i.HasTenant(tenant) })
}

// usageKept is at least as long as agents keep their record.
const usageKept = 8 * 24 * time.Hour

// GetUsage shows what groups had: a tenant, what its groups had since they are its own.
func (s *Server) GetUsage(w http.ResponseWriter, r *http.Request, p GetUsageParams) {
	by := principalOf(r)
	tenant := or(p.Tenant, by.Tenant)
	if by.Tenant != "" && tenant != by.Tenant {
		problem(w, r, notFound("tenant", tenant))
		return
	}
	hosts, err := s.dividedOf(r)
	if err != nil {
		problem(w, r, err)
		return
	}
	maps.DeleteFunc(hosts, func(host string, all divided) bool {
		return p.Host != nil && *p.Host != host || tenant != "" && !all.has(tenant)
	})
	now := time.Now()
	since, until := p.Since, or(p.Until, now)
	if oldest := now.Add(-usageKept); since.Before(oldest) {
		since = oldest
	}
	if until.After(now) {
		until = now
	}
	// What went from one to another in that time is asked for from then on.
	asked := map[time.Time][]string{since: slices.Collect(maps.Keys(hosts))}
	if tenant != "" {
		for host, all := range hosts {
			for from := range all.handed(tenant, since) {
				asked[from] = append(asked[from], host)
			}
		}
	}
	out := UsageList{Items: []Usage{}}
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
	out.Items = slices.DeleteFunc(out.Items, func(u Usage) bool { return missing[u.Host] })
	names := slices.AppendSeq([]string{}, maps.Keys(missing))
	slices.Sort(names)
	out.Missing = &names
	slices.SortFunc(out.Items, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Dev, b.Dev), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Group, b.Group))
	})
	show(w, r, out, nil)
}

// handed is when groups came to a tenant, in a time that began so.
func (all divided) handed(tenant string, began time.Time) map[time.Time]bool {
	out := map[time.Time]bool{}
	for _, i := range all {
		for at, since := range i.Handed {
			direction, path, _ := strings.Cut(at, "/")
			if i.Owner(direction, path) == tenant && since.After(began) {
				out[whole(since, began)] = true
			}
		}
	}
	return out
}
