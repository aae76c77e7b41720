package controller

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"headgate/api"
	"headgate/unit"
)

// Lists of what agents tell are put together of what each controller knows: a host's agent is
// connected to one of them.

// merges are by path.
var merges = map[string]func(all [][]byte) (any, error){"/v1/usage": mergeUsage, "/v1/hosts": mergeHosts, "/v1/overview": mergeOverview}

// merge answers with what this controller and the others know. One that does not answer is left out:
// what it knows is missing then, and said to be.
func (f *forwarder) merge(w http.ResponseWriter, r *http.Request, together func(all [][]byte) (any, error)) {
	own := api.Record(f.next, r)
	all := [][]byte{own.Body.Bytes()}
	if own.Status == http.StatusOK {
		all = append(all, f.askAll(r)...)
	}
	out, err := together(all)
	if err != nil || len(all) == 1 {
		own.Give(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(out)
}

// askAll is what the others answer that do.
func (f *forwarder) askAll(r *http.Request) (all [][]byte) {
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, at := range f.others {
		asked.Go(func() {
			answer, body, err := f.ask(r, at, nil, recordPatience)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && answer.StatusCode == http.StatusOK {
				all = append(all, body)
			}
		})
	}
	asked.Wait()
	return all
}

// recordPatience is for another controller that asks its agents.
const recordPatience = usagePatience + 2*time.Second

// mergeUsage has rows of hosts from whoever has their agents; missing are those that nobody has.
func mergeUsage(all [][]byte) (any, error) {
	out := api.UsageList{Items: []api.Usage{}}
	var missing map[string]bool
	for _, text := range all {
		var l api.UsageList
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, err
		}
		for _, u := range l.Items {
			// An agent that moves meanwhile is asked twice.
			if missing == nil || missing[u.Host] {
				out.Items = append(out.Items, u)
			}
		}
		here := map[string]bool{}
		if l.Missing != nil {
			for _, host := range *l.Missing {
				here[host] = missing == nil || missing[host]
			}
		}
		missing = here
	}
	names := []string{}
	for host, everywhere := range missing {
		if everywhere {
			names = append(names, host)
		}
	}
	slices.Sort(names)
	out.Missing = &names
	slices.SortStableFunc(out.Items, func(a, b api.Usage) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Dev, b.Dev), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Group, b.Group))
	})
	return out, nil
}

// mergeHosts has each host as the controller tells of it that has its agent.
func mergeHosts(all [][]byte) (any, error) {
	var out api.HostList
	for n, text := range all {
		var l api.HostList
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, err
		}
		if n == 0 {
			out = l
			continue
		}
		for _, h := range l.Items {
			i := slices.IndexFunc(out.Items, func(o api.HostState) bool { return o.Name != nil && h.Name != nil && *o.Name == *h.Name })
			if i >= 0 && h.Connected != nil && *h.Connected {
				out.Items[i] = h
			}
		}
	}
	return out, nil
}

// mergeOverview adds up, and has each host as the controller tells of it that has its agent.
func mergeOverview(all [][]byte) (any, error) {
	var out api.Overview
	for n, text := range all {
		var o api.Overview
		if err := json.Unmarshal(text, &o); err != nil {
			return nil, err
		}
		if n == 0 {
			out = o
			continue
		}
		out.Connected, out.Groups, out.AtRisk = out.Connected+o.Connected, out.Groups+o.Groups, out.AtRisk+o.AtRisk
		out.Risks = append(out.Risks, o.Risks...)
		out.Busiest = append(out.Busiest, o.Busiest...)
		for _, h := range o.Items {
			if i := slices.IndexFunc(out.Items, func(mine api.HostRates) bool { return mine.Host == h.Host }); i >= 0 && h.Connected {
				out.Items[i] = h
			}
		}
	}
	slices.SortStableFunc(out.Risks, func(a, b api.GroupAtRisk) int { return cmp.Compare(a.Host, b.Host) })
	slices.SortStableFunc(out.Busiest, func(a, b api.HostRates) int { return cmp.Compare(use(b), use(a)) })
	out.Risks = out.Risks[:min(len(out.Risks), api.MostRisks)]
	out.Busiest = out.Busiest[:min(len(out.Busiest), api.MostBusy)]
	return out, nil
}

// use is that of the direction that has most of its limit.
func use(h api.HostRates) (most float64) {
	for _, d := range h.Directions {
		if d.Limit == nil {
			continue
		}
		limit, err1 := unit.ParseRate(*d.Limit)
		has, err2 := unit.ParseRate(d.Delivered)
		if err1 == nil && err2 == nil {
			most = max(most, api.Load{Limit: limit, Delivered: has}.Use())
		}
	}
	return most
}
